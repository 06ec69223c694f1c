"""The grammars of what a pool says of the way to its servers and of its health checks.

As in `grammar.py` each function returns an allowed value unchanged and raises GrammarError otherwise.
"""

from __future__ import annotations

import re

from apps.compiler.grammar import GrammarError, integer

MAX_CA = 64 * 1024
MAX_TEXT = 512
MAX_CONNECTIONS = 1_000_000
LONGEST_IDLE_S = 31 * 86_400

_CERTIFICATES = re.compile(
    r"(?:-----BEGIN CERTIFICATE-----\n(?:[A-Za-z0-9+/]{1,76}={0,2}\n)+-----END CERTIFICATE-----\n)+"
)
_COOKIE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}")
_SERVICE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(?:\.[A-Za-z_][A-Za-z0-9_]{0,62}){0,9}")
_STATUSES = re.compile(r"([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?")
_TEXT = re.compile(r"[\x20-\x7e]+")
_LINES = re.compile(r"[\n\x20-\x7e]+")


def _matching(pattern: re.Pattern[str], value: object, code: str, sentence: str) -> str:
    if isinstance(value, str) and pattern.fullmatch(value):
        return value
    raise GrammarError(code, sentence)


def ca_bundle(value: object) -> str:
    """Certificates of authorities in PEM, nothing else in between, at most 64 kB."""
    text = value if isinstance(value, str) and len(value) <= MAX_CA else ""
    sentence = f"Paste only CERTIFICATE blocks in PEM, at most {MAX_CA} characters."
    return _matching(_CERTIFICATES, text, "pem", sentence)


def cookie_name(value: object) -> str:
    """The name of a cookie."""
    sentence = "Begin with a letter and use at most 64 letters, digits, hyphens and underscores."
    return _matching(_COOKIE, value, "cookie_name", sentence)


def check_user(value: object) -> str:
    """The user as whom a health check greets a database."""
    sentence = "Begin with a letter and use at most 32 letters, digits, hyphens and underscores."
    return _matching(_USER, value, "user", sentence)


def grpc_service(value: object) -> str:
    """The name of a service of gRPC: `shop.v1.Orders`."""
    sentence = "Write the full name of the service, such as shop.v1.Orders."
    return _matching(_SERVICE, value, "grpc_service", sentence)


def statuses(value: object) -> str:
    """One status, or a range of them: `204`, `200-399`."""
    found = _STATUSES.fullmatch(value) if isinstance(value, str) else None
    if found is None or (found[2] and int(found[1]) > int(found[2])):
        raise GrammarError("statuses", "Write a status from 100 to 599, or two with a hyphen, such as 200-399.")
    return str(value)


def plain_text(value: object) -> str:
    """Printable ASCII in one line."""
    text = value if isinstance(value, str) and len(value) <= MAX_TEXT else ""
    return _matching(_TEXT, text, "text", f"Use one line of at most {MAX_TEXT} printable ASCII characters.")


def plain_lines(value: object) -> str:
    """Printable ASCII and line feeds."""
    text = value if isinstance(value, str) and len(value) <= MAX_TEXT else ""
    return _matching(_LINES, text, "text", f"Use at most {MAX_TEXT} printable ASCII characters and line feeds.")


def connection_count(value: object) -> int:
    """How many connections."""
    return integer(value, 1, MAX_CONNECTIONS)


def error_count(value: object) -> int:
    """How many errors in a row."""
    return integer(value, 1, 1000)


def retry_count(value: object) -> int:
    """How often a request is sent again."""
    return integer(value, 0, 10)


def idle_seconds(value: object) -> int:
    """How long a client is remembered."""
    return integer(value, 1, LONGEST_IDLE_S)
