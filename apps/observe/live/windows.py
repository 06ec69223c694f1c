"""The last ten seconds of objects, from Redis, or with more age from the buckets where Redis has lost them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from apps.core.clock import now
from apps.core.requests import asked_once
from apps.fleet.selectors import node_regions
from apps.observe.collect.buckets import SHORT
from apps.observe.collect.deltas import Counts, Key, failed_of
from apps.observe.collect.percentiles import merge, percentile
from apps.observe.live import store as live
from apps.observe.live.store import LiveNode
from apps.observe.models import NodeReport, Sample
from apps.observe.numbers import Numbers
from apps.observe.services import counts_of

STALE = 10.0  # seconds after which a number is no longer shown as live
FORGOTTEN = 60.0  # seconds after which it is not shown at all
RESPONSES = ("status_2xx", "status_3xx", "status_4xx", "status_5xx")


def read_windows(keys: Sequence[Key], node_ids: Iterable[int] | None = None) -> dict[int, LiveNode]:
    """The newest window of these objects per node, none older than a minute; at most two queries."""
    nodes = list(node_ids) if node_ids is not None else list(node_regions())
    found = live.read(nodes, keys) if keys else {}
    limit = now().timestamp() - FORGOTTEN
    fresh = {node_id: window for node_id, window in (found or {}).items() if window.at >= limit}
    silent = [node_id for node_id in nodes if node_id not in fresh]
    return {**fresh, **_from_buckets(keys, silent)} if silent and keys else fresh


def _from_buckets(keys: Sequence[Key], node_ids: list[int]) -> dict[int, LiveNode]:
    """The last bucket of each node; that a node's own row is there says that it was observed."""
    names = {name for _, name in keys} | {f"node-{node_id}" for node_id in node_ids}
    recent = Sample.objects.filter(
        resolution=SHORT, at__gte=now() - timedelta(seconds=FORGOTTEN), node_id__in=node_ids, object_id__in=names
    )
    buckets: dict[int, dict[float, dict[Key, Counts]]] = defaultdict(lambda: defaultdict(dict))
    for (node_id, at, kind, name), counts in counts_of(recent, "node", "at", "kind", "object_id"):
        buckets[node_id][at.timestamp() + SHORT][kind, name] = counts
    found = {}
    for node_id, by_end in buckets.items():
        own = "node", f"node-{node_id}"
        ends = [end for end, rows in by_end.items() if own in rows]
        if ends:
            rows = by_end[max(ends)]
            found[node_id] = LiveNode(max(ends), rows, stored=True, seconds=rows[own].seconds)
    return found


def silent(windows: Mapping[int, LiveNode], among: Collection[int] | None = None) -> frozenset[int]:
    """Nodes that ran something when they were read last, and are silent while others are read. One query, if any.

    `among` are the nodes whose windows these are; all nodes, where nothing is said.
    """
    oldest = now().timestamp() - STALE
    read = {node_id for node_id, window in windows.items() if window.at >= oldest}
    if not read or not (missing := set(node_regions() if among is None else among) - read):
        return frozenset()
    ran = NodeReport.objects.filter(node_id__in=missing).exclude(digest="")
    return asked_once(("silent", *sorted(missing)), lambda: frozenset(ran.values_list("node_id", flat=True)))


def _measured(windows: Iterable[LiveNode], keys: Collection[Key]) -> list[tuple[float, str, Counts]]:
    """Age, kind and counts of each of these rows that has a rate: of silent nodes only where no other node has one."""
    instant = now().timestamp()
    found = [
        (max(0.0, instant - window.at), key[0], window.rows[key])
        for window in windows
        for key in keys
        if key in window.rows and window.rows[key].seconds > 0
    ]
    return [part for part in found if part[0] <= STALE] or found


def requests_rps(windows: Iterable[LiveNode], key: Key) -> float:
    """Of all that `numbers_of` says only the requests/s, 0 where nothing was measured: enough to sort thousands."""
    return sum(counts.requests / counts.seconds for _, _, counts in _measured(windows, [key]))


def numbers_of(windows: Iterable[LiveNode], keys: Collection[Key], *, partial: bool = False) -> Numbers:
    """The sum of these objects over the nodes that were read lately; `partial` says that others may serve them too.

    Only when there is no such node the last numbers of silent ones are summed: stale, with the age of the oldest.
    """
    measured = _measured(windows, keys)
    if not measured:
        return Numbers()
    age = max(part[0] for part in measured)
    rows = [counts for _, _, counts in measured]
    answered = sum(_answered(kind, counts) for _, kind, counts in measured)
    failed = [(getattr(counts, failed_of(kind)), counts.seconds) for _, kind, counts in measured]
    latency = merge(counts.latency for counts in rows)
    return Numbers(
        requests_rps=sum(counts.requests / counts.seconds for counts in rows),
        errors_rps=sum(count / seconds for count, seconds in failed),
        error_rate=min(1.0, sum(count for count, _ in failed) / answered) if answered else None,
        p50_ms=percentile(latency, 0.50),
        p95_ms=percentile(latency, 0.95),
        connections=sum(counts.connections_now for counts in rows),
        queue=sum(counts.queue_now for counts in rows),
        age_s=age,
        stale=age > STALE,
        partial=partial,
    )


def at_rest(windows: Iterable[LiveNode]) -> Numbers:
    """The numbers of what has no row of its own on these nodes: zeros where one of them was observed."""
    ages = [max(0.0, now().timestamp() - window.at) for window in windows if window.seconds > 0]
    ages = [age for age in ages if age <= STALE] or ages
    if not ages:
        return Numbers()
    return Numbers(0.0, 0.0, connections=0, queue=0, age_s=max(ages), stale=max(ages) > STALE)


def _answered(kind: str, counts: Counts) -> int:
    """Routes count requests and no answers; tcp pools have neither."""
    return counts.requests if kind == "route" else sum(getattr(counts, name) for name in RESPONSES)
