"""Counters that go on over reloads: each worker of HAProxy begins at zero, the node's totals do not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import add, itemgetter, lt, sub
from typing import Any

from apps.agent.process.counters import COUNTED, nothing, take_off_probes

Key = tuple[str, str]  # the kind of a row and its object's id; of a bucket of latency its pool and upper bound
Counts = tuple[int, ...]
# A worker knows these only from their first request on.
COME_LATE = frozenset({"route", "flow", "rejected"})
LATENCY = "latency"
# Routes that came and went; rather than more, all begins anew.
MOST_ROWS = 200_000
# Probes that may come between two of a worker's answers. Collectors know the same (WAVERS), for agents of before.
FEW = 20
_counted: Callable[[Mapping[str, Any]], Counts] = itemgetter(*COUNTED)


@dataclass(frozen=True)
class Leaving:
    """What a worker that is leaving had counted when it was replaced or read last, the agent's own probes aside."""

    counts: dict[Key, Counts]
    probes: Mapping[str, int]


class Totals:
    """What this agent saw its workers count. Who reads and adds holds one lock meanwhile, so that none comes too late.

    `leaving` are workers (`pid-start`) before the current one whose last requests may still count.
    `epoch` is the worker that it found or started first. A reader who knows another epoch may count all of the new one,
    unless it is `resumed`: then that worker ran before this agent did, and some of its counts may have been told of.
    """

    def __init__(self) -> None:
        self._began = time.time()
        self._worker = ""
        self._epoch = ""
        self._resumed = False
        self._earlier: dict[Key, Counts] = {}
        self._last: dict[Key, Counts] = {}
        self._probes: Mapping[str, int] = {}
        self.leaving: dict[str, Leaving] = {}

    def add(self, samples: dict[str, Any]) -> dict[str, Any]:
        """What the current worker counted, with all that was counted before it."""
        probes = _most(self._probes if samples["epoch"] == self._worker else {}, samples["probes"])
        take_off_probes(samples["rows"], probes)
        counts = _counts(samples)
        if samples["epoch"] != self._worker:
            self._next_worker(samples["epoch"], counts)
        else:
            counts |= {key: self._steady(key, now) for key, now in counts.items() if key[0] == "frontend"}
            told = counts.get
            # Most rows rest: what is equal is asked nothing more.
            moved = [(key, before, now) for key, before in self._last.items() if (now := told(key)) != before]
            self._keep(key for key, before, now in moved if _fell(before, now))
        self._last, self._probes = counts, probes
        return {
            **{name: value for name, value in samples.items() if name != "probes"},
            "epoch": self._epoch,
            "resumed": self._resumed,
            "rows": [*self._going_on(samples["rows"]), *self._resting()],
            "latency_buckets": self._latency(),
        }

    def add_late(self, worker: str, samples: Mapping[str, Any]) -> bool:
        """What a worker that leaves counted since it was replaced; False where another one answered."""
        if worker != samples["epoch"] or worker not in self.leaving:
            return False
        take_off_probes(samples["rows"], _most(self.leaving[worker].probes, samples["probes"]))
        known, counts = self.leaving[worker].counts, _counts(samples)
        for key, now in counts.items():
            before = known.get(key, (0,) * len(now))
            if now != before and not _fell(before, now):
                self._add(key, tuple(map(sub, now, before)))
                known[key] = now
        return True

    def forget(self, workers: Iterable[str]) -> None:
        """They have left."""
        for worker in workers:
            self.leaving.pop(worker, None)

    def _next_worker(self, worker: str, counts: Mapping[Key, Counts]) -> None:
        if self._worker and len(self._earlier) <= MOST_ROWS:
            self._keep(self._last)
            self.leaving[self._worker] = Leaving(self._last, self._probes)
            gone = [key for key in self._earlier if key[0] not in COME_LATE and not _is_there(key, counts)]
            for key in gone:
                del self._earlier[key]
        else:
            self._resumed = not self._worker and _start_of(worker) < self._began
            self._epoch = worker
            self._earlier, self.leaving = {}, {}
        self._worker = worker

    def _keep(self, keys: Iterable[Key]) -> None:
        """These rows begin anew: what they stood at is kept."""
        for key in keys:
            self._add(key, self._last[key])

    def _steady(self, key: Key, now: Counts) -> Counts:
        """A listener's counts without a fall by a few: probes are taken off what was read a moment before."""
        before = self._last.get(key, now)
        return tuple(map(max, before, now)) if max(map(sub, before, now)) <= FEW else now

    def _add(self, key: Key, more: Counts) -> None:
        before = self._earlier.get(key)
        self._earlier[key] = more if before is None else tuple(map(add, before, more))

    def _going_on(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The worker's own rows, with what was counted before it."""
        earlier_of = self._earlier.get
        for row in rows if self._earlier else [row for row in rows if row["kind"] == "frontend"]:
            key = row["kind"], row["object_id"]
            counts, earlier = self._last[key], earlier_of(key)
            row.update(zip(COUNTED, counts if earlier is None else map(add, counts, earlier)))
        return rows

    def _resting(self) -> Iterable[dict[str, Any]]:
        """Rows of which this worker has counted nothing yet."""
        for (kind, name), earlier in self._earlier.items():
            if kind in COME_LATE and (kind, name) not in self._last:
                parent = name.partition("/")[0] if kind == "flow" else ""
                yield nothing(kind, name, parent) | dict(zip(COUNTED, earlier))

    def _latency(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for counted in (self._earlier, self._last):
            for (kind, name), counts in counted.items():
                if kind == LATENCY:
                    pool, _, bound = name.rpartition("/")
                    buckets = found.setdefault(pool, {})
                    buckets[bound] = buckets.get(bound, 0) + counts[0]
        return found


def _counts(samples: Mapping[str, Any]) -> dict[Key, Counts]:
    """Rows as so many numbers, buckets of latency as one each."""
    rows = {(row["kind"], row["object_id"]): _counted(row) for row in samples["rows"]}
    buckets = {
        (LATENCY, f"{pool}/{bound}"): (count,)
        for pool, found in samples["latency_buckets"].items()
        for bound, count in found.items()
    }
    return rows | buckets


def _most(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Probes by listener: a worker that stops empties its tables, and counts its listeners' requests all the same."""
    return {**before, **{name: max(count, before.get(name, 0)) for name, count in now.items()}}


def _fell(before: Counts, now: Counts | None) -> bool:
    return now is None or any(map(lt, now, before))


def _is_there(key: Key, counts: Mapping[Key, Counts]) -> bool:
    """Whether the worker has the object: a listener, pool or server, or the pool of a bucket."""
    return (("backend", key[1].rpartition("/")[0]) if key[0] == LATENCY else key) in counts


def _start_of(worker: str) -> int:
    """When it began, in Unix seconds."""
    return int(worker.rpartition("-")[2] or 0)
