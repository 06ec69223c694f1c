"""Runs of stacks by state, targets as their clouds see them, requests of the newest minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Count, OuterRef, Subquery
from prometheus_client.core import GaugeMetricFamily, Metric

from apps.core.clock import now
from apps.stacks.models import CloudSample, CloudTarget, StackRun

# Clouds count minutes and have them late; what is older than this is no number of now.
LATE = timedelta(minutes=6)


def families() -> Iterator[Metric]:
    """Three families, three queries."""
    runs = GaugeMetricFamily("spillway_stack_runs", "Runs of stacks by state, of all time.", labels=["state"])
    counted = dict(StackRun.objects.order_by().values_list("state").annotate(count=Count("pk")))
    for state in StackRun.State:
        runs.add_metric([state.value], counted.get(state.value, 0))
    yield runs
    targets = GaugeMetricFamily("spillway_cloud_targets", "Targets by their cloud's check.", labels=["stack", "state"])
    rows = CloudTarget.objects.order_by().values_list("stack__name", "state").annotate(count=Count("pk"))
    for name, state, count in rows:
        targets.add_metric([name, state], count)
    yield targets
    rate = GaugeMetricFamily(
        "spillway_cloud_requests_per_second", "Requests of the newest whole minute.", labels=["stack", "backend"]
    )
    newest = CloudSample.objects.filter(stack=OuterRef("stack"), group=OuterRef("group")).order_by("-at")
    samples = CloudSample.objects.filter(at__gt=now() - LATE, pk=Subquery(newest.values("pk")[:1]))
    for name, backend, requests in samples.order_by().values_list("stack__name", "object_id", "requests"):
        rate.add_metric([name, backend], requests / 60)
    yield rate
