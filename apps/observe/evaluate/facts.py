"""What the nodes of one collector together say of servers and pools, so that one of several can judge them all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.observe.collect.buckets import Bucket
from apps.observe.collect.deltas import Counts, Key
from apps.observe.evaluate.conditions import UNRESOLVED, without_times

Said = tuple[tuple[str, ...], str]
Load = tuple[int, int, int]
Pair = tuple[int, int]
# Buckets that began longer ago are no part of the last minute.
LOAD_S = 75


@dataclass(frozen=True, slots=True)
class Facts:
    """Servers by primary key: HAProxy's words for them, without repeats, and the check of one that is down.

    Pools by primary key: for each bucket (Unix seconds) responses, 5xx among them, and what waited. Pairs of regions:
    the shortest way between them in ms. `observed` are the buckets of the last minute in which nodes were read.
    """

    servers: Mapping[int, Said] = field(default_factory=dict)
    loads: Mapping[int, Mapping[int, Load]] = field(default_factory=dict)
    trips: Mapping[Pair, int] = field(default_factory=dict)
    observed: frozenset[int] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """For the row of a collector."""
        return {
            "servers": [[pk, list(words), check] for pk, (words, check) in self.servers.items()],
            "loads": [[pk, at, *load] for pk, buckets in self.loads.items() for at, load in buckets.items()],
            "trips": [[*pair, ms] for pair, ms in self.trips.items()],
            "observed": sorted(self.observed),
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Facts:
        """What `to_json` made; of a row without facts, none."""
        loads: dict[int, dict[int, Load]] = {}
        for pk, at, responses, failed, waiting in said.get("loads", ()):
            loads.setdefault(pk, {})[at] = (responses, failed, waiting)
        servers = {pk: (tuple(words), check) for pk, words, check in said.get("servers", ())}
        trips = {(home, away): ms for home, away, ms in said.get("trips", ())}
        return cls(servers, loads, trips, frozenset(said.get("observed", ())))


def merged(several: Collection[Facts]) -> Facts:
    """As one collector would say it that reads all the nodes."""
    if len(several) == 1:
        return next(iter(several))
    servers: dict[int, Said] = {}
    loads: dict[int, dict[int, Load]] = {}
    trips: dict[Pair, int] = {}
    for facts in several:
        for pk, (words, check) in facts.servers.items():
            before = servers.get(pk, ((), ""))
            servers[pk] = tuple(sorted({*before[0], *words})), before[1] or check
        for pk, buckets in facts.loads.items():
            for at, load in buckets.items():
                sums = loads.setdefault(pk, {})
                sums[at] = _sum(sums.get(at, (0, 0, 0)), load)
        for pair, ms in facts.trips.items():
            trips[pair] = min(ms, trips.get(pair, ms))
    return Facts(servers, loads, trips, frozenset().union(*(facts.observed for facts in several)))


def servers_in(windows: Iterable[Mapping[Key, Counts]]) -> dict[int, Said]:
    """What these nodes say of servers; a check is told only of one that is down, for it changes all the time."""
    words: dict[int, set[str]] = {}
    checks: dict[int, str] = {}
    for window in windows:
        for (kind, name), counts in window.items():
            if kind == "server":
                pk = int(name[4:])
                words.setdefault(pk, set()).add(counts.status)
                if pk not in checks and (counts.status == UNRESOLVED or counts.status.startswith("DOWN")):
                    checks[pk] = without_times(counts.check)
    return {pk: (tuple(sorted(said)), checks.get(pk, "")) for pk, said in words.items()}


@dataclass(slots=True)
class Loads:
    """Responses and queues of pools in the buckets of the last minute, summed as they close."""

    buckets: dict[int, dict[int, Load]] = field(default_factory=dict)

    def hear(self, bucket: Bucket) -> None:
        """A bucket of one node is over."""
        pools = self.buckets.setdefault(bucket.at, {})
        for (kind, name), counts in bucket.rows.items():
            if kind == "backend" and not counts.idle:
                answered = counts.status_2xx + counts.status_3xx + counts.status_4xx + counts.status_5xx
                pk = int(name[5:])
                pools[pk] = _sum(pools.get(pk, (0, 0, 0)), (answered, counts.status_5xx, counts.queue_now))

    def since(self, oldest: float) -> dict[int, dict[int, Load]]:
        """By pool and bucket; what is older is forgotten."""
        for at in [at for at in self.buckets if at < oldest]:
            del self.buckets[at]
        found: dict[int, dict[int, Load]] = {}
        for at, pools in sorted(self.buckets.items()):
            for pk, load in pools.items():
                found.setdefault(pk, {})[at] = load
        return found


def _sum(one: Load, other: Load) -> Load:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
