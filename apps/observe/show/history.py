"""Series in time from the stored buckets, for sparklines and charts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, F, Max, Q, QuerySet, Sum

from apps.core.clock import now
from apps.fleet.selectors import node_regions
from apps.observe.collect.buckets import HOUR, LONG, SHORT, start_of
from apps.observe.collect.deltas import failed_of
from apps.observe.collect.percentiles import from_json, merge, percentile
from apps.observe.live.shared import once_per_sample
from apps.observe.models import Sample
from apps.observe.numbers import Series

# A bucket of ten seconds, and a round of the slowest collector after it (collect/collector.py).
STORED_AFTER = timedelta(seconds=SHORT + 5)


@dataclass(frozen=True, slots=True)
class Grid:
    """Evenly spaced points: `width` seconds each, from `begin` (Unix seconds), made of buckets of `resolution`."""

    begin: int
    width: int
    points: int
    resolution: int

    def position(self, at: datetime) -> int:
        """Index of the point that a bucket belongs to."""
        return (int(at.timestamp()) - self.begin) // self.width

    @property
    def since(self) -> datetime:
        """Where the first point begins."""
        return datetime.fromtimestamp(self.begin, UTC)

    @property
    def x(self) -> tuple[int, ...]:
        """Where the points stand."""
        return tuple(self.begin + self.width * step for step in range(self.points))


def grid(minutes: int, points: int) -> Grid:
    """The last `minutes` in about `points` steps, made of the coarsest buckets that are no longer than a step."""
    wanted = max(SHORT, minutes * 60 // max(1, points))
    resolution = max(each for each in (SHORT, LONG, HOUR) if each <= wanted)
    width = wanted // resolution * resolution
    count = max(1, minutes * 60 // width)
    # The newest bucket is stored when it is over.
    end = start_of(now().timestamp() - resolution, resolution)
    return Grid(start_of(end, width) - width * (count - 1), width, count, resolution)


def looked_at(resolution: int, since: datetime) -> set[datetime]:
    """When nodes were looked at, by buckets of a resolution; without the newest one while it lacks nodes.

    Each collector stores it with its next round, so that for a moment it has the nodes of one and not of another. That
    is no loss of traffic: until it has as many as the one before, or nobody is to store it any more, nothing is known.
    """
    return once_per_sample(("looked at", resolution, since), lambda: times_of(node_regions(), resolution, since))


def times_of(nodes: Iterable[int], resolution: int, since: datetime) -> set[datetime]:
    """The same of these nodes."""
    # By name: in an hour of a thousand nodes there are millions of other rows.
    names = [f"node-{pk}" for pk in nodes]
    rows = Sample.objects.filter(kind="node", object_id__in=names, resolution=resolution, at__gte=since, seconds__gt=0)
    return _whole(dict(rows.order_by().values_list("at").annotate(nodes=Count("node"))))


def _whole(nodes: Mapping[datetime, int]) -> set[datetime]:
    """The instants at which so many nodes were looked at, without the newest one while it lacks some."""
    last = sorted(nodes)[-2:]
    lacks = len(last) == 2 and nodes[last[1]] < nodes[last[0]] and now() - last[1] < STORED_AFTER
    return nodes.keys() - set(last[1:]) if lacks else set(nodes)


@dataclass(slots=True)
class _Cell:
    """One point being summed: `rate` and `errors` are sums of the rates of its buckets."""

    rate: float = 0.0
    errors: float = 0.0
    connections: int = 0
    queue: int = 0
    latency: list[dict[int, int]] = field(default_factory=list)


def read_series(groups: Mapping[str, Collection[str]], kind: str, grid: Grid, *, latency: bool) -> dict[str, Series]:
    """Series per group of model ids; two queries besides the nodes', of nodes one.

    At points where some node was looked at, an object without a row did nothing; elsewhere nothing is known. A node has
    a row for each look at it, so of nodes nothing is known where none of the group was looked at.
    """
    group_of = {name: group for group, names in groups.items() for name in names}
    cells: dict[tuple[str, int], _Cell] = defaultdict(_Cell)
    looks: dict[tuple[str, int], set[datetime]] = defaultdict(set)
    rows = _rows(kind, group_of, grid)
    counted = list(_each(rows, kind) if latency else _summed(rows, kind))
    instants = _whole(Counter(at for at, *_ in counted)) if kind == "node" else looked_at(grid.resolution, grid.since)
    for at, name, rate, bad, busy, waiting, *buckets in counted:
        if at not in instants:
            continue
        point = group_of[name], grid.position(at)
        looks[point].add(at)
        cell = cells[point]
        cell.rate += rate or 0.0
        cell.errors += bad or 0.0
        cell.connections = max(cell.connections, busy)
        cell.queue = max(cell.queue, waiting)
        cell.latency += [from_json(each) for each in buckets]
    observed = Counter(grid.position(at) for at in instants)
    found = {}
    for group in groups:
        seen = [len(looks[group, step]) if kind == "node" else observed[step] for step in range(grid.points)]
        found[group] = _series([cells[group, step] for step in range(grid.points)], seen, grid, latency=latency)
    return found


def _summed(rows: QuerySet[Sample], kind: str) -> Iterable[Any]:
    """Of all nodes together: they need not be read one by one."""
    return rows.values_list("at", "object_id").annotate(
        rate=Sum(F("requests") / F("seconds"), filter=Q(seconds__gt=0)),
        bad=Sum(F(failed_of(kind)) / F("seconds"), filter=Q(seconds__gt=0)),
        busy=Max("connections_now"),
        waiting=Max("queue_now"),
    )


def _each(rows: QuerySet[Sample], kind: str) -> Iterable[Any]:
    """The same of each node by itself, with how long its requests took."""
    counts = ("requests", failed_of(kind), "connections_now", "queue_now")
    names = ("at", "object_id", "seconds", *counts, "latency_buckets")
    for at, name, seconds, requests, bad, *rest in rows.values_list(*names):
        rates = (requests / seconds, bad / seconds) if seconds > 0 else (0.0, 0.0)
        yield (at, name, *rates, *rest)


def _rows(kind: str, names: Iterable[str], grid: Grid) -> QuerySet[Sample]:
    return Sample.objects.filter(
        kind=kind,
        object_id__in=list(names),
        resolution=grid.resolution,
        at__gte=grid.since,
        at__lt=datetime.fromtimestamp(grid.begin + grid.width * grid.points, UTC),
    ).order_by()


def _series(cells: Iterable[_Cell], looks: Iterable[int], grid: Grid, *, latency: bool) -> Series:
    """One series of its points, of which each was looked at so many times."""
    found = list(zip(cells, looks, strict=True))
    return Series(
        x=grid.x,
        requests=tuple(cell.rate / seen if seen else None for cell, seen in found),
        errors=tuple(cell.errors / seen if seen else None for cell, seen in found),
        connections=tuple(cell.connections if seen else None for cell, seen in found),
        queue=tuple(cell.queue if seen else None for cell, seen in found),
        p95_ms=tuple(percentile(merge(cell.latency), 0.95) for cell, _ in found) if latency else (),
    )
