"""One VRRP instance per static IP that moves among a fleet's nodes (docs/use/static-ips.md).

The bytes are equal on every node: a line that begins with `@node-5` counts on that node alone, one with `@^node-5`
everywhere else (`keepalived --config-id node-5`). What only the node knows, `${INTERFACE}` and `${CHECK}`, comes from
the agent's `node-vrrp.conf`, which includes this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from apps.compiler.model.fleet import FleetAddress, FleetAddressKind, RegionNode
from apps.compiler.routing import number_of

VRRP_FILE = "keepalived.conf"
HIGHEST, STEP = 250, 20
# A silent node is given up after three adverts and a bit (RFC 5798): below two seconds.
ADVERT_SECONDS = "0.5"
# Where several addresses are spread, one that moved away comes home after its node stood this long.
PREEMPT_SECONDS = 60


def vips(addresses: Sequence[FleetAddress]) -> list[FleetAddress]:
    """Those that VRRP moves, by id."""
    found = (each for each in addresses if each.kind is FleetAddressKind.VIP)
    return sorted(found, key=lambda each: number_of(each.id))


def prefixed(address: str) -> str:
    """The address as a network of its own: `192.0.2.7/32`, `2001:db8::7/128`."""
    return f"{address}/{128 if ':' in address else 32}"


def priorities(address: FleetAddress) -> dict[str, int]:
    """Node id → its VRRP priority (1–254) for this address; the highest one that serves has it.

    The order of the nodes is turned by the router id, which is dense in a region: addresses spread over the nodes, and
    none changes its place because another one came or went.
    """
    count = len(address.nodes)
    start = address.router_id % count
    step = max(1, min(STEP, HIGHEST // count))
    turned = address.nodes[start:] + address.nodes[:start]
    return {node: max(1, HIGHEST - step * index) for index, node in enumerate(turned)}


def render_vrrp(addresses: Sequence[FleetAddress], nodes: Mapping[str, RegionNode]) -> str:
    """Text of keepalived.conf; empty when no address moves. `nodes` are those of the region by id."""
    moving = vips(addresses)
    if not moving:
        return ""
    lines = [*_GLOBAL, *_CHECK]
    for address in moving:
        lines += ["", *_instance(address, nodes, alone=len(moving) == 1)]
    return "\n".join(lines) + "\n"


# VRRP 3 has no authentication, and that of version 2 goes over the wire as it is. Instead packets count only from named
# peers, and only when no router has touched them (a time to live of 255 cannot be made from outside the network).
_GLOBAL = (
    "global_defs {",
    "    vrrp_version 3",
    "    vrrp_check_unicast_src",
    "    enable_script_security",
    "    vrrp_garp_master_refresh 60",
    "}",
)
_CHECK = (
    "",
    "vrrp_script haproxy {",
    '    script "${CHECK}"',
    "    interval 1",
    "    timeout 10",
    "    fall 2",
    "    rise 2",
    "    init_fail",
    "}",
)


def _instance(address: FleetAddress, nodes: Mapping[str, RegionNode], *, alone: bool) -> Iterator[str]:
    """One address. A single one stays where it is when a better node comes back: moving it would only cut connections.

    Several come home, so that one node does not carry all of them for ever.
    """
    yield f"vrrp_instance {address.id} {{"
    yield "    state BACKUP"
    yield "    interface ${INTERFACE}"
    yield f"    virtual_router_id {address.router_id}"
    for node, priority in sorted(priorities(address).items(), key=lambda pair: number_of(pair[0])):
        yield f"    @{node} priority {priority}"
    yield f"    advert_int {ADVERT_SECONDS}"
    yield "    nopreempt" if alone else f"    preempt_delay {PREEMPT_SECONDS}"
    if len(address.nodes) > 1:
        yield from _peers([nodes[node] for node in address.nodes])
    yield from ("    virtual_ipaddress {", f"        {prefixed(address.address)}", "    }")
    yield from ("    track_script {", "        haproxy", "    }", "}")


def _peers(nodes: Sequence[RegionNode]) -> Iterator[str]:
    for node in nodes:
        yield f"    @{node.id} unicast_src_ip {node.address}"
    yield "    unicast_ttl 255"
    yield "    unicast_peer {"
    for node in nodes:
        yield f"        @^{node.id} {node.address} min_ttl 255"
    yield "    }"
