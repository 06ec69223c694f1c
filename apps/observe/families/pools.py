"""Metrics of pools in regions: requests, responses, time, servers, limits, and what left its region or was refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from apps.compiler.model.shared import LimitKind
from apps.definitions.models import Backend, Pool
from apps.definitions.serving import usable_servers
from apps.fleet.models import Region
from apps.observe.collect.deltas import Counts, Key
from apps.observe.collect.percentiles import BOUNDS
from apps.observe.families.nodes import Location
from apps.observe.show.flows import FlowKey

LABELS = ["account", "pool", "region", "node"]


def families(totals: Mapping[int, Mapping[Key, Counts]], locations: Mapping[int, Location]) -> Iterator[Metric]:
    """What nodes counted since their HAProxy began, and the limits in force; four queries."""
    names = Pool.objects.order_by().values_list("pk", "account__name", "name")
    pools = {f"pool-{pk}": (account, name) for pk, account, name in names}
    yield from _counted(totals, locations, pools)
    yield from _flows(totals, locations, pools)
    yield from _limits()


def _counted(
    totals: Mapping[int, Mapping[Key, Counts]], locations: Mapping[int, Location], pools: Mapping[str, tuple[str, str]]
) -> list[Metric]:
    requests = CounterMetricFamily("spillway_requests", "Requests given to a pool; of tcp connections.", labels=LABELS)
    responses = CounterMetricFamily("spillway_responses", "Responses of a pool by class.", labels=[*LABELS, "class"])
    sent = CounterMetricFamily("spillway_response_bytes", "Bytes sent to clients.", labels=LABELS)
    open_now = GaugeMetricFamily("spillway_connections", "Connections of a pool now.", labels=LABELS)
    queue = GaugeMetricFamily("spillway_queue", "Requests of a pool that wait for a server.", labels=LABELS)
    latency = HistogramMetricFamily(
        "spillway_request_duration_seconds", "Time until the response began, measured by the node.", labels=LABELS
    )
    servers = GaugeMetricFamily(
        "spillway_servers_up",
        "Servers of a pool that get requests: they are up, or nothing checks them.",
        labels=LABELS,
    )
    of_tcp = {f"pool-{pk}" for pk in Pool.objects.filter(protocol="tcp").order_by().values_list("pk", flat=True)}
    for node_id, rows in totals.items():
        up = _servers_up(rows)
        for (kind, name), counts in rows.items():
            if kind != "backend" or name not in pools:
                continue
            values = [*pools[name], locations[node_id].region, locations[node_id].node]
            requests.add_metric(values, counts.requests)
            for digit in "2345" if name not in of_tcp else "":
                responses.add_metric([*values, f"{digit}xx"], getattr(counts, f"status_{digit}xx"))
            sent.add_metric(values, counts.bytes_out)
            open_now.add_metric(values, counts.connections_now)
            queue.add_metric(values, counts.queue_now)
            servers.add_metric(values, up.get(name, 0))
            if counts.latency:
                latency.add_metric(values, cumulative(counts.latency), None)
    return [requests, responses, sent, open_now, queue, servers, latency]


def _servers_up(rows: Mapping[Key, Counts]) -> dict[str, int]:
    up: dict[str, int] = {}
    for (kind, _), counts in rows.items():
        if kind == "server" and counts.status.startswith(("UP", "no check")):
            up[counts.parent_id] = up.get(counts.parent_id, 0) + 1
    return up


def cumulative(buckets: Mapping[int, int]) -> list[tuple[str, float]]:
    """Prometheus' buckets: upper bounds in seconds as text, each counting everything below it."""
    found, below = [], 0
    for bound in BOUNDS:
        below += buckets.get(bound, 0)
        found.append(("+Inf" if bound == -1 else str(bound / 1000), float(below)))
    return found


def _flows(
    totals: Mapping[int, Mapping[Key, Counts]], locations: Mapping[int, Location], pools: Mapping[str, tuple[str, str]]
) -> list[Metric]:
    regions = {f"rgn-{pk}": name for pk, name in Region.objects.values_list("pk", "name")}
    moved = CounterMetricFamily(
        "spillway_overflow_requests",
        "Requests that left their region for another one (`to`), by reason.",
        labels=[*LABELS, "to", "reason"],
    )
    refused = CounterMetricFamily(
        "spillway_refused_requests", "Requests refused for want of room, by reason.", labels=[*LABELS, "reason"]
    )
    for node_id, rows in totals.items():
        for (kind, name), counts in rows.items():
            if kind != "flow" or name.partition("/")[0] not in pools:
                continue
            flow = FlowKey.read(name)
            values = [*pools[flow.pool], locations[node_id].region, locations[node_id].node]
            if flow.verb == "to" and flow.region in regions:
                moved.add_metric([*values, regions[flow.region], flow.reason], counts.requests)
            elif flow.verb == "refuse":
                refused.add_metric([*values, flow.reason], counts.requests)
    return [moved, refused]


def _limits() -> list[Metric]:
    """A region that is drained or has no server that gets requests takes nothing, whatever its limit."""
    labels = LABELS[:3]
    rate = GaugeMetricFamily("spillway_limit_requests_per_second", "The limit of a pool in a region.", labels=labels)
    flight = GaugeMetricFamily("spillway_limit_requests_in_flight", "The limit of requests at once.", labels=labels)
    by_kind = {LimitKind.RATE.value: rate, LimitKind.CONNECTIONS.value: flight}
    backends = Backend.objects.filter(limit_kind__in=by_kind, limit_value__gt=0).annotate(usable=usable_servers())
    for backend in backends.select_related("pool__account", "region").order_by("pk"):
        values = [backend.pool.account.name, backend.pool.name, backend.region.name]
        takes = backend.usable and not backend.region.drained
        by_kind[backend.limit_kind].add_metric(values, backend.scaled_limit(backend.usable) if takes else 0.0)
    return [rate, flight]
