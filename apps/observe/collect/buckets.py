"""Deltas are gathered per node into buckets of ten seconds, and those into minutes and hours."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from apps.drivers.proxy.contract import CounterReading, NodeState, Seen
from apps.observe.collect.deltas import RESTING, Counts, Key, Memory, Step, fold, node_total, take
from apps.observe.live.store import WINDOW, Change, LiveNode

SHORT = 10
LONG = 60
HOUR = 3600


def start_of(instant: float, resolution: int) -> int:
    """Unix seconds at which the bucket that holds `instant` began."""
    return int(instant) // resolution * resolution


@dataclass(frozen=True, slots=True)
class Bucket:
    """What happened on one node in the ten seconds from `at` (Unix seconds); `rows` are those that moved in it."""

    at: int
    node_id: int
    rows: dict[Key, Counts]

    def worth_storing(self) -> Iterator[tuple[Key, Counts]]:
        """The rows that say something; of a pool also that it rested, where the bucket has such a row."""
        for key, counts in self.rows.items():
            if key[0] in ("node", "backend") or not counts.idle:
                yield key, counts


@dataclass(slots=True)
class Gatherer:
    """What happened on one node: the bucket being filled from `open_at`, and the last seconds for live numbers.

    `memory` is what its counters stand at, `state` what it said with them. `turn` counts what was put in, `name` tells
    it apart from others of the same node.
    """

    node_id: int
    open_at: int = 0
    parts: list[Step] = field(default_factory=list)
    recent: deque[Step] = field(default_factory=lambda: deque(maxlen=60))
    memory: Memory | None = None
    state: NodeState | None = None
    turn: int = 0
    name: str = field(default_factory=lambda: secrets.token_hex(6))
    _moved: set[Key] = field(default_factory=set)

    @property
    def seen(self) -> Seen | None:
        """What the node need not tell again."""
        return None if self.state is None else Seen(self.state, self.memory.token if self.memory else "")

    def put(self, instant: float, reading: CounterReading) -> Bucket | None:
        """Take what was read at `instant`; answers with the bucket that this closes, if any. Raises UnknownBase."""
        memory, self.memory = self.memory, None
        self.memory, step = take(memory, reading)
        step.rows["node", f"node-{self.node_id}"] = node_total(step, self.memory.waiting)
        self.turn += 1
        if not step.seconds:
            # What was before a silence says nothing about now.
            self.recent.clear()
        self.recent.append(step)
        while sum(each.seconds for each in self.recent) - self.recent[0].seconds >= WINDOW:
            self.recent.popleft()
        closed = self.close(instant)
        self.open_at = start_of(instant, SHORT)
        self.parts.append(step)
        return closed

    def close(self, instant: float) -> Bucket | None:
        """The bucket that was being filled, if its time is over at `instant`."""
        if not self.parts or start_of(instant, SHORT) <= self.open_at:
            return None
        rows = fold(self.parts)
        # Pools that rest have a row in one bucket of each minute: not of all nodes in the same one.
        if self.memory is not None and (self.open_at // SHORT + self.node_id) % (LONG // SHORT) == 0:
            seconds = sum(step.seconds for step in self.parts)
            for key in self.memory.rows:
                if key[0] == "backend" and key not in rows:
                    rows[key] = self.memory.at_rest(key, seconds)
        self.parts = []
        return Bucket(self.open_at, self.node_id, rows)

    def change(self, at: float, reading: CounterReading) -> Change:
        """What the reading that was put in last moved in the live numbers. Call it once for each."""
        step, moved, memory = self.recent[-1], self.window(), self._known()
        rests = self.rests(self._moved - moved.keys())
        told = {(row.kind, row.object_id) for row in reading.rows}
        told |= {("backend", pool) for pool in reading.latency_buckets}
        counters = replace(
            reading,
            rows=tuple([memory.rows[key] for key in told if key in memory.rows]),
            latency_buckets=memory.latency,
        )
        # Where no time was known, all rows are to be told anew: their rates become unknown, and known again.
        begins = any(not each.seconds for each in list(self.recent)[-2:])
        change = Change(
            "" if begins else f"{self.name}:{self.turn - 1}",
            f"{self.name}:{self.turn}",
            LiveNode(at, moved | rests, reading.in_use, seconds=self.seconds),
            counters,
            (self._moved | step.gone) - moved.keys() - rests.keys(),
            step.gone,
            lambda: self._everything(at, reading),
        )
        self._moved = set(moved)
        return change

    def _everything(self, at: float, reading: CounterReading) -> tuple[LiveNode, CounterReading]:
        moved, memory = self.window(), self._known()
        whole = self.rests(memory.rows.keys() - moved.keys()) | moved
        rows = tuple(memory.rows.values())
        window = LiveNode(at, whole, reading.in_use, seconds=self.seconds)
        return window, replace(reading, rows=rows, latency_buckets=memory.latency)

    def _known(self) -> Memory:
        if self.memory is None:
            raise LookupError(f"nothing was read of node {self.node_id} yet")
        return self.memory

    @property
    def seconds(self) -> float:
        """How long the window is."""
        return sum(step.seconds for step in self.recent)

    def window(self) -> dict[Key, Counts]:
        """What moved in about the last ten seconds; objects that the last reading did not know are gone."""
        there = {} if self.memory is None else self.memory.rows
        whole = fold(self.recent)
        return {key: counts for key, counts in whole.items() if key in there or key[0] in (*RESTING, "node")}

    def rests(self, keys: Iterable[Key]) -> dict[Key, Counts]:
        """Those of the keys that are rows of the node and say something while nothing happens."""
        if self.memory is None:
            return {}
        seconds, there = self.seconds, self.memory.rows
        return {key: self.memory.at_rest(key, seconds) for key in keys if key in there and key[0] not in RESTING}


def into_one(rows: Iterable[tuple[int, Key, Counts]]) -> dict[tuple[int, Key], Counts]:
    """Rows `(node id, key, counts)` of one coarser bucket, in order of time, as one row per object.

    Buckets in which an object rested were not stored; the time that its node was observed counts all the same.
    """
    whole: dict[tuple[int, Key], Counts] = {}
    for node_id, key, counts in rows:
        whole.setdefault((node_id, key), Counts()).add(counts)
    observed = {node_id: counts.seconds for (node_id, key), counts in whole.items() if key[0] == "node"}
    for (node_id, _), counts in whole.items():
        counts.seconds = max(counts.seconds, observed.get(node_id, 0.0))
    return whole
