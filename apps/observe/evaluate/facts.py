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


@dataclass(slots=True)
class Servers:
    """What nodes say of servers, kept by what they say otherwise; of silent nodes it is kept and does not count.

    A check is told only of a server that is down, for it changes all the time.
    """

    _of_node: dict[int, dict[int, tuple[str, str]]] = field(default_factory=dict)
    _nodes: dict[int, set[int]] = field(default_factory=dict)
    _heard: frozenset[int] = frozenset()
    _changed: set[int] = field(default_factory=set)
    _said: dict[int, Said] = field(default_factory=dict)

    def hear(self, node_id: int, rows: Mapping[Key, Counts], gone: Iterable[Key] = ()) -> None:
        """These rows of a node are others than before, and those went."""
        known = self._of_node.setdefault(node_id, {})
        for kind, name in gone:
            if kind == "server" and known.pop(pk := int(name[4:]), None) is not None:
                self._nodes[pk].discard(node_id)
                self._changed.add(pk)
        for (kind, name), counts in rows.items():
            if kind == "server":
                tells = counts.status == UNRESOLVED or counts.status.startswith("DOWN")
                said = counts.status, without_times(counts.check) if tells else ""
                if known.get(pk := int(name[4:])) != said:
                    known[pk] = said
                    self._nodes.setdefault(pk, set()).add(node_id)
                    self._changed.add(pk)

    def forget(self, node_id: int) -> None:
        """The node is another's to read."""
        for pk in self._of_node.pop(node_id, {}):
            self._nodes[pk].discard(node_id)
            self._changed.add(pk)

    def by(self, nodes: Collection[int]) -> dict[int, Said]:
        """What these nodes say together, of each server that one of them has."""
        heard = frozenset(nodes) & self._of_node.keys()
        for node_id in heard ^ self._heard:
            self._changed |= self._of_node.get(node_id, {}).keys()
        self._heard = heard
        for pk in self._changed:
            told = [self._of_node[node_id][pk] for node_id in sorted(self._nodes[pk] & heard)]
            if told:
                checks = [check for _, check in told if check]
                self._said[pk] = tuple(sorted({word for word, _ in told})), checks[0] if checks else ""
            else:
                self._said.pop(pk, None)
            if not self._nodes[pk]:
                del self._nodes[pk]
        self._changed.clear()
        return dict(self._said)


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
