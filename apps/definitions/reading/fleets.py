"""The kind Fleet, read from its document."""

from __future__ import annotations

from ipaddress import ip_network

from apps.compiler import grammar
from apps.compiler.addresses import ALL_PRIVATE, PRIVATE_NETWORKS, overlap
from apps.definitions.reading.fields import Reader, boolean
from apps.definitions.reading.specs import FleetSpec
from apps.definitions.shapes.base.networks import network_block

MAX_PRIVATE_NETWORKS = 64
FLEET_PORTS = {"peer_port": 9700, "overflow_port": 9800, "overflow_tcp_port": 9900}


def read_fleet(reader: Reader) -> FleetSpec:
    """`{region, local_development?, private_networks?, peer_port?, overflow_port?, overflow_tcp_port?}`."""
    spec = FleetSpec(
        reader.required("region", grammar.name),
        reader.optional("local_development", boolean, default=False),
        _private_networks(reader),
        *(reader.optional(name, grammar.port, default) for name, default in FLEET_PORTS.items()),
    )
    ports = [spec.peer_port, spec.overflow_port, spec.overflow_tcp_port]
    for index, (name, port) in enumerate(zip(FLEET_PORTS, ports, strict=True)):
        if port is not None and port in ports[:index]:
            reader.fault(name, "twice", f"This fleet already uses port {port} internally; use three different ports.")
    return spec


def _private_networks(reader: Reader) -> tuple[str, ...]:
    """All of them, where the document does not say which."""
    if not reader.has("private_networks"):
        return ALL_PRIVATE
    found = reader.values("private_networks", _private_network)
    if len(found) > MAX_PRIVATE_NETWORKS:
        reader.fault("private_networks", "too_many", f"Use at most {MAX_PRIVATE_NETWORKS} networks.")
    return found


def _private_network(value: object) -> str:
    text = network_block(value)
    network = ip_network(text)
    if any(overlap(network, each) and network.prefixlen >= each.prefixlen for each in PRIVATE_NETWORKS):
        return text
    known = ", ".join(ALL_PRIVATE)
    raise grammar.GrammarError("not_private", f"Write a network inside of {known}; servers may be at public addresses.")
