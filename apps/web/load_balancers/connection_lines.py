"""Where a listener leads connections, as lines of a text field: what is asked, then the pool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PASSED_ON = "passthrough"
ALPN = "alpn:"


def write(routes: Iterable[dict[str, Any]]) -> str:
    """`db.example.com acme/db passthrough`, `ssh acme/bastion` or `alpn:h2 acme/web`, a line for each route."""
    lines = ((asked(each), each["pool"], *([PASSED_ON] if each.get("passthrough") else [])) for each in routes)
    return "\n".join(map(" ".join, lines))


def asked(route: dict[str, Any]) -> str:
    """The first word of a route's line."""
    found: str = route.get("hostname") or route.get("protocol") or ALPN + route["alpn"]
    return found


def sni_routes(text: str) -> list[dict[str, Any]]:
    """The routes by name; what is no line of one is an error of its field."""
    routes = [dict[str, Any](zip(("hostname", "pool", "passthrough"), line, strict=False)) for line in _lines(text)]
    return [each | {"passthrough": True} if each.get("passthrough") == PASSED_ON else each for each in routes]


def protocol_routes(text: str) -> list[dict[str, Any]]:
    """The routes by what clients send first, likewise."""
    return [_protocol_route(*line) for line in _lines(text)]


def _protocol_route(first: str, pool: str = "", rest: str = "") -> dict[str, Any]:
    name = first.removeprefix(ALPN)
    said = {"alpn": name} if name != first else {"protocol": first}
    return said | ({"pool": f"{pool} {rest}".strip()} if pool else {})


def _lines(text: str) -> Iterable[list[str]]:
    return (line.split(maxsplit=2) for line in text.splitlines() if line.strip())
