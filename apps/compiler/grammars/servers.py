"""The grammars of what a pool says of the way to its servers and of its health checks.

As in `grammar.py` each function returns an allowed value unchanged and raises GrammarError otherwise.
"""

from __future__ import annotations

import re

from apps.compiler.grammar import GrammarError, between, matching

MAX_CA = 64 * 1024
MAX_TEXT = 512
MAX_CONNECTIONS = 1_000_000
LONGEST_IDLE_S = 31 * 86_400

_STATUSES = re.compile(r"([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?")
_CERTIFICATES = matching(
    r"(?:-----BEGIN CERTIFICATE-----\n(?:[A-Za-z0-9+/]{1,76}={0,2}\n)+-----END CERTIFICATE-----\n)+",
    "pem",
    f"Paste only CERTIFICATE blocks in PEM, at most {MAX_CA} characters.",
)
_OF_USERS = "Begin with a letter and use at most {} letters, digits, hyphens and underscores."
cookie_name = matching(r"[A-Za-z][A-Za-z0-9_-]{0,63}", "cookie_name", _OF_USERS.format(64))
check_user = matching(r"[A-Za-z_][A-Za-z0-9_-]{0,31}", "user", _OF_USERS.format(32))  # who greets a database
grpc_service = matching(
    r"[A-Za-z_][A-Za-z0-9_]{0,62}(?:\.[A-Za-z_][A-Za-z0-9_]{0,62}){0,9}",
    "grpc_service",
    "Write the full name of the service, such as shop.v1.Orders.",
)
plain_text = matching(
    rf"[\x20-\x7e]{{1,{MAX_TEXT}}}", "text", f"Use one line of at most {MAX_TEXT} printable ASCII characters."
)
plain_lines = matching(
    rf"[\n\x20-\x7e]{{1,{MAX_TEXT}}}", "text", f"Use at most {MAX_TEXT} printable ASCII characters and line feeds."
)
connection_count = between(1, MAX_CONNECTIONS)
error_count = between(1, 1000)  # in a row
MOST_RETRIES = 10
retry_count = between(0, MOST_RETRIES)
percent = between(1, 100)
idle_seconds = between(1, LONGEST_IDLE_S)  # how long a client is remembered


def ca_bundle(value: object) -> str:
    """Certificates of authorities in PEM, nothing else in between, at most 64 kB."""
    return _CERTIFICATES(value if isinstance(value, str) and len(value) <= MAX_CA else "")


def statuses(value: object) -> str:
    """One status, or a range of them: `204`, `200-399`."""
    found = _STATUSES.fullmatch(value) if isinstance(value, str) else None
    if found is None or (found[2] and int(found[1]) > int(found[2])):
        raise GrammarError("statuses", "Write a status from 100 to 599, or two with a hyphen, such as 200-399.")
    return str(value)
