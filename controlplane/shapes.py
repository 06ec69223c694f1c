"""What a value of a setting may look like: the words for people, an example, and the judgement."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from apps.core.stores import redis_url
from apps.core.stores.hosts import split, user_and_hosts

_HOST = re.compile(r"\*|\.?[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f:]+")
_PEPPER = re.compile(r"[0-9]{1,6}:[^,\s]{8,}")
_ADDRESS = re.compile(r"[^@\s<>]+@[^@\s<>]+|[^<>@]*<[^@\s<>]+@[^@\s<>]+>")
LEAST_SECRET = 32


@dataclass(frozen=True, slots=True)
class Shape:
    """`Set NAME to <words>, such as <example>`; `fits` judges a value that is not empty."""

    words: str
    example: str
    fits: Callable[[str], bool]


def url(example: str, *schemes: str, host: bool = True) -> Shape:
    """A URL with one of these schemes; with a host, unless its path says everything."""

    def fits(value: str) -> bool:
        parts = _split(value)
        return parts is not None and parts.scheme in schemes and (bool(parts.hostname) or not host)

    return Shape(f"a URL with {' or '.join(f'{each}://' for each in schemes)}", example, fits)


def listed(each: Shape) -> Shape:
    """Entries separated by commas; the words of `each` say what one of them is."""
    return Shape(
        f"{each.words}; several are separated by commas",
        each.example,
        lambda value: all(each.fits(entry.strip()) for entry in value.split(",") if entry.strip()),
    )


def _split(value: str) -> SplitResult | None:
    """Its parts; None for what is no URL, whose port is no port, or which has blanks."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return None
    return parts if not re.search(r"[\s\x00-\x1f]", value) else None


def _is_origin(value: str) -> bool:
    parts = _split(value)
    return (
        parts is not None
        and parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and not (parts.path or parts.query or parts.username)
    )


def _is_database(value: str) -> bool:
    """Several hosts of PostgreSQL are separated by commas."""
    if re.search(r"[\s\x00-\x1f]", value):
        return False
    try:
        parts = split(value)
        user_and_hosts(parts.netloc)
    except ValueError:
        return False
    return parts.scheme in ("postgresql", "postgres", "sqlite") and parts.path.strip("/") != ""


def _is_network(value: str) -> bool:
    try:
        ipaddress.ip_network(value)
    except ValueError:
        return False
    return True


def _is_server(value: str) -> bool:
    host, colon, port = value.rpartition(":") if value.count(":") == 1 or value.startswith("[") else (value, "", "")
    if value.startswith("[") and value.endswith("]"):
        host, colon, port = value, "", ""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return not colon or (port.isascii() and port.isdecimal() and 0 < int(port) < 65536)


def _is_place(value: str) -> bool:
    """A URL of http, or a path of this console."""
    parts = _split(value)
    return parts is not None and (value.startswith("/") or (parts.scheme in ("http", "https") and bool(parts.hostname)))


ANYTHING = Shape("a text", "…", lambda _: True)
WORD = Shape("one word or path", "terraform", lambda value: value.isprintable() and value == value.strip())
SECRET = Shape(
    f"at least {LEAST_SECRET} characters of chance",
    "the output of `openssl rand -base64 48`",
    lambda value: len(value) >= LEAST_SECRET and value.isprintable(),
)
PEPPERS = Shape(
    "numbered secrets, newest first",
    "2:NewSecretOfItsOwn,1:TheEarlierOne",
    lambda value: all(_PEPPER.fullmatch(entry.strip()) for entry in value.split(",")),
)
PATH = Shape("an absolute path", "/var/lib/spillway", lambda value: value.startswith("/") and value.isprintable())
HOSTS = listed(
    Shape("names without scheme and port", "console.example", lambda value: _HOST.fullmatch(value) is not None)
)
ORIGINS = listed(Shape("origins, each a scheme, a name and a port at most", "https://console.example", _is_origin))
DATABASE = Shape(
    "a URL with postgresql://, or sqlite:/// and an absolute path", "postgresql://user:password@host/name", _is_database
)
POSTGRESQL = Shape(
    "a URL with postgresql://",
    "postgresql://user:password@host:6432/name",
    lambda value: _is_database(value) and not value.startswith("sqlite"),
)
REDIS = Shape(
    "a URL with redis://, rediss://, redis+sentinel:// or rediss+sentinel://",
    "redis://:password@host:6379/0",
    redis_url.fits,
)
BROKER = url("redis://host:6379/0", "redis")
WEB = url("https://console.example", "https", "http")
MAIL = url("smtp://user:password@mail.example:587?tls=1", "smtp", "smtps")
ADDRESS = Shape("a mail address", "spillway@example.com", lambda value: _ADDRESS.fullmatch(value) is not None)
LOGS = url(
    "logs+file:///var/lib/spillway/logs",
    *("logs+file", "logs+s3", "clickhouse+https", "clickhouse", "memory"),
    host=False,
)
NETWORKS = listed(Shape("networks", "10.0.0.0/8", _is_network))
SERVERS = listed(Shape("addresses, with a port where it is not 53", "192.0.2.53:5353", _is_server))
PLACE = Shape("a URL, or a path of this console", "/docs/", _is_place)
