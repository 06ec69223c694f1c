"""Forms of fleets and of the nodes in them."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.fleet import selectors as topology
from apps.web.kit.object_forms import ObjectForm, OperatorPages
from apps.web.kit.shape_forms import Group

SETTINGS = ("node_settings", "rollout_settings")


class FleetForm(ObjectForm):
    """A group of nodes in one region, how large each node's HAProxy is, and how changes reach them."""

    kind, noun = "Fleet", "fleet"
    lead = "A fleet is a group of HAProxy nodes in one region that run the same configuration."

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:
        super().__init__(data, stored=stored, names={"region": topology.regions(actor)})

    def spec(self) -> dict[str, Any]:
        """The document of what was typed; settings that are all as by default are left out."""
        return self.without_defaults(self.document())

    @property
    def groups(self) -> list[Group]:
        """The fleet's own fields, then the settings of its nodes and of its rollouts."""
        own = [self[name] for name in self.fields if not any(f"/{block}/" in name for block in SETTINGS)]
        return [Group("Fleet", own), *(self.folded(block) for block in SETTINGS)]


class RegionForm(ObjectForm):
    """Where fleets and clients are; its traffic is drained by a page of its own, and latencies are measured."""

    kind, noun = "Region", "region"
    lead = "A region is a location with fleets and client traffic. Its distance to others decides the overflow order."

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:  # noqa: ARG002 - as the others
        super().__init__(data, stored=stored, names={})


class NodeForm(ObjectForm):
    """One HAProxy with its agent."""

    kind, noun = "Node", "node"
    lead = "Start an agent beside HAProxy first. Spillway deploys the fleet's configuration once it reaches the agent."

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:
        super().__init__(data, stored=stored, names={"fleet": topology.fleets(actor)})


FLEETS = OperatorPages(FleetForm, topology.fleets, "fleets", ("web:fleets", "Fleets"), "web:fleet")
REGIONS = OperatorPages(RegionForm, topology.regions, "regions", ("web:regions", "Regions"))
NODES = OperatorPages(NodeForm, topology.nodes, "nodes", ("web:fleets", "Fleets"))
