"""Takes apart a URL that somebody else chose, strictly, and resolves nothing: outbound.py calls it. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from apps.compiler.address_spelling import spelled
from apps.compiler.addresses import Address

DEFAULT_PORTS = {"https": 443, "http": 80, "syslog+tls": 6514}
_PRINTABLE = re.compile(r"[!-~]{1,2048}")
_HOST = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
# Forms of an IPv4 address that only some programs understand (127.1, 0177.0.0.1, 0x7f.1): the last label tells.
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)")


class Refused(Exception):
    """We do not call this; the text is a sentence for the person who gave the URL."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart: `host` is a lower-case name or an address without brackets, `path` includes the query."""

    scheme: str
    host: str
    port: int
    path: str


def read_url(url: str, *, schemes: Collection[str] = ("https",)) -> Target:
    """Take an absolute URL apart, strictly; raises Refused with what to write instead. Resolves nothing."""
    if not _PRINTABLE.fullmatch(url):
        raise Refused("Write a URL of at most 2 048 printable ASCII characters, without blanks.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Refused("Write an absolute URL such as https://hooks.example.com/spillway.") from None
    if parts.scheme not in schemes:
        raise Refused(f"Begin the URL with {' or '.join(f'{scheme}://' for scheme in schemes)}.")
    if parts.netloc.startswith("[") and ":" not in (parts.hostname or ""):
        raise Refused("Write an address in brackets or a name without them.")
    if "@" in parts.netloc or "#" in url or "\\" in url:
        raise Refused("Leave user names, passwords, backslashes and #fragments out of the URL.")
    if port == 0:
        raise Refused("Choose a port from 1 to 65535.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, _host(parts.hostname or ""), port or DEFAULT_PORTS[parts.scheme], path)


def _host(text: str) -> str:
    address = address_of(text)
    if address is not None:
        return spelled(address)
    if not _HOST.fullmatch(text) or len(text) > 253 or _NUMBER.fullmatch(text.rpartition(".")[2]):
        raise Refused("Write a plain host name (letters, digits, hyphens and dots) or an address in its usual form.")
    return text


def address_of(text: str) -> Address | None:
    """The address that a host is, None for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
