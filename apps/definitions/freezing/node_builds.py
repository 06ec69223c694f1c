"""Which HAProxy each node of a fleet has, by what it reported last: what a bundle may ask of them follows from it."""

from __future__ import annotations

from collections.abc import Collection

from apps.compiler.model.capabilities import CAPABILITIES, Capability, NodeBuild, unable
from apps.compiler.model.haproxy_version import parse_version
from apps.fleet.models import Node


def builds_by_fleet(fleet_ids: Collection[int]) -> dict[int, tuple[NodeBuild, ...]]:
    """The builds of each of these fleets, by the names of their nodes; who has reported none is left out."""
    found: dict[int, list[NodeBuild]] = {each: [] for each in fleet_ids}
    rows = Node.objects.filter(fleet__in=fleet_ids).order_by("name", "pk")
    for fleet, name, text, http3 in rows.values_list("fleet", "name", "report__haproxy_version", "report__http3"):
        try:
            found[fleet].append(NodeBuild(name, parse_version(text or ""), bool(http3)))
        except ValueError:
            continue
    return {fleet: tuple(builds) for fleet, builds in found.items()}


def capabilities_of(node: Node) -> list[tuple[Capability, bool, str]]:
    """What HAProxy can do, whether the node's can, and which others of its fleet cannot; empty without a version."""
    builds = builds_by_fleet([node.fleet_id])[node.fleet_id]
    own = next((each for each in builds if each.node == node.name), None)
    others = [each for each in builds if each is not own]
    return [(each, each.has(own), unable(each, others)) for each in CAPABILITIES] if own else []
