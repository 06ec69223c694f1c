"""Brings the facts of a tick (definitions, readings, the last minute) before `conditions.py`."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apps.definitions.models import Pool, Server
from apps.definitions.previewing.node_words import in_words
from apps.definitions.serving import clouds_alone
from apps.fleet.models import Node
from apps.observe.collect.buckets import Bucket
from apps.observe.collect.deltas import Counts, Key
from apps.observe.collect.fitness import FitnessFacts, evaluate_fitness, unknown_fitness
from apps.observe.collect.readings import Reading
from apps.observe.evaluate.conditions import (
    NodeFacts,
    ServerFacts,
    Verdict,
    evaluate_errors,
    evaluate_node,
    evaluate_pool,
    evaluate_queue,
    evaluate_server,
)
from apps.observe.evaluate.counting import CountFacts, Counting

Windows = Mapping[int, Mapping[Key, Counts]]
REFRESH = timedelta(seconds=10)
# A node may miss a few readings (a reload, a busy machine) before it counts as one that does not answer.
PATIENCE = timedelta(seconds=8)


@dataclass(frozen=True, slots=True)
class Known:
    """A server as it is defined."""

    pk: int
    name: str
    region: str
    pool_id: int


@dataclass(slots=True)
class ConditionEvaluator:
    """What verdicts need beyond one tick: definitions (read again each ten seconds) and the last six buckets."""

    servers: list[Known] = field(default_factory=list)
    pools: frozenset[int] = frozenset()
    of_clouds: frozenset[int] = frozenset()
    names: dict[int, str] = field(default_factory=dict)
    nodes: frozenset[int] = frozenset()
    read_at: datetime | None = None
    answered: dict[int, datetime] = field(default_factory=dict)
    minute: dict[int, deque[Bucket]] = field(default_factory=dict)
    counting: Counting = field(default_factory=Counting)

    def hear(self, bucket: Bucket) -> None:
        """A bucket is over: the last six of each node are the last minute."""
        self.minute.setdefault(bucket.node_id, deque(maxlen=6)).append(bucket)

    def existing(self) -> dict[str, Collection[int]]:
        """Primary keys of what may have verdicts."""
        return {"node": self.nodes, "pool": self.pools, "server": [server.pk for server in self.servers]}

    def evaluate(
        self, nodes: Mapping[int, Node], readings: Mapping[int, Reading], windows: Windows, instant: datetime
    ) -> list[Verdict]:
        """Every verdict that can be given now."""
        self._refresh(instant)
        self.nodes = frozenset(nodes)
        for node_id, reading in readings.items():
            if reading.state is not None:
                self.answered[node_id] = reading.at
        found = [verdict for node in nodes.values() for verdict in self._evaluate_node(node, readings, instant)]
        found += self._evaluate_counting(nodes, readings)
        fresh = [node_id for node_id in nodes if self._answers(node_id, instant) and node_id in windows]
        return found + self._evaluate_pools(nodes, {node_id: windows[node_id] for node_id in fresh}, instant)

    def _refresh(self, instant: datetime) -> None:
        if self.read_at is not None and instant - self.read_at < REFRESH:
            return
        # What only clouds serve is judged by their own checks (apps/stacks/cloud/): no client comes to it here.
        self.of_clouds = clouds_alone()
        rows = Server.objects.exclude(backend__pool__in=self.of_clouds)
        fields = rows.values_list("pk", "name", "backend__region__title", "backend__pool_id")
        self.servers = [Known(*row) for row in fields.order_by("name")]
        pools = Pool.objects.values_list("pk", "account__name", "name")
        self.names = {pk: f"{account}/{name}" for pk, account, name in pools}
        self.pools = frozenset(self.names)
        self.read_at = instant

    def _answers(self, node_id: int, instant: datetime) -> bool:
        answered = self.answered.get(node_id)
        return answered is not None and instant - answered <= PATIENCE

    def _evaluate_node(self, node: Node, readings: Mapping[int, Reading], instant: datetime) -> list[Verdict]:
        reading = readings.get(node.pk)
        state = reading.state if reading else None
        if state is not None:
            drift, error = tuple(in_words(word) for word in state.drift), in_words(state.last_error)
            facts = NodeFacts(node.pk, True, "", state.generation, state.serving, drift, error)
            ahead = reading.clock_ahead_s if reading else None
            fitness = FitnessFacts(node.pk, state.haproxy_version, in_words(state.unavailable), ahead, state.generation)
            return evaluate_node(facts) + evaluate_fitness(fitness)
        if reading is None or self._answers(node.pk, instant):
            # Still being read, or silent for a moment only: the verdict of before stands.
            return []
        return evaluate_node(NodeFacts(node.pk, False, in_words(reading.error))) + unknown_fitness(node.pk)

    def _evaluate_counting(self, nodes: Mapping[int, Node], readings: Mapping[int, Reading]) -> list[Verdict]:
        facts = {
            node_id: CountFacts(node_id, reading.counters.peers, reading.counters.admitted)
            for node_id, reading in readings.items()
            if reading.counters is not None and node_id in nodes
        }
        return self.counting.evaluate(facts, {node_id: node.name for node_id, node in nodes.items()}, self.names)

    def _evaluate_pools(self, nodes: Mapping[int, Node], windows: Windows, instant: datetime) -> list[Verdict]:
        facts: dict[int, list[ServerFacts]] = defaultdict(list)
        for server in self.servers:
            key = ("server", f"srv-{server.pk}")
            seen = [window[key] for window in windows.values() if key in window]
            words = tuple(counts.status for counts in seen)
            worst = next((counts for counts in seen if counts.status.startswith("DOWN")), seen[0] if seen else None)
            check = worst.check if worst else ""
            facts[server.pool_id].append(ServerFacts(server.pk, server.name, server.region, words, check))
        found = [evaluate_server(server) for servers in facts.values() for server in servers]
        for pool_id in self.pools - self.of_clouds:
            found.append(evaluate_pool(pool_id, facts[pool_id]))
            found += self._evaluate_load(pool_id, nodes, instant)
        return found

    def _evaluate_load(self, pool_id: int, nodes: Mapping[int, Node], instant: datetime) -> list[Verdict]:
        key = ("backend", f"pool-{pool_id}")
        responses = failed = 0
        lengths: dict[int, int] = defaultdict(int)
        oldest = instant.timestamp() - 75
        for node_id in nodes:
            for bucket in self.minute.get(node_id, ()):
                if bucket.at >= oldest and (counts := bucket.rows.get(key)) is not None:
                    failed += counts.status_5xx
                    responses += counts.status_2xx + counts.status_3xx + counts.status_4xx + counts.status_5xx
                    lengths[bucket.at] += counts.queue_now
        return [
            evaluate_errors(pool_id, responses, failed),
            evaluate_queue(pool_id, [lengths[at] for at in sorted(lengths)]),
        ]
