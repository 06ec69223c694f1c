"""Metrics of nodes: whether they answer, what they run, and whether anybody looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from apps.core.clock import now
from apps.fleet.models import Node
from apps.observe.collect import lease
from apps.observe.live.windows import STALE


@dataclass(frozen=True, slots=True)
class Location:
    """Labels of a node."""

    node: str
    fleet: str
    region: str


def families(nodes: Iterable[Node], locations: Mapping[int, Location]) -> list[Metric]:
    labels = ["node", "fleet", "region"]
    up = GaugeMetricFamily("spillway_node_up", "1 when the agent answered within ten seconds.", labels=labels)
    serving = GaugeMetricFamily("spillway_node_serving", "1 when a worker serves what it was given.", labels=labels)
    generation = GaugeMetricFamily("spillway_node_generation", "Generation that the node runs.", labels=labels)
    drifted = GaugeMetricFamily("spillway_node_drifted", "1 when files on the node were edited.", labels=labels)
    reloads = CounterMetricFamily("spillway_node_reloads", "Reloads since the node joined.", labels=labels)
    ends = GaugeMetricFamily(
        "spillway_node_certificate_not_after_seconds",
        "When the certificate ends that the node showed last, in Unix time.",
        labels=labels,
    )
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
        if report is not None and report.certificate_ends_at is not None:
            ends.add_metric(values, report.certificate_ends_at.timestamp())
        if report is not None and alive:
            serving.add_metric(values, report.serving)
            generation.add_metric(values, report.generation)
            drifted.add_metric(values, bool(report.drift))
            reloads.add_metric(values, report.reloads)
    for (fleet, region), desired in fleets.items():
        wanted.add_metric([fleet, region], desired)
    return [watched, up, serving, generation, drifted, reloads, ends, wanted]
