"""Cumulative counters of two readings become what happened in between; it is never negative."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from apps.drivers.proxy.contract import CounterReading, CounterRow

COUNTERS = (
    "requests", "status_2xx", "status_3xx", "status_4xx", "status_5xx",
    "connections", "bytes_in", "bytes_out", "errors",
)  # fmt: skip
# A longer silence is no basis for a rate: what happened in it is left out, rather than shown as a peak.
LONGEST_GAP = 60.0
counted = attrgetter(*COUNTERS)
_NOTHING = (0,) * len(COUNTERS)
Key = tuple[str, str]  # kind, object id
# Kinds that have a row only while something happens.
RESTING = ("route", "flow")


@dataclass(slots=True)
class Counts:
    """What happened on one object in `seconds`, with the last gauges seen; `latency` counts per upper bound in ms."""

    parent_id: str = ""
    seconds: float = 0.0
    requests: int = 0
    status_2xx: int = 0
    status_3xx: int = 0
    status_4xx: int = 0
    status_5xx: int = 0
    connections: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    errors: int = 0
    connections_now: int = 0
    queue_now: int = 0
    latency_ms: int = 0
    latency: dict[int, int] = field(default_factory=dict)
    status: str = ""
    check: str = ""

    def add(self, later: Counts) -> None:
        """Add what happened after; the later gauges win."""
        # Spelled out: it is done for every object of every node each two seconds, and a loop takes much longer.
        self.requests += later.requests
        self.status_2xx += later.status_2xx
        self.status_3xx += later.status_3xx
        self.status_4xx += later.status_4xx
        self.status_5xx += later.status_5xx
        self.connections += later.connections
        self.bytes_in += later.bytes_in
        self.bytes_out += later.bytes_out
        self.errors += later.errors
        self.seconds += later.seconds
        for bound, count in later.latency.items():
            self.latency[bound] = self.latency.get(bound, 0) + count
        self.parent_id, self.status, self.check = later.parent_id, later.status, later.check
        self.connections_now, self.queue_now = later.connections_now, later.queue_now
        self.latency_ms = later.latency_ms

    @property
    def idle(self) -> bool:
        """Whether nothing happened and nothing waits."""
        return not (self.requests or self.connections or self.connections_now or self.queue_now or self.errors)


@dataclass(slots=True)
class Memory:
    """The last value of every counter of one node since its epoch began, also of rows that a reading left out."""

    epoch: str
    read_at: float
    rows: dict[Key, CounterRow]
    latency: dict[str, Mapping[int, int]]


def take(before: Memory | None, reading: CounterReading) -> tuple[Memory, dict[Key, Counts]]:
    """What happened since `before`, and what to remember for the next time.

    1. Without a memory, or after a gap that is too long, only gauges are known: counts and seconds are zero.
    2. In a new epoch the counters began at zero, so their values are what happened.
    3. In the same epoch a row's counts are differences; a row that fell began anew, and its values count.
    4. A row that is missing is remembered, so that its return is not counted twice.
    """
    known = before is not None and 0 < reading.read_at - before.read_at <= LONGEST_GAP
    same = before is not None and before.epoch == reading.epoch
    seconds = reading.read_at - before.read_at if before is not None and known else 0.0
    old_rows = before.rows if before is not None and same else {}
    old_latency = before.latency if before is not None and same else {}
    found: dict[Key, Counts] = {}
    for row in reading.rows:
        old = old_rows.get((row.kind, row.object_id))
        counts = _difference(old, row, seconds) if known else _gauges(row)
        # Routes and flows are many and most of them rest: their silence needs no row.
        if row.kind not in RESTING or not counts.idle:
            found[row.kind, row.object_id] = counts
    if known:
        _add_latency(found, old_latency, reading.latency_buckets)
    rows = {**old_rows, **{(row.kind, row.object_id): row for row in reading.rows}}
    return Memory(reading.epoch, reading.read_at, rows, {**old_latency, **reading.latency_buckets}), found


def _gauges(row: CounterRow) -> Counts:
    return Counts(
        parent_id=row.parent_id,
        connections_now=row.connections_now,
        queue_now=row.queue_now,
        latency_ms=row.latency_ms,
        status=row.status,
        check=row.check,
    )


def _difference(old: CounterRow | None, row: CounterRow, seconds: float) -> Counts:
    counts = _gauges(row)
    counts.seconds = seconds
    after, before = counted(row), counted(old) if old is not None else _NOTHING
    if after == before:
        return counts
    if any(now < then for now, then in zip(after, before, strict=True)):
        before = _NOTHING
    for name, now, then in zip(COUNTERS, after, before, strict=True):
        setattr(counts, name, now - then)
    return counts


def _add_latency(
    found: dict[Key, Counts], old: Mapping[str, Mapping[int, int]], new: Mapping[str, Mapping[int, int]]
) -> None:
    for pool_id, buckets in new.items():
        counts = found.get(("backend", pool_id))
        if counts is not None:
            counts.latency = bucket_difference(old.get(pool_id, {}), buckets)


def bucket_difference(old: Mapping[int, int], new: Mapping[int, int]) -> dict[int, int]:
    """Requests per upper bound since `old`; a bucket that fell began anew. Empty buckets are left out."""
    grown = {bound: count - (old.get(bound, 0) if count >= old.get(bound, 0) else 0) for bound, count in new.items()}
    return {bound: count for bound, count in grown.items() if count > 0}


def node_total(rows: Mapping[Key, Counts]) -> Counts:
    """The sum of a node: what its frontends took, how long its backends needed, what waits there."""
    total = Counts()
    for (kind, _), counts in rows.items():
        total.seconds = max(total.seconds, counts.seconds)
        if kind == "frontend":
            for name in (*COUNTERS, "connections_now"):
                setattr(total, name, getattr(total, name) + getattr(counts, name))
        elif kind == "backend":
            total.queue_now += counts.queue_now
            for bound, count in counts.latency.items():
                total.latency[bound] = total.latency.get(bound, 0) + count
    return total


def fold(parts: Iterable[Mapping[Key, Counts]]) -> dict[Key, Counts]:
    """Several periods of one node, in order of time, as one.

    A route or flow that rested in some of them has no row there; that time counts all the same.
    """
    whole: dict[Key, Counts] = {}
    for part in parts:
        for key, counts in part.items():
            whole.setdefault(key, Counts()).add(counts)
    seconds = max((counts.seconds for key, counts in whole.items() if key[0] == "node"), default=0.0)
    for key, counts in whole.items():
        if key[0] in RESTING:
            counts.seconds = max(counts.seconds, seconds)
    return whole
