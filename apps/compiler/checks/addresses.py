"""Static IPs that move; one that VRRP or BGP cannot carry is left out, with the listeners that would bind it."""

from __future__ import annotations

from collections.abc import Mapping

from apps.compiler import grammar
from apps.compiler.checks.examination import Notes
from apps.compiler.model.fleet import FleetAddress, FleetAddressKind, RegionNode, Snapshot
from apps.compiler.routing import number_of

MOST_NODES = 200


def check_addresses(notes: Notes, snapshot: Snapshot) -> None:
    """Identifier, address, and for a vip a router id of its own and nodes that speak its family."""
    nodes = {node.id: node for region in snapshot.regions for node in region.nodes}
    names: dict[int, FleetAddress] = {}
    for each in sorted(snapshot.addresses, key=lambda each: number_of(each.id)):
        notes.ask(each, "id", grammar.object_id, each.id)
        if not notes.ask(each, "address", grammar.listen_address, each.address):
            continue
        if each.kind is FleetAddressKind.VIP:
            _check_router_id(notes, each, names)
            _check_nodes(notes, each, nodes)


def check_listeners_of_addresses(notes: Notes, snapshot: Snapshot) -> None:
    """A listener whose address was left out is left out too: bound like a usual one it would stop the whole push."""
    out = {each.address: each for each in snapshot.addresses if notes.is_out(each.id)}
    for listener in (listener for front in snapshot.load_balancers for listener in front.listeners):
        address = out.get(listener.address or "")
        if address is not None:
            message = f"Fix the static IP {address.label} first: it was left out."
            notes.quarantine(listener, "address_left_out", message, "static_ip")


def _check_router_id(notes: Notes, address: FleetAddress, names: dict[int, FleetAddress]) -> None:
    if not 1 <= address.router_id <= 255:
        notes.quarantine(address, "router_id", "Give the vip a router id between 1 and 255.", "router_id")
        return
    first = names.setdefault(address.router_id, address)
    if first is not address:
        message = f"Choose another router id; {first.label} has {address.router_id} already."
        notes.quarantine(address, "router_id_twice", message, "router_id")


def _check_nodes(notes: Notes, address: FleetAddress, nodes: Mapping[str, RegionNode]) -> None:
    known = [nodes[name] for name in address.nodes if name in nodes]
    if not known or len(known) < len(address.nodes):
        notes.quarantine(address, "no_nodes", "Add nodes to the fleet: none could hold this address.", "nodes")
    elif len(known) > MOST_NODES:
        notes.quarantine(address, "many_nodes", f"A vip moves among at most {MOST_NODES} nodes.", "nodes")
    elif any((":" in node.address) != (":" in address.address) for node in known):
        message = "Choose an address of the family in which the nodes reach each other; VRRP carries no other."
        notes.quarantine(address, "address_family", message, "address")
