"""The eyes of the abort conditions: what live numbers, rows and rollouts say around a run at this moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.capacity.measure.bottleneck import NodeSample, ServerSample
from apps.capacity.run.abort_conditions import Environment, Neighbour
from apps.capacity.run.checking import refusal, shortage, standing, trouble_of_region
from apps.core.clock import now
from apps.definitions.models import CapacityTest, Server
from apps.fleet.models import Node
from apps.observe.collect.deltas import Counts
from apps.observe.collect.percentiles import merge, percentile
from apps.observe.live import store as live
from apps.observe.live.store import LiveNode
from apps.observe.live.windows import RESPONSES


@dataclass(frozen=True, slots=True)
class Watch:
    """Whose surroundings are looked at: the test, its region's nodes, and the region's traffic before the load."""

    test: CapacityTest
    nodes: tuple[int, ...]
    traffic: float


def watch(test: CapacityTest) -> Watch:
    """Begin to look, before the load does."""
    # A node that never ran anything serves nobody, so nobody needs to hear from it.
    serving = Node.objects.filter(fleet__region=test.region_id, report__digest__gt="").order_by("pk")
    nodes = tuple(serving.values_list("pk", flat=True))
    windows = live.read_kind(nodes, "backend") or {}
    rows = [window.rows.get(("backend", f"pool-{test.pool_id}")) for window in windows.values()]
    traffic = sum(row.requests / row.seconds for row in rows if row is not None and row.seconds)
    return Watch(test, nodes, traffic)


def look(watched: Watch) -> Environment:
    """Everything that abort conditions read besides the run's own seconds; a test that is gone forbids itself."""
    test = CapacityTest.objects.select_related("account", "pool__account", "region").filter(pk=watched.test.pk).first()
    if test is None:
        return Environment(forbidden="The test was deleted.")
    wrong = refusal(standing(test))
    windows = live.read_kind(watched.nodes, "backend") or {}
    return Environment(
        silent_s=_silent_s(watched.nodes, windows),
        node_cpu=_busiest(windows, "cpu"),
        node_connections=_busiest(windows, "connections"),
        neighbours=_neighbours(f"pool-{test.pool_id}", windows),
        forbidden=wrong.message if wrong else "",
        trouble=trouble_of_region(test),
        shortage=shortage(test, watched.traffic),
    )


def _busiest(windows: Mapping[int, LiveNode], what: str) -> float | None:
    """The largest share of it that a node uses; None where no node says."""
    return max((window.in_use[what] for window in windows.values() if what in window.in_use), default=None)


def nodes_now(watched: Watch) -> list[NodeSample]:
    """What each node of the region has in use, by name; those that were not read are left out."""
    windows = live.read_kind(watched.nodes, "backend") or {}
    names = Node.objects.filter(pk__in=windows).order_by("name").values_list("pk", "name")
    return [NodeSample(name, **_in_use(windows[pk])) for pk, name in names]


def _in_use(window: LiveNode) -> dict[str, float | None]:
    return {what: window.in_use.get(what) for what in ("cpu", "connections")}


def servers_now(watched: Watch) -> list[ServerSample]:
    """What each server of the pool in the region does, as the region's nodes see it together; empty without nodes."""
    test = watched.test
    rows = Server.objects.filter(backend__pool=test.pool_id, backend__region=test.region_id)
    if test.server:
        rows = rows.filter(name=test.server)
    windows = (live.read_kind(watched.nodes, "server") or {}).values()
    found = []
    for pk, name, weight in rows.order_by("name").values_list("pk", "name", "weight"):
        seen = [window.rows[key] for window in windows if (key := ("server", f"srv-{pk}")) in window.rows]
        if seen:
            found.append(_server(name, weight, seen))
    return found


def _server(name: str, weight: int, rows: Sequence[Counts]) -> ServerSample:
    answered = sum(getattr(row, field) for row in rows for field in RESPONSES)
    return ServerSample(
        name,
        queue=sum(row.queue_now for row in rows),
        connections=sum(row.connections_now for row in rows),
        p95_ms=float(max(row.latency_ms for row in rows)),
        error_rate=sum(row.status_5xx for row in rows) / answered if answered else 0.0,
        weight=weight,
        up=not any(row.status.startswith("DOWN") for row in rows),
    )


def _silent_s(nodes: Sequence[int], windows: Mapping[int, LiveNode]) -> float | None:
    """How long ago the longest silent node was read; None when one of them is not known at all."""
    if not nodes or any(node not in windows for node in nodes):
        return None
    return max(0.0, now().timestamp() - min(window.at for window in windows.values()))


def _neighbours(own: str, windows: Mapping[int, LiveNode]) -> dict[str, Neighbour]:
    rows: dict[str, list[Counts]] = defaultdict(list)
    for window in windows.values():
        for (_, name), counts in window.rows.items():
            if name != own:
                rows[name].append(counts)
    return {name: _neighbour(found) for name, found in rows.items()}


def _neighbour(rows: Sequence[Counts]) -> Neighbour:
    answered = sum(getattr(row, name) for row in rows for name in RESPONSES)
    failed = sum(row.status_5xx for row in rows)
    return Neighbour(
        requests=sum(row.requests for row in rows),
        error_rate=failed / answered if answered else 0.0,
        p95_ms=percentile(merge(row.latency for row in rows), 0.95),
    )
