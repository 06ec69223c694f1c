"""SHOW, after a change: on how many nodes it runs already, fleet by fleet, as the nodes confirmed it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from apps.accounts.actors import Actor
from apps.definitions.models import Route
from apps.definitions.selectors import fleets_of
from apps.fleet.models import Fleet
from apps.rollouts.selectors import NodeSync, node_sync, sync_words


@dataclass(frozen=True, slots=True)
class FleetLive:
    """One fleet: its word, and its nodes where the actor may see them; `live` counts those that run what is stored."""

    fleet: Fleet
    word: str
    nodes: tuple[NodeSync, ...] = ()
    live: int = 0


@dataclass(frozen=True, slots=True)
class LiveOn:
    """All fleets of a route; the counts are of nodes for operators, of fleets for customers, who have no nodes."""

    fleets: tuple[FleetLive, ...]
    done: int
    total: int
    unit: str

    @property
    def everywhere(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self.done == self.total

    @property
    def percent(self) -> int:
        """Share that is done, in per cent."""
        return round(100 * self.done / self.total) if self.total else 0


def live_on(actor: Actor, route: Route, refusing: Collection[str] = ()) -> LiveOn:
    """Where everything that is stored, and so this route, runs now; the number of queries is constant.

    `refusing` are the names of fleets whose nodes refuse the route itself.
    """
    words = sync_words(actor)
    nodes = node_sync(actor)
    found = []
    for fleet in fleets_of(route):
        word = "refused" if fleet.name in refusing else words.get(fleet.pk, "behind")
        own = tuple(node for node in nodes if node.fleet_id == fleet.pk)
        # A fleet that is behind has something newer than what its nodes were last asked to run.
        live = sum(node.word == "in_sync" for node in own) if word == "in_sync" else 0
        found.append(FleetLive(fleet, word, own, live))
    if actor.is_operator:
        return LiveOn(tuple(found), sum(each.live for each in found), sum(len(each.nodes) for each in found), "node")
    return LiveOn(tuple(found), sum(each.word == "in_sync" for each in found), len(found), "fleet")
