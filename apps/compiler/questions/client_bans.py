"""Whom limits per client banned: what the keys of HAProxy's tables say, and which routes have the limit of one.

A key is an IPv6 address of eight groups. Where a limit counts addresses, four groups are the client's (an IPv4 address
fills two), then 4 or 6 for the kind, then three for the limit's scope. Elsewhere six are a hash of scope and client,
and two the scope's end: what a header or cookie said is written nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

MOST_ROUTES = 3
_MAPS = "-limits.map"
_SCOPE, _BAN = 1, 6  # the words of a route's terms (targets/haproxy/policies/client_limit.py)


@dataclass(frozen=True, slots=True)
class BannedClient:
    """What a key says: the scope of the limit, the client's address or network, or a hash where it is neither."""

    scope: str
    client: str
    hashed: bool


def scopes_of(files: Mapping[str, bytes]) -> dict[str, list[str]]:
    """The scopes of limits that ban, in the files of a bundle → the first routes of each."""
    found: dict[str, list[str]] = {}
    for path, content in files.items():
        for line in content.decode().splitlines() if path.endswith(_MAPS) else ():
            route, _, terms = line.partition(" ")
            words = terms.split("|")
            if len(words) > _BAN and words[_BAN]:
                routes = found.setdefault(words[_SCOPE], [])
                if len(routes) < MOST_ROUTES:
                    routes.append(route)
    return found


def read_key(key: str, scopes: Iterable[str]) -> BannedClient | None:
    """Whom a key means; None where it is of none of these scopes: no request asks for it any more."""
    groups = IPv6Address(key).exploded.split(":")
    known = {scope[4:]: scope for scope in scopes}
    scope = known.get("".join(groups[6:]))
    if scope is None:
        return None
    if groups[4] in ("0004", "0006") and groups[5] == scope[:4]:
        number = int("".join(groups[:4]), 16)
        address = IPv4Address(number >> 32) if groups[4] == "0004" else IPv6Address(number << 64)
        return BannedClient(scope, str(address), hashed=False)
    return BannedClient(scope, ":".join(groups[:6]), hashed=True)
