"""After a change: on how many nodes it runs already, fleet by fleet, as the nodes confirmed it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from apps.accounts.actors import Actor
from apps.definitions.models import Route
from apps.definitions.selectors import fleets_of
from apps.fleet.models import Fleet
from apps.rollouts.selectors import NodeSync, Progress, node_sync, progress, sync_statuses

LONGEST_TRANSACTION = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class FleetLive:
    """One fleet: its status, its nodes where the actor may see them; how many run the route, and whether all do."""

    fleet: Fleet
    status: str
    nodes: tuple[NodeSync, ...] = ()
    live: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
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


def deployment_status(actor: Actor, route: Route, refusing: Collection[str] = ()) -> DeploymentStatus:
    """Where the route runs as it is stored; the number of queries is constant.

    `refusing` are the names of fleets whose nodes refuse the route itself.
    """
    statuses = sync_statuses(actor)
    nodes = node_sync(actor)
    fleets = fleets_of(route)
    far = progress([fleet.pk for fleet in fleets])
    found = []
    for fleet in fleets:
        refused = fleet.name in refusing
        status = "refused" if refused else statuses.get(fleet.pk, "behind")
        how = far.get(fleet.pk, Progress(newest=False, last_good_at=None))
        own = tuple(_of_route(node, route, how) for node in nodes if node.fleet_id == fleet.pk)
        live = 0 if refused else sum(_runs(node, route, how) for node in own)
        there = not refused and status != "no_nodes"
        whole = there and (status == "in_sync" or _since(how.last_good_at, route))
        found.append(FleetLive(fleet, status, own, live, whole))
    if actor.is_operator:
        total = sum(len(each.nodes) for each in found)
        return DeploymentStatus(tuple(found), sum(each.live for each in found), total, "node")
    return DeploymentStatus(tuple(found), sum(each.whole for each in found), len(found), "fleet")


def _runs(node: NodeSync, route: Route, far: Progress) -> bool:
    """Whether the node confirmed a revision that holds the route as it is stored, whatever else has changed since."""
    if node.status not in ("in_sync", "behind"):
        return False
    return (node.status == "in_sync" and far.newest) or _since(node.running_made_at, route)


def _of_route(node: NodeSync, route: Route, far: Progress) -> NodeSync:
    """A node that runs what it was last asked to run, from before this change, is behind."""
    if node.status != "in_sync" or _runs(node, route, far):
        return node
    return replace(node, status="behind", message=f"{node.message} The change is on its way.")


def _since(compiled_at: datetime | None, route: Route) -> bool:
    """Whether what was compiled then holds the route as it is: no transaction stays open for so long."""
    return compiled_at is not None and compiled_at - route.updated_at > LONGEST_TRANSACTION
