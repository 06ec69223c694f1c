"""What the nodes counted, who is up, what waits; one registry, filled when somebody asks.

Counters are the nodes' own, per node, because each node begins again at zero when its HAProxy reloads and
Prometheus repairs that per series only: `sum by (pool, region) (rate(spillway_requests_total[1m]))`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import redis
from django.conf import settings
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from apps.core.clock import now
from apps.definitions.models import Pool
from apps.fleet.models import Node
from apps.observe.collect import lease
from apps.observe.collect.deltas import Counts, Key
from apps.observe.collect.percentiles import BOUNDS
from apps.observe.live import store as live
from apps.observe.live.windows import STALE
from apps.observe.ports import METRICS

CONTENT_TYPE = CONTENT_TYPE_LATEST
QUEUES = ("default", "push")


def text() -> bytes:
    """The exposition."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Exposition())
    return generate_latest(registry)


@dataclass(frozen=True, slots=True)
class Location:
    """Labels of a node."""

    node: str
    fleet: str
    region: str


class Exposition(Collector):
    """Everything at this instant: three queries and two trips to Redis, plus what other apps add."""

    def collect(self) -> Iterator[Metric]:
        """All families."""
        nodes = list(Node.objects.select_related("report", "fleet__region"))
        locations = {node.pk: Location(node.name, node.fleet.name, node.fleet.region.name) for node in nodes}
        yield from _node_families(nodes, locations)
        totals = live.read_totals(locations)
        names = Pool.objects.order_by().values_list("pk", "account__name", "name")
        pools = {f"pool-{pk}": (account, name) for pk, account, name in names}
        yield from _pool_families(totals, locations, pools)
        yield _queues()
        for families in METRICS.values():
            yield from families()


def _node_families(nodes: Iterable[Node], locations: Mapping[int, Location]) -> list[Metric]:
    labels = ["node", "fleet", "region"]
    up = GaugeMetricFamily("spillway_node_up", "1 when the agent answered within ten seconds.", labels=labels)
    serving = GaugeMetricFamily("spillway_node_serving", "1 when a worker serves what it was given.", labels=labels)
    generation = GaugeMetricFamily("spillway_node_generation", "Generation that the node runs.", labels=labels)
    drifted = GaugeMetricFamily("spillway_node_drifted", "1 when files on the node were edited.", labels=labels)
    reloads = CounterMetricFamily("spillway_node_reloads", "Reloads since the agent began.", labels=labels)
    wanted = GaugeMetricFamily("spillway_fleet_generation_wanted", "Generation of the definitions.", labels=labels[1:])
    watched = GaugeMetricFamily("spillway_collector_up", "1 while a collector reads the nodes.")
    watched.add_metric([], lease.watched())
    limit = now() - timedelta(seconds=STALE)
    fleets = {}
    for node in nodes:
        location, report = locations[node.pk], getattr(node, "report", None)
        values = [location.node, location.fleet, location.region]
        fleets[location.fleet, location.region] = node.fleet.desired_generation
        alive = report is not None and report.seen_at is not None and report.seen_at >= limit
        up.add_metric(values, alive)
        if report is not None and alive:
            serving.add_metric(values, report.serving)
            generation.add_metric(values, report.generation)
            drifted.add_metric(values, bool(report.drift))
            reloads.add_metric(values, report.reloads)
    for (fleet, region), desired in fleets.items():
        wanted.add_metric([fleet, region], desired)
    return [watched, up, serving, generation, drifted, reloads, wanted]


def _pool_families(
    totals: Mapping[int, Mapping[Key, Counts]], locations: Mapping[int, Location], pools: Mapping[str, tuple[str, str]]
) -> list[Metric]:
    labels = ["account", "pool", "region", "node"]
    requests = CounterMetricFamily("spillway_requests", "Requests given to a pool.", labels=labels)
    responses = CounterMetricFamily("spillway_responses", "Responses of a pool by class.", labels=[*labels, "class"])
    sent = CounterMetricFamily("spillway_response_bytes", "Bytes sent to clients.", labels=labels)
    open_now = GaugeMetricFamily("spillway_connections", "Connections of a pool now.", labels=labels)
    queue = GaugeMetricFamily("spillway_queue", "Requests of a pool that wait for a server.", labels=labels)
    latency = HistogramMetricFamily(
        "spillway_request_duration_seconds", "Time until the response began, measured by the node.", labels=labels
    )
    servers = GaugeMetricFamily("spillway_servers_up", "Servers of a pool that are up.", labels=labels)
    for node_id, rows in totals.items():
        up = _servers_up(rows)
        for (kind, name), counts in rows.items():
            if kind != "backend" or name not in pools:
                continue
            values = [*pools[name], locations[node_id].region, locations[node_id].node]
            requests.add_metric(values, counts.requests)
            for digit in "2345":
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


def _queues() -> Metric:
    """Wake-ups that no worker took yet; missing when Redis is away."""
    family = GaugeMetricFamily("spillway_queue_length", "Wake-ups that wait for a worker.", labels=["queue"])
    try:
        client = redis.Redis.from_url(settings.CELERY_BROKER_URL, socket_connect_timeout=0.5, socket_timeout=0.5)
        with client.pipeline(transaction=False) as pipe:
            for name in QUEUES:
                pipe.llen(name)
            for name, length in zip(QUEUES, pipe.execute(), strict=True):
                family.add_metric([name], length)
    except redis.RedisError:
        return family
    return family
