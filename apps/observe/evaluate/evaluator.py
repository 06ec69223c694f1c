"""Brings the facts of a tick (definitions, readings, the last minute) before `conditions.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from apps.definitions.models import Pool, Server
from apps.definitions.previewing.node_words import in_words
from apps.definitions.serving import clouds_alone
from apps.observe.collect.buckets import Bucket
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
from apps.observe.evaluate.facts import LOAD_S, Facts, Loads, Servers
from apps.observe.evaluate.node_certificates import evaluate_certificate
from apps.observe.services import certificate_ends_at

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


class Named(Protocol):
    """A node, as far as verdicts need one."""

    name: str


@dataclass(slots=True)
class ConditionEvaluator:
    """What verdicts need beyond one tick: definitions (read again each ten seconds) and the last six buckets.

    Of several collectors each gives the verdicts on its own nodes, and hands `facts` of them to the one that leads.
    """

    servers: list[Known] = field(default_factory=list)
    pools: frozenset[int] = frozenset()
    of_clouds: frozenset[int] = frozenset()
    names: dict[int, str] = field(default_factory=dict)
    read_at: datetime | None = None
    patient_until: datetime | None = None
    answered: dict[int, datetime] = field(default_factory=dict)
    ends_at: dict[int, datetime | None] = field(default_factory=dict)  # of the certificate that a node showed last
    loads: Loads = field(default_factory=Loads)
    of_nodes: Servers = field(default_factory=Servers)
    counting: Counting = field(default_factory=Counting)

    def hear(self, bucket: Bucket) -> None:
        """A bucket is over."""
        self.loads.hear(bucket)

    def existing(self) -> dict[str, Collection[int]]:
        """Primary keys of what may have verdicts."""
        return {"pool": self.pools, "server": [server.pk for server in self.servers]}

    def be_patient(self, instant: datetime) -> None:
        """Nodes change hands: what nobody reports on for a moment is not unknown yet."""
        self.patient_until = instant + PATIENCE

    def evaluate(self, nodes: Mapping[int, Named], readings: Mapping[int, Reading], instant: datetime) -> list[Verdict]:
        """Every verdict that can be given now by a collector that reads all nodes."""
        found = self.evaluate_nodes(nodes, readings, {pk: node.name for pk, node in nodes.items()}, instant)
        return found + self.evaluate_pools(self.facts(nodes, instant), instant)

    def evaluate_nodes(
        self, nodes: Collection[int], readings: Mapping[int, Reading], names: Mapping[int, str], instant: datetime
    ) -> list[Verdict]:
        """The verdicts on these nodes; `names` are those of all."""
        self._refresh(instant)
        for node_id, reading in readings.items():
            if reading.state is not None:
                self.answered[node_id] = reading.at
        found = [verdict for node in nodes for verdict in self._evaluate_node(node, readings.get(node), instant)]
        own = {node_id: reading for node_id, reading in readings.items() if node_id in nodes}
        return found + self._evaluate_counting(own, names)

    def facts(self, nodes: Collection[int], instant: datetime) -> Facts:
        """What those of these nodes say that answer."""
        fresh = [node_id for node_id in nodes if self._answers(node_id, instant)]
        loads = self.loads.since(instant.timestamp() - LOAD_S)
        return Facts(self.of_nodes.by(fresh), loads, observed=frozenset(self.loads.buckets))

    def evaluate_pools(self, facts: Facts, instant: datetime) -> list[Verdict]:
        """The verdicts on servers and pools, by what all nodes say."""
        self._refresh(instant)
        patient = self.patient_until is not None and instant < self.patient_until
        of_pools: dict[int, list[ServerFacts]] = defaultdict(list)
        for server in self.servers:
            words, check = facts.servers.get(server.pk, ((), ""))
            of_pools[server.pool_id].append(ServerFacts(server.pk, server.name, server.region, words, check))
        found = []
        for pool_id in self.pools - self.of_clouds:
            servers = of_pools[pool_id]
            found += self._evaluate_load(pool_id, facts)
            if patient and any(not server.statuses for server in servers):
                continue
            found += [evaluate_server(server) for server in servers]
            found.append(evaluate_pool(pool_id, servers))
        return found

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

    def _evaluate_node(self, node_id: int, reading: Reading | None, instant: datetime) -> list[Verdict]:
        state = reading.state if reading else None
        if reading is not None and state is not None:
            drift, error = tuple(in_words(word) for word in state.drift), in_words(state.last_error)
            facts = NodeFacts(node_id, True, "", state.generation, state.serving, drift, error)
            waits, ahead = in_words(state.unavailable), reading.clock_ahead_s
            fitness = FitnessFacts(
                node_id, state.haproxy_version, waits, ahead, state.generation, (state.agent_version, state.protocols)
            )
            self.ends_at[node_id] = certificate_ends_at(state)
            certificate = evaluate_certificate(node_id, self.ends_at[node_id], instant, revoked=False)
            return evaluate_node(facts) + evaluate_fitness(fitness) + certificate
        if reading is None or (self._answers(node_id, instant) and not reading.revoked):
            # Still being read, or silent for a moment only: the verdict of before stands.
            return []
        certificate = evaluate_certificate(node_id, self.ends_at.get(node_id), instant, revoked=reading.revoked)
        silent = evaluate_node(NodeFacts(node_id, False, in_words(reading.error)))
        return silent + unknown_fitness(node_id) + certificate

    def _evaluate_counting(self, readings: Mapping[int, Reading], names: Mapping[int, str]) -> list[Verdict]:
        """By nodes that the same collector reads, for only their readings are of the same moment."""
        facts = {
            node_id: CountFacts(node_id, reading.counters.peers, reading.counters.admitted)
            for node_id, reading in readings.items()
            if reading.counters is not None
        }
        return self.counting.evaluate(facts, names, self.names)

    def _evaluate_load(self, pool_id: int, facts: Facts) -> list[Verdict]:
        loads = facts.loads.get(pool_id, {})
        responses, failed = sum(load[0] for load in loads.values()), sum(load[1] for load in loads.values())
        lengths = [loads[at][2] if at in loads else 0 for at in sorted(facts.observed)] if loads else []
        return [evaluate_errors(pool_id, responses, failed), evaluate_queue(pool_id, lengths)]
