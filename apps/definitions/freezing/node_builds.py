"""Which HAProxy each node of a fleet has, by what it reported last: what a bundle may ask of them follows from it."""

from __future__ import annotations

from collections.abc import Collection

from apps.compiler.haproxy_version import parse_version
from apps.compiler.model.fleet import NodeBuild
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
