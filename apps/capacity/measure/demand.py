"""What was asked for: the traffic of a region's own clients for a pool before a run began."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from apps.capacity.models import Run
from apps.definitions.models import Pool
from apps.fleet.models import Node, Region
from apps.observe.collect.buckets import LONG
from apps.observe.models import Sample
from apps.observe.show.flows import FlowKey

LOOKED_BACK = timedelta(hours=1)


def busiest_minute(pool: Pool, region: Region, until: datetime) -> float | None:
    """Requests/s of the busiest minute in the hour before `until`; None when nobody looked.

    What the pool's servers of the region served, without other regions' guests, and with what was sent away. Minutes
    in which a test ran are left out: they say nothing about anybody's wishes.
    """
    since = until - LOOKED_BACK
    nodes = Node.objects.filter(fleet__region=region).values_list("pk", flat=True)
    rows = Sample.objects.filter(resolution=LONG, node__in=list(nodes), at__gte=since, at__lt=until, seconds__gt=0)
    name, home = f"pool-{pool.pk}", f"rgn-{region.pk}"
    tested = _tested(pool, region, since, until)
    minutes: dict[datetime, float] = defaultdict(float)
    served = rows.filter(kind="backend", object_id=name).values_list("at", "requests", "seconds")
    for at, requests, seconds in served:
        minutes[at] += requests / seconds
    moved = rows.filter(kind="flow", parent_id=name).values_list("at", "object_id", "requests", "seconds")
    for at, flow, requests, seconds in moved:
        minutes[at] += _sign(FlowKey.read(flow), home) * requests / seconds
    counted = [rate for at, rate in minutes.items() if not any(_overlaps(at, *times) for times in tested)]
    return max(counted, default=None)


def _sign(flow: FlowKey, home: str) -> int:
    """Whether a flow adds to what the region's clients wanted, or was served for somebody else."""
    if flow.verb == "from":
        return -1
    return 1 if flow.verb == "refuse" or (flow.verb == "to" and flow.region != home) else 0


def _tested(pool: Pool, region: Region, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    """When runs were under way on the pool in the region, the one that began `until` then among them."""
    rows = Run.objects.filter(pool=pool, region=region, started_at__lte=until).exclude(ended_at__lt=since)
    times = rows.values_list("started_at", "ended_at")
    return [(begin, end or until) for begin, end in times if begin is not None]


def _overlaps(minute: datetime, begin: datetime, end: datetime) -> bool:
    return begin < minute + timedelta(seconds=LONG) and minute < end
