"""Static IPs that every healthy node announces to its routers, one host route each.

Equal on every node: the agent's `node-bird.conf` includes this file and adds what only the node knows, its number and
the routers it talks to. `announcing` is a constant that the node's health watchdog sets when it finds haproxy well;
a change of it only runs the filter again, so that neither sessions nor other routes notice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apps.compiler.model.fleet import FleetAddress, FleetAddressKind
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy.static_ips.vrrp import prefixed

BIRD_FILE = "bird.conf"


def anycasts(addresses: Sequence[FleetAddress]) -> list[FleetAddress]:
    """Those that are announced, by id."""
    found = (each for each in addresses if each.kind is FleetAddressKind.ANYCAST)
    return sorted(found, key=lambda each: number_of(each.id))


def render_anycast(addresses: Sequence[FleetAddress]) -> str:
    """Text of bird.conf; empty when nothing is announced."""
    announced = [each.address for each in anycasts(addresses)]
    if not announced:
        return ""
    lines = [*_DEVICES]
    for family, name in (("ipv4", "anycast4"), ("ipv6", "anycast6")):
        lines += _routes(family, name, [each for each in announced if (":" in each) == (family == "ipv6")])
    return "\n".join([*lines, *_FILTER]) + "\n"


# A router that dies without a word is noticed by BFD within a second, where it speaks that too.
_DEVICES = (
    "protocol device {",
    "}",
    "protocol bfd {",
    '    interface "*" {',
    "        interval 300 ms;",
    "        multiplier 3;",
    "    };",
    "}",
)
_FILTER = (
    "filter announced {",
    "    if !announcing then reject;",
    '    if proto = "anycast4" then accept;',
    '    if proto = "anycast6" then accept;',
    "    reject;",
    "}",
)


def _routes(family: str, name: str, addresses: Sequence[str]) -> Iterator[str]:
    """The routes of one family; BIRD installs none of them, they exist to be announced."""
    if not addresses:
        return
    yield f"protocol static {name} {{"
    yield f"    {family};"
    for address in addresses:
        yield f"    route {prefixed(address)} blackhole;"
    yield "}"
