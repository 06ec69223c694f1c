"""Deltas are gathered per node into buckets of ten seconds, and those into minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from apps.observe.collect.deltas import RESTING, Counts, Key, fold, node_total

SHORT = 10
LONG = 60
# Live numbers are means over this many seconds: shorter ones jump, longer ones lag.
WINDOW = 10.0


def start_of(instant: float, resolution: int) -> int:
    """Unix seconds at which the bucket that holds `instant` began."""
    return int(instant) // resolution * resolution


@dataclass(frozen=True, slots=True)
class Bucket:
    """What happened on one node in the ten seconds from `at` (Unix seconds)."""

    at: int
    node_id: int
    rows: dict[Key, Counts]

    def worth_storing(self) -> Iterator[tuple[Key, Counts]]:
        """The rows that say something: idle objects only once a minute, idle routes never."""
        whole_minute = self.at % LONG == 0
        for key, counts in self.rows.items():
            if key[0] == "node" or not counts.idle or (whole_minute and key[0] not in RESTING):
                yield key, counts


@dataclass(slots=True)
class Gatherer:
    """One node's deltas: the bucket being filled, and the recent ones for live numbers.

    `open_at` is the start of the bucket being filled.
    """

    node_id: int
    open_at: int = 0
    parts: list[dict[Key, Counts]] = field(default_factory=list)
    recent: deque[dict[Key, Counts]] = field(default_factory=lambda: deque(maxlen=60))

    def put(self, instant: float, rows: dict[Key, Counts]) -> Bucket | None:
        """Take the deltas read at `instant`; answers with the bucket that this closes, if any."""
        total = node_total(rows)
        rows["node", f"node-{self.node_id}"] = total
        self.recent.append(rows)
        while sum(_seconds(part) for part in self.recent) - _seconds(self.recent[0]) >= WINDOW:
            self.recent.popleft()
        closed = self.close(instant)
        self.open_at = start_of(instant, SHORT)
        self.parts.append(rows)
        return closed

    def close(self, instant: float) -> Bucket | None:
        """The bucket that was being filled, if its time is over at `instant`."""
        if not self.parts or start_of(instant, SHORT) <= self.open_at:
            return None
        bucket = Bucket(self.open_at, self.node_id, fold(self.parts))
        self.parts = []
        return bucket

    def window(self) -> dict[Key, Counts]:
        """About the last ten seconds; objects that the last reading did not know are gone."""
        whole = fold(self.recent)
        newest = self.recent[-1] if self.recent else {}
        return {key: counts for key, counts in whole.items() if key in newest or key[0] in RESTING}


def _seconds(part: dict[Key, Counts]) -> float:
    return max((counts.seconds for key, counts in part.items() if key[0] == "node"), default=0.0)


def into_minutes(rows: Iterable[tuple[int, Key, Counts]]) -> dict[tuple[int, Key], Counts]:
    """Rows `(node id, key, counts)` of one minute, in order of time, as one row per object.

    Buckets in which an object rested were not stored; the time that its node was observed counts all the same.
    """
    whole: dict[tuple[int, Key], Counts] = {}
    for node_id, key, counts in rows:
        whole.setdefault((node_id, key), Counts()).add(counts)
    observed = {node_id: counts.seconds for (node_id, key), counts in whole.items() if key[0] == "node"}
    for (node_id, _), counts in whole.items():
        counts.seconds = max(counts.seconds, observed.get(node_id, 0.0))
    return whole
