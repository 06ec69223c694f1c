"""The first start: the file of the settings with new secrets, tables, certificates, the first operator."""

from __future__ import annotations

import io
import secrets
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.contrib.auth.password_validation import CommonPasswordValidator

from controlplane import shapes
from controlplane.admin import environment_file
from controlplane.admin.refusal import Refused, answer, secret_line

HEAD = """The settings of this console and its workers, made by spillway-admin init. Every console has the same secrets.
docs/operate/configuration.md says what may stand here."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was decided: where the console is, where certificates are, who signs in first and how."""

    url: str
    pki: Path
    username: str
    password: str


def write_settings(options: Namespace) -> Made:
    """Ask for what was not said, and write the file. Raises Refused before anything is written."""
    path: Path = options.environment
    if path.exists():
        raise Refused(f"{path} exists and is kept. Remove it, or name another file with --environment.")
    ask = not options.yes
    url = options.url or answer("URL of the console", "https://console.example", ask=ask)
    var = (options.var or Path(answer("Folder of what is made at run time", "/var/lib/spillway", ask=ask))).absolute()
    database = options.database or answer("URL of the database", f"sqlite:///{var}/spillway.sqlite3", ask=ask)
    redis = options.redis or answer("URL of Redis", "redis://127.0.0.1:6379/0", ask=ask)
    pki = (options.pki or path.absolute().parent / "pki").absolute()
    username = options.username or answer("Name of the first operator", "admin", ask=ask)
    _must_fit(url, database, redis)
    password = _password(options)
    _make(var)
    try:
        environment_file.write_new(path, _settings(url, var, database, redis, pki), HEAD)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}.") from None
    return Made(url, pki, username, password)


def _must_fit(url: str, database: str, redis: str) -> None:
    given = (("--url", url, shapes.WEB), ("--database", database, shapes.DATABASE), ("--redis", redis, shapes.REDIS))
    for flag, value, shape in given:
        if not shape.fits(value):
            raise Refused(f"{flag} must be {shape.words}, such as {shape.example}.")


def _password(options: Namespace) -> str:
    """Of the first operator; what would be refused once everything is there is refused at once."""
    found = secret_line(options.password_file, "Password of the first operator", new=True)
    if found.lower().strip() in CommonPasswordValidator().passwords:
        raise Refused("Password of the first operator: this one is too common. Nothing was done.")
    return found


def _make(var: Path) -> None:
    try:
        var.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Refused(f"{var} cannot be made: {error.strerror}.") from None


def _settings(url: str, var: Path, database: str, redis: str, pki: Path) -> dict[str, str]:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    return {
        "SPILLWAY_ENV": "production",
        "SPILLWAY_SECRET_KEY": secrets.token_urlsafe(48),
        "SPILLWAY_TOKEN_PEPPERS": f"1:{secrets.token_urlsafe(32)}",
        "SPILLWAY_DATABASE_URL": database,
        "SPILLWAY_REDIS_URL": redis,
        "SPILLWAY_ALLOWED_HOSTS": ",".join(dict.fromkeys([parts.hostname or "", "127.0.0.1", "localhost"])),
        "SPILLWAY_ORIGINS": origin,
        "SPILLWAY_CONSOLE_URL": origin,
        "SPILLWAY_STATE_URL": origin if parts.scheme == "https" else "http://127.0.0.1:8000",
        "SPILLWAY_VAR": str(var),
        "SPILLWAY_AGENT_CA": str(pki / "ca.pem"),
        "SPILLWAY_AGENT_CERTIFICATE": str(pki / "control-plane.pem"),
        "SPILLWAY_AGENT_KEY": str(pki / "control-plane.key"),
        "SPILLWAY_REQUIRE_SECOND_FACTOR": "operators",
    }


def found(options: Namespace, made: Made) -> int:
    """Tables, certificates, files of pages, the operator; then say what to open."""
    from controlplane.admin.commands import call, collect_pages

    print(f"{options.environment} written, for its owner alone. Every console needs this file; keep a copy.")
    call("migrate", verbosity=0)
    print("The database has its tables.")
    call("issue_certificates", out=made.pki, name=options.node)
    collect_pages()
    with _as_input(made.password):
        call("bootstrap", username=made.username)
    print(f"Keep {made.pki / 'ca.key'} elsewhere: whoever has it can make certificates of nodes.")
    print(f"Start the processes (docs/operate/install.md), open {made.url} and sign in as {made.username}.")
    print("`spillway-admin check` says what is still missing.")
    return 0


@contextmanager
def _as_input(line: str) -> Iterator[None]:
    """`bootstrap` reads the password from standard input."""
    before = sys.stdin
    sys.stdin = io.StringIO(f"{line}\n")
    try:
        yield
    finally:
        sys.stdin = before
