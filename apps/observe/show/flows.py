"""What pools served and where requests went that did not simply stay, now or at a time that is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db.models import F, QuerySet, Sum

from apps.core.clock import now
from apps.fleet.selectors import node_regions
from apps.observe.collect.buckets import LONG, SHORT, start_of
from apps.observe.collect.deltas import Counts, Key
from apps.observe.live import store as live
from apps.observe.live.windows import FORGOTTEN, STALE, read_windows, silent
from apps.observe.models import Sample
from apps.observe.show.history import looked_at, times_of

# Short buckets are pruned sooner than minutes; older questions are answered from those.
SHORT_FOR = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class FlowKey:
    """`pool-17/to/rgn-2/rate` in its parts."""

    pool: str
    verb: str
    region: str
    reason: str

    @classmethod
    def read(cls, text: str) -> FlowKey:
        """Raises ValueError for anything else."""
        pool, verb, region, reason = text.split("/")
        return cls(pool, verb, region, reason)


@dataclass(slots=True)
class Rates:
    """Requests/s by node: served by pools (guests included), and flows; `connections` are under way now.

    `at` is None when nothing was measured; numbers older than ten seconds are `stale` unless the past was asked for.
    What the `silent` nodes serve is not in it.
    """

    at: datetime | None = None
    age_s: float | None = None
    stale: bool = False
    served: dict[tuple[int, str], float] = field(default_factory=dict)
    connections: dict[tuple[int, str], int] = field(default_factory=dict)
    flows: dict[tuple[int, FlowKey], float] = field(default_factory=dict)
    silent: frozenset[int] = frozenset()


def rates(pools: Collection[str], at: datetime | None = None) -> Rates:
    """Rates of these pools (`pool-17`) on all nodes, of the last ten seconds or of the bucket that holds `at`."""
    nodes, wanted = list(node_regions()), frozenset(pools)
    return _past(wanted, nodes, at) if at is not None else _present(wanted, nodes)


def _present(pools: Collection[str], nodes: list[int]) -> Rates:
    windows = read_windows([("backend", pool) for pool in pools], nodes)
    # A pool of which a node has no row is none of that node's.
    serving = [node_id for node_id, window in windows.items() if window.rows and not window.stored]
    many = len(pools) > live.MOST_NAMED  # all nodes told everything then
    known = (live.read_kind(nodes, "flow") if many else live.find_kind(serving, "flow")) or {}
    found = Rates()
    if not windows:
        return found
    newest = max(window.at for window in windows.values())
    found.at = datetime.fromtimestamp(newest, UTC)
    found.age_s = max(0.0, now().timestamp() - newest)
    found.stale = found.age_s > STALE
    found.silent = silent(windows)
    for node_id, window in windows.items():
        if newest - window.at <= STALE:
            flows = known[node_id].rows if node_id in known else {}
            if node_id not in known and (window.rows or window.stored):
                flows = _stored_flows(node_id, window.at)
            _add(found, pools, node_id, {**window.rows, **flows})
    return found


def _stored_flows(node_id: int, end: float) -> dict[Key, Counts]:
    """What the database knows where Redis has lost the last seconds."""
    since = datetime.fromtimestamp(end - FORGOTTEN, UTC)
    rows = Sample.objects.filter(resolution=SHORT, kind="flow", node_id=node_id, at__gte=since).order_by("at")
    last = {row.object_id: row for row in rows}
    newest = max((row.at for row in last.values()), default=None)
    return {
        ("flow", name): Counts(requests=row.requests, seconds=row.seconds)
        for name, row in last.items()
        if row.at == newest
    }


def _past(pools: Collection[str], nodes: Collection[int], at: datetime) -> Rates:
    resolution = SHORT if now() - at < SHORT_FOR else LONG
    begin = datetime.fromtimestamp(start_of(at.timestamp(), resolution), UTC)
    rows = Sample.objects.filter(resolution=resolution, at=begin, node_id__in=nodes)
    found = Rates()
    if rows.filter(kind="node").exists():
        found.at, found.age_s = begin, max(0.0, (now() - begin).total_seconds())
    by_node: dict[int, dict[Key, Counts]] = defaultdict(dict)
    for row in rows.filter(kind="backend", object_id__in=pools) | rows.filter(kind="flow", parent_id__in=pools):
        counts = Counts(requests=row.requests, seconds=row.seconds, connections_now=row.connections_now)
        by_node[row.node_id][row.kind, row.object_id] = counts
    for node_id, counted in by_node.items():
        _add(found, pools, node_id, counted)
    return found


def rates_over(pools: Collection[str], minutes: int) -> dict[int, Rates | None]:
    """Unix second → rates of the step that began then, of the last `minutes`, oldest first; two queries.

    Each key has the primary key of a region in place of a node's, because the nodes of a region are added up. None
    stands for a step in which no node was looked at.
    """
    resolution, since, end = _span(minutes)
    rows = Sample.objects.filter(resolution=resolution, at__gte=since, seconds__gt=0)
    observed = looked_at(resolution, since)
    found: dict[int, Rates | None] = {}
    for second in range(end - minutes * 60 + resolution, end + 1, resolution):
        at = datetime.fromtimestamp(second, UTC)
        found[second] = Rates(at=at) if at in observed else None
    of_pools = rows.filter(kind="backend", object_id__in=pools) | rows.filter(kind="flow", parent_id__in=pools)
    by_region = of_pools.order_by().values_list("at", "node__fleet__region", "kind", "object_id")
    for at, region, kind, name, per_s in by_region.annotate(rate=Sum(F("requests") / F("seconds"))):
        step = found.get(int(at.timestamp()))
        if step and kind == "backend":
            step.served[region, name] = per_s
        elif step:
            step.flows[region, FlowKey.read(name)] = per_s
    return found


def _span(minutes: int) -> tuple[int, datetime, int]:
    """Seconds of a step, since when, and the Unix second of the last step that is whole."""
    resolution = SHORT if minutes <= 60 else LONG
    end = start_of(now().timestamp() - resolution, resolution)
    return resolution, datetime.fromtimestamp(end - minutes * 60, UTC), end


def _add(found: Rates, pools: Collection[str], node_id: int, rows: Mapping[Key, Counts]) -> None:
    for (kind, name), counts in rows.items():
        if kind == "backend" and name in pools:
            found.connections[node_id, name] = counts.connections_now
        if counts.seconds <= 0:
            continue
        if kind == "backend" and name in pools:
            found.served[node_id, name] = counts.requests / counts.seconds
        elif kind == "flow" and (key := FlowKey.read(name)).pool in pools:
            found.flows[node_id, key] = counts.requests / counts.seconds


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the history: Unix seconds, requests/s; None where no node was looked at."""

    at: int
    served: float | None
    out: float | None
    refused: float | None


def steps(pools: Collection[str], minutes: int, region: str = "") -> list[Step]:
    """What was served, went to another region and was refused in the last `minutes`, oldest first; four queries.

    With a `region` (`rgn-2`) only what its nodes counted: served there, and moved away from there.
    """
    resolution, since, end = _span(minutes)
    rows = Sample.objects.filter(resolution=resolution, at__gte=since, seconds__gt=0)
    home = homes()
    nodes = [node for node, where in home.items() if where == region]
    if region:
        rows = rows.filter(node_id__in=nodes)
    observed = times_of(nodes, resolution, since) if region else looked_at(resolution, since)
    rate = Sum(F("requests") / F("seconds"))
    served = _by_time(rows.filter(kind="backend", object_id__in=pools).values_list("at").annotate(rate=rate))
    out, refused = _moved(rows, pools, home)
    found = []
    for second in range(end - minutes * 60 + resolution, end + 1, resolution):
        at = datetime.fromtimestamp(second, UTC)
        seen = at in observed
        found.append(Step(second, *(series.get(at, 0.0) if seen else None for series in (served, out, refused))))
    return found


def moved_by_minute(pools: Collection[str], minutes: int) -> list[Step]:
    """The same a minute at a time without what was served, which costs a row for each pool: it is None."""
    end = start_of(now().timestamp() - LONG, LONG)
    since = datetime.fromtimestamp(end - minutes * 60 + LONG, UTC)
    rows = Sample.objects.filter(resolution=LONG, at__gte=since, seconds__gt=0)
    observed = looked_at(LONG, since)
    out, refused = _moved(rows, pools, homes())
    found = []
    for second in range(end - minutes * 60 + LONG, end + 1, LONG):
        at = datetime.fromtimestamp(second, UTC)
        known = (out.get(at, 0.0), refused.get(at, 0.0)) if at in observed else (None, None)
        found.append(Step(second, None, *known))
    return found


def homes() -> dict[int, str]:
    """Node (primary key) → region that it stands in (`rgn-2`)."""
    return {node: f"rgn-{region}" for node, region in node_regions().items()}


def _moved(
    rows: QuerySet[Sample], pools: Collection[str], home: Mapping[int, str]
) -> tuple[dict[datetime, float], dict[datetime, float]]:
    """What left its region, and what was refused, by time."""
    out: dict[datetime, float] = defaultdict(float)
    refused: dict[datetime, float] = defaultdict(float)
    counted = rows.filter(kind="flow", parent_id__in=pools).values_list("at", "node_id", "object_id")
    for at, node_id, name, per_s in counted.annotate(rate=Sum(F("requests") / F("seconds"))):
        key = FlowKey.read(name)
        if key.verb == "refuse":
            refused[at] += per_s
        elif key.verb == "to" and key.region != home.get(node_id):
            out[at] += per_s
    return out, refused


def _by_time(rows: Iterable[tuple[datetime, float]]) -> dict[datetime, float]:
    return dict(rows)


Cause = tuple[str, str, str]  # pool (`pool-17`), region whose traffic it is (`rgn-2`), reason of the lane


def overflowing_since(pools: Collection[str]) -> dict[Cause, datetime]:
    """Since when each pool's traffic leaves a region for one reason, without a pause of half a minute.

    A new reason begins anew. Two queries; a third one, of minutes, where something began more than an hour ago. What
    has not paused for a day is left out: nobody knows since when, and a time without a date would mislead.
    """
    home = homes()
    hour, day = now() - timedelta(hours=1), now() - timedelta(days=1)
    begun, last = _stretches(pools, home, SHORT, hour)
    recent = now() - timedelta(seconds=4 * SHORT)
    found = {cause: begin for cause, begin in begun.items() if last[cause] >= recent}
    longer = {cause for cause, begin in found.items() if begin <= hour + timedelta(seconds=3 * SHORT)}
    if longer:
        before, until = _stretches(pools, home, LONG, day)
        joined = {cause for cause in longer & before.keys() if until[cause] >= hour - timedelta(seconds=LONG)}
        found |= {cause: min(found[cause], before[cause]) for cause in joined}
    return {cause: begin for cause, begin in found.items() if begin > day + timedelta(seconds=3 * LONG)}


def _stretches(
    pools: Collection[str], home: Mapping[int, str], resolution: int, since: datetime
) -> tuple[dict[Cause, datetime], dict[Cause, datetime]]:
    """By cause: when the latest stretch without a pause of three buckets began, and its last bucket."""
    rows = Sample.objects.filter(
        resolution=resolution, kind="flow", parent_id__in=pools, at__gte=since, object_id__contains="/to/"
    )
    begun: dict[Cause, datetime] = {}
    last: dict[Cause, datetime] = {}
    for at, node_id, name in rows.order_by("at").values_list("at", "node_id", "object_id"):
        key, region = FlowKey.read(name), home.get(node_id, "")
        if key.region == region:
            continue
        cause = key.pool, region, key.reason
        if cause not in last or at - last[cause] > timedelta(seconds=3 * resolution):
            begun[cause] = at
        last[cause] = at
    return begun, last
