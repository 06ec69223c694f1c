"""Cumulative counters of two readings become what happened in between; it is never negative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, sub

from apps.compiler.targets.haproxy.overflow.ceilings import AT_ONCE, PER_SECOND
from apps.drivers.proxy.contract import CounterReading, CounterRow

COUNTERS = (
    "requests", "status_2xx", "status_3xx", "status_4xx", "status_5xx",
    "connections", "bytes_in", "bytes_out", "errors",
)  # fmt: skip
# A longer silence is no basis for a rate: what happened in it is left out, rather than shown as a peak.
LONGEST_GAP = 60.0
# What a listener's counts may fall by in an epoch without having begun anew.
WAVERS = 20
counted = attrgetter(*COUNTERS)
_NOTHING = (0,) * len(COUNTERS)
Key = tuple[str, str]  # kind, object id
# Kinds that have a row only while something happens.
RESTING = ("route", "flow", "rejected")
# Why a request is refused that is in its pool already, and the class of the answer that it gets there.
REFUSED_WITHIN = {AT_ONCE: "status_5xx", PER_SECOND: "status_4xx"}


def failed_of(kind: str) -> str:
    """The field that counts answers of 5xx: of a route HAProxy counts no other, and of 5xx only those of servers."""
    return "errors" if kind == "route" else "status_5xx"


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


class UnknownBase(ValueError):
    """A reading tells changes of one that is not remembered, so nothing is known by it."""


@dataclass(slots=True)
class Memory:
    """What the counters of a node stand at, since its epoch began; `token` is the node's name for that.

    `lost` are rows of this epoch that it has no more. `waiting` are connections to listeners and queues of pools where
    there are any now.
    """

    epoch: str
    read_at: float
    token: str = ""
    rows: dict[Key, CounterRow] = field(default_factory=dict)
    lost: dict[Key, CounterRow] = field(default_factory=dict)
    latency: dict[str, Mapping[int, int]] = field(default_factory=dict)
    waiting: dict[Key, int] = field(default_factory=dict)

    def at_rest(self, key: Key, seconds: float) -> Counts:
        """What is known of a row in which nothing happened for so long."""
        counts = _gauges(self.rows[key])
        counts.seconds = seconds
        return counts


@dataclass(slots=True)
class Step:
    """What happened on a node in `seconds`, 0 when that is not known: rows that moved; the others of its rows rested.

    `new` are the rows that came in it, `gone` those that went.
    """

    seconds: float
    rows: dict[Key, Counts] = field(default_factory=dict)
    new: set[Key] = field(default_factory=set)
    gone: set[Key] = field(default_factory=set)


def take(before: Memory | None, reading: CounterReading) -> tuple[Memory, Step]:
    """What happened since `before`, and what to remember for the next time; `before` itself is used up.

    1. Without a memory, or after a gap that is too long, only gauges are known: counts and seconds are zero.
    2. In a new epoch the counters began at zero, so their values are what happened; in one that is resumed as in 1.
    3. In the same epoch a row's counts are differences; a row that fell began anew, and its values count, but for the
       few by which those of a listener waver.
    4. A row that is missing is remembered, so that its return is not counted twice.
    5. What the ceilings of an account refuse within a pool is no request that it served.
    6. Changes count from the reading that they name and from no other. Raises UnknownBase.
    """
    same = before is not None and before.epoch == reading.epoch
    if reading.base and (before is None or not same or before.token != reading.base):
        raise UnknownBase(f"the changes are of {reading.base}, which is not what was read last")
    known = before is not None and 0 < reading.read_at - before.read_at <= LONGEST_GAP
    known = known and (same or not reading.resumed)
    step = Step(reading.read_at - before.read_at if before is not None and known else 0.0)
    there = {} if before is None else before.rows
    memory = before if before is not None and same else Memory(reading.epoch, reading.read_at)
    told = set()
    for row in reading.rows:
        key = (row.kind, row.object_id)
        told.add(key)
        if known and key not in there:
            step.new.add(key)
        old = memory.rows.get(key)
        if old is not None and row.kind == "frontend":
            row = _without_wavering(old, row)  # noqa: PLW2901 - what was told is of no use any more
        if old == row and known:
            continue
        memory.rows[key] = row
        _note_waiting(memory, key, row)
        counts = _difference(old or memory.lost.pop(key, None), row, step.seconds) if known else _gauges(row)
        # They are many and most of them rest: their silence needs no row.
        if row.kind not in RESTING or not counts.idle:
            step.rows[key] = counts
    step.gone.update(there.keys() & set(reading.gone) if reading.base else there.keys() - told)
    for key in step.gone:
        memory.waiting.pop(key, None)
        if (lost := memory.rows.pop(key, None)) is not None:
            memory.lost[key] = lost
    _take_latency(memory, reading.latency_buckets, step if known else None)
    _take_off_refused(step.rows)
    memory.read_at, memory.token = reading.read_at, reading.token
    return memory, step


def _without_wavering(old: CounterRow, row: CounterRow) -> CounterRow:
    """An agent takes its own probes off a listener's counts, now and then a moment before they are in them."""
    falls = [before - after for after, before in zip(counted(row), counted(old), strict=True)]
    if not any(0 < fall <= WAVERS for fall in falls):
        return row
    highest = {name: getattr(old, name) for name, fall in zip(COUNTERS, falls, strict=True) if 0 < fall <= WAVERS}
    return row._replace(**highest)


def _note_waiting(memory: Memory, key: Key, row: CounterRow) -> None:
    waiting = row.connections_now if row.kind == "frontend" else row.queue_now if row.kind == "backend" else 0
    if waiting:
        memory.waiting[key] = waiting
    else:
        memory.waiting.pop(key, None)


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
    after, before = counted(row), counted(old) if old is not None else _NOTHING
    grown = tuple(map(sub, after, before))
    if min(grown) < 0:
        grown = after
    # In the order of the fields: names take twice as long, and it is done for each row that moves.
    gauges = row.connections_now, row.queue_now, row.latency_ms
    return Counts(row.parent_id, seconds, *grown, *gauges, {}, row.status, row.check)  # type: ignore[call-arg]  # just as many


def _take_latency(memory: Memory, told: Mapping[str, Mapping[int, int]], step: Step | None) -> None:
    for pool_id, buckets in told.items():
        old, key = memory.latency.get(pool_id, {}), ("backend", pool_id)
        memory.latency[pool_id] = buckets
        if step is not None and old != buckets and key in memory.rows:
            counts = step.rows.get(key)
            if counts is None:
                counts = step.rows[key] = memory.at_rest(key, step.seconds)
            counts.latency = bucket_difference(old, buckets)


def _take_off_refused(rows: Mapping[Key, Counts]) -> None:
    """HAProxy counts such a request of a pool and the flow that says why it was refused; everybody adds up the two."""
    for (kind, name), refused in rows.items():
        if kind == "flow" and (answer := REFUSED_WITHIN.get(name.rpartition("/")[2])):
            served = rows.get(("backend", name.partition("/")[0]), Counts())
            for counter in ("requests", answer):
                setattr(served, counter, max(0, getattr(served, counter) - refused.requests))


def bucket_difference(old: Mapping[int, int], new: Mapping[int, int]) -> dict[int, int]:
    """Requests per upper bound since `old`; a bucket that fell began anew. Empty buckets are left out."""
    grown = {bound: count - (old.get(bound, 0) if count >= old.get(bound, 0) else 0) for bound, count in new.items()}
    return {bound: count for bound, count in grown.items() if count > 0}


def node_total(step: Step, waiting: Mapping[Key, int]) -> Counts:
    """The sum of a node: what its frontends took, how long its backends needed, what waits there."""
    total = Counts(seconds=step.seconds)
    for (kind, _), counts in step.rows.items():
        if kind == "frontend":
            for name in COUNTERS:
                setattr(total, name, getattr(total, name) + getattr(counts, name))
        elif kind == "backend":
            for bound, count in counts.latency.items():
                total.latency[bound] = total.latency.get(bound, 0) + count
    for (kind, _), count in waiting.items():
        if kind == "frontend":
            total.connections_now += count
        else:
            total.queue_now += count
    return total


def fold(steps: Sequence[Step]) -> dict[Key, Counts]:
    """Several steps of one node, in order of time, as one; the time in which a row rested counts since it came."""
    whole: dict[Key, Counts] = {}
    born: dict[Key, float] = {}
    left = sum(step.seconds for step in steps)
    seconds = left
    for step in steps:
        born.update(dict.fromkeys(step.new, left))
        left -= step.seconds
        for key, counts in step.rows.items():
            if (sums := whole.get(key)) is None:
                sums = whole[key] = Counts()
            sums.add(counts)
    for key, counts in whole.items():
        counts.seconds = seconds if key[0] in RESTING else born.get(key, seconds)
    return whole
