"""What the nodes counted, who is up, what waits; one registry, filled when somebody asks.

Counters are the nodes' own, per node, because each node begins again at zero when its HAProxy reloads and
Prometheus repairs that per series only: `sum by (pool, region) (rate(spillway_requests_total[1m]))`.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from apps.fleet.models import Node
from apps.observe.families import nodes as node_families
from apps.observe.families import pools as pool_families
from apps.observe.families import problems as problem_families
from apps.observe.families.nodes import Location
from apps.observe.live import store as live
from apps.observe.ports import METRICS

CONTENT_TYPE = CONTENT_TYPE_LATEST


def text() -> bytes:
    """The exposition."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Exposition())
    return generate_latest(registry)


class Exposition(Collector):
    """Everything at this instant: seventeen queries and two trips to Redis, plus what other apps add."""

    def collect(self) -> Iterator[Metric]:
        """All families."""
        nodes = list(Node.objects.select_related("report", "fleet__region"))
        locations = {node.pk: Location(node.name, node.fleet.name, node.fleet.region.name) for node in nodes}
        yield from node_families.families(nodes, locations)
        yield from pool_families.families(live.read_totals(locations), locations)
        yield from problem_families.families()
        for families in METRICS.values():
            yield from families()
