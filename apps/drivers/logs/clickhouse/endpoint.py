"""Reads where ClickHouse is from SPILLWAY_LOGS_URL."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote

from apps.drivers.logs.clickhouse.asking import Endpoint, User
from apps.drivers.logs.contract import Rejected

SCHEMES = {"clickhouse": ("http", 8123), "clickhouse+https": ("https", 8443)}
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# What a URL may say beyond where; folder is of this machine, for lines that wait to be forwarded.
OPTIONS = {"reader": "", "reader_password": "", "folder": "/var/lib/spillway/logs", "http": ""}
_DATABASE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,62}")


def endpoint_of(parts: SplitResult) -> Endpoint:
    """Where lines are kept. Raises Rejected for a URL that does not say it."""
    scheme, usual = SCHEMES[parts.scheme]
    options = options_of(parts)
    database = unquote(parts.path).strip("/")
    if not parts.hostname or not _DATABASE.fullmatch(database):
        raise Rejected(
            "SPILLWAY_LOGS_URL names no database of ClickHouse: write clickhouse+https://user:password@host:8443/database."
        )
    if database.lower() in ("system", "information_schema", "default"):
        raise Rejected(f"SPILLWAY_LOGS_URL: {database} is ClickHouse's own; make a database for lines alone.")
    if scheme == "http" and parts.hostname not in LOOPBACK and options["http"] != "allowed":
        raise Rejected("SPILLWAY_LOGS_URL is not encrypted: use clickhouse+https://, or add http=allowed.")
    try:
        port = parts.port or usual
    except ValueError as error:
        raise Rejected("SPILLWAY_LOGS_URL: the port is a number from 1 to 65535.") from error
    owner = User(unquote(parts.username or "default"), unquote(parts.password or ""))
    reader = User(options["reader"], options["reader_password"]) if options["reader"] else None
    if reader is not None and reader.name == owner.name:
        raise Rejected("SPILLWAY_LOGS_URL: reader is another user, who may read the view of lines and nothing else.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Endpoint(f"{scheme}://{host}:{port}/", database, owner, reader)


def options_of(parts: SplitResult) -> dict[str, str]:
    """The options of a URL, each with its default. Raises Rejected."""
    given = dict(parse_qsl(parts.query))
    for name in sorted(given.keys() - OPTIONS.keys()):
        raise Rejected(f"SPILLWAY_LOGS_URL: there is no {name}; ClickHouse has {', '.join(OPTIONS)}.")
    return {**OPTIONS, **given}
