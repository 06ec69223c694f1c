"""Requests that no route gets, answered before anything is looked up or counted.

* What has been here before: everything that is forwarded carries `CDN-Loop` (RFC 8586) with a word that only this
  installation makes and the number of times that it was forwarded. A server that leads back to a public listener is
  found out at the first return. Regions send overflow to ports of their own
  (targets/haproxy/overflow/remote_traffic.py), which do not ask. The word is no secret, because servers see it:
  whoever sends it is refused and harms nobody else. Words of others stay, so that two installations in front of each
  other find their circle as well.
* Connections of tcp carry no mark. Who comes to a public listener of tcp from an address of the installation is one of
  its own nodes, sent round by a server that leads back, and is refused before anything is opened for it. Overflow and
  other nodes come to ports of their own here, too.
* What names no host as `routing.py` reads it, or asks for the balancer itself (`CONNECT`, `OPTIONS *`).
"""

from __future__ import annotations

from collections.abc import Iterable

from apps.compiler.addresses import is_literal, own_addresses
from apps.compiler.routing import (
    BAD_HOST,
    BAD_HOST_STATUS,
    HOST_PATTERN,
    NOT_FOR_ROUTES,
    NOT_FOR_ROUTES_METHOD,
    NOT_FOR_ROUTES_PATH,
    NOT_FOR_ROUTES_STATUS,
)
from apps.compiler.targets.haproxy.writer import Section

LOOP_STATUS = 508
# HAProxy takes 64 words in a line.
SOURCES_IN_LINE = 40
LOOP = "A server of this pool leads back to this load balancer, so the request would go round in circles.\n"
_ALLOWED = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
_TEXT = ("content-type", "text/plain; charset=utf-8", "string")


def add_circle_guard(section: Section, addresses: Iterable[str], *, relayed: bool = False) -> None:
    """Refuse connections from where the installation itself is; loopback is not among these addresses.

    `relayed`: also those of which a balancer in front says so, in the PROXY protocol.
    """
    own = own_addresses(addresses)
    sources = sorted(name for name in own.names if is_literal(name)) + sorted(map(str, own.networks))
    for first in range(0, len(sources), SOURCES_IN_LINE):
        some = sources[first : first + SOURCES_IN_LINE]
        for step in ("connection", "session") if relayed else ("connection",):
            section.add("tcp-request", step, "reject", "if", "{", "src", *some, "}")


def add_loop_guard(section: Section, mark: str) -> None:
    """Refuse what carries our mark, mark the rest; nothing where the snapshot has no mark."""
    if not mark:
        return
    seen = ("{", "req.hdr(cdn-loop)", "-m", "beg", mark, "}")
    section.add("http-request", "return", "status", str(LOOP_STATUS), *_TEXT, LOOP, "if", *seen)
    section.add("http-request", "add-header", "CDN-Loop", f"{mark}; hops=1")


def add_request_refusals(section: Section) -> None:
    """Refuse what is for no route; a final dot of the host goes away, for the lookup and for the servers."""
    itself = ("{", "method", NOT_FOR_ROUTES_METHOD, "}", "||", "{", "url", "-m", "str", NOT_FOR_ROUTES_PATH, "}")
    status = ("status", str(NOT_FOR_ROUTES_STATUS))
    section.add("http-request", "return", *status, *_TEXT, NOT_FOR_ROUTES, "hdr", "allow", _ALLOWED, "if", *itself)
    section.add("http-request", "set-var(txn.authority)", "req.fhdr(host)")
    # What does not match is refused, so that a pattern that gives up refuses too.
    named = ("{", "var(txn.authority)", "-m", "reg", "-i", f"^({HOST_PATTERN})?$", "}")
    odd = ("{", "var(txn.authority)", "-m", "found", "}", "!", *named)
    section.add("http-request", "return", "status", str(BAD_HOST_STATUS), *_TEXT, BAD_HOST, "if", *odd)
    section.add("http-request", "replace-header", "Host", r"^(.*)\.(:[0-9]*)?$", r"\1\2")
