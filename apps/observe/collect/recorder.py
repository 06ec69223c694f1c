"""What one tick of the collector learned becomes rows, verdicts and live numbers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from apps.core.clock import now
from apps.core.events import publish
from apps.drivers.proxy.contract import Seen
from apps.fleet.models import Node
from apps.fleet.services import record_latency
from apps.observe import rolling, services
from apps.observe.collect import lease
from apps.observe.collect.buckets import LONG, SHORT, Bucket, Gatherer, start_of
from apps.observe.collect.deltas import Step, UnknownBase
from apps.observe.collect.others import Others
from apps.observe.collect.readings import Reading
from apps.observe.collect.reports import Reports
from apps.observe.evaluate import identity, limit_use, lost_pools, server_sources
from apps.observe.evaluate.conditions import Verdict
from apps.observe.evaluate.evaluator import ConditionEvaluator
from apps.observe.evaluate.facts import Facts, merged
from apps.observe.live import store as live
from apps.observe.models import Sample

# While the database is away, samples wait: a minute of a thousand nodes, four hours of four.
PENDING = 6000
END_OF_TIME = 1e12
# The quickest of so many seconds counts: whatever comes in between only makes a way longer.
DISTANCES_EVERY = 30


@dataclass(frozen=True, slots=True)
class Watched:
    """A node as a tick needs it."""

    name: str
    region_id: int


@dataclass(slots=True)
class Recorder:
    """The memory of a collector between ticks. With a `holder` it keeps to the shards that this one holds.

    `said` are the verdicts as they were stored last; they are forgotten each minute, so that what somebody else changed
    is written again.
    """

    holder: str = ""
    shards: frozenset[int] = lease.EVERY
    gatherers: dict[int, Gatherer] = field(default_factory=dict)
    pending: deque[Bucket] = field(default_factory=lambda: deque(maxlen=PENDING))
    evaluator: ConditionEvaluator = field(default_factory=ConditionEvaluator)
    others: Others = field(default_factory=Others)
    told: dict[int, object] = field(default_factory=dict)
    said: dict[tuple[str, int, str], Verdict] = field(default_factory=dict)
    reports: Reports = field(default_factory=Reports)
    tended: int = 0
    hours_from: float = 0.0
    trips: dict[tuple[int, int], int] = field(default_factory=dict)
    measured: int = 0

    @property
    def leads(self) -> bool:
        """Whether this collector gives the verdicts on what several see a part of, and tidies."""
        return lease.LEADER in self.shards

    def owns(self, node_id: int) -> bool:
        """Whether the node is ours to read."""
        return lease.shard_of(node_id) in self.shards

    def hold(self, shards: frozenset[int]) -> None:
        """From now on these shards are ours: forget nodes of others, begin with new ones. Raises django.db.Error."""
        if shards == self.shards:
            return
        new = shards - self.shards
        self.shards = shards
        self.evaluator.be_patient(now())
        for node_id in {*self.gatherers, *self.told}:
            if not self.owns(node_id):
                self._forget(node_id)
        self.pending = deque((each for each in self.pending if self.owns(each.node_id)), maxlen=PENDING)
        self.said.clear()
        self.seed(new)

    def _forget(self, node_id: int) -> None:
        self.gatherers.pop(node_id, None)
        self.told.pop(node_id, None)
        self.evaluator.of_nodes.forget(node_id)
        self.reports.forget(node_id)

    def seed(self, shards: Collection[int] = lease.EVERY) -> None:
        """Go on with the buckets that another collector began: what it counted is the first part."""
        at = start_of(now().timestamp(), SHORT)
        rows = Sample.objects.filter(resolution=SHORT, at=datetime.fromtimestamp(at, now().tzinfo))
        nodes = [pk for pk in Node.objects.values_list("pk", flat=True) if lease.shard_of(pk) in shards]
        found = services.counts_of(rows.filter(node_id__in=nodes), "node", "kind", "object_id") if nodes else ()
        for (node_id, *key), counts in found:
            gatherer = self.gatherers.setdefault(node_id, Gatherer(node_id, open_at=at))
            gatherer.parts = gatherer.parts or [Step(0.0)]
            gatherer.parts[0].rows[key[0], key[1]] = counts
            gatherer.parts[0].seconds = max(gatherer.parts[0].seconds, counts.seconds)

    def gather(self, readings: Iterable[Reading]) -> None:
        """Counters become deltas, deltas fill buckets. No I/O."""
        for reading in readings:
            if reading.counters is None:
                continue
            if (gatherer := self.gatherers.get(reading.node_id)) is None:
                gatherer = self.gatherers[reading.node_id] = Gatherer(reading.node_id)
            try:
                bucket = gatherer.put(reading.at.timestamp(), reading.counters)
            except UnknownBase:
                # It says nothing by itself, and the next reading tells everything.
                self.evaluator.of_nodes.forget(reading.node_id)
                continue
            gatherer.state = reading.state
            if bucket:
                self._closed(bucket)
            step = gatherer.recent[-1]
            self.evaluator.of_nodes.hear(reading.node_id, step.rows, step.gone)

    def seen(self, node_id: int) -> Seen | None:
        """What the node need not tell again when it is read next."""
        gatherer = self.gatherers.get(node_id)
        return gatherer.seen if gatherer else None

    def close_buckets(self, instant: float) -> None:
        """Close what is over at `instant` (Unix seconds), also of nodes that fell silent."""
        for gatherer in self.gatherers.values():
            if bucket := gatherer.close(instant):
                self._closed(bucket)

    def _closed(self, bucket: Bucket) -> None:
        self.pending.append(bucket)
        self.evaluator.hear(bucket)

    def store(self, readings: Mapping[int, Reading], instant: datetime) -> list[int] | None:
        """Everything of this tick in one transaction; returns the nodes whose state moved. Raises django.db.Error.

        1. The fence: nothing of shards that may be another's by now, and None when that is all of them.
        2. Reports of nodes that answered, unless a push stored a newer one; errors of those that did not.
        3. Once in ten seconds what nodes count together. 4. Buckets that are over. 5. Verdicts that changed.
        """
        try:
            stored = self._store(readings, instant)
        except BaseException:
            # Nothing of it was written.
            self.reports.forget_all()
            self.others.tell_again()
            raise
        if stored is None:
            return None
        self.said |= stored
        self.pending.clear()
        return self._moved({node_id: each for node_id, each in readings.items() if self.owns(node_id)})

    def _store(self, readings: Mapping[int, Reading], instant: datetime) -> dict[tuple[str, int, str], Verdict] | None:
        with transaction.atomic():
            if self.holder:
                held = lease.renew(self.holder)
                if self.shards - held:
                    self.hold(self.shards & held)
                if not held:
                    return None
            rows = Node.objects.values_list("pk", "name", "fleet__region_id")
            everyone = {pk: Watched(name, region_id) for pk, name, region_id in rows}
            nodes = {pk: node for pk, node in everyone.items() if self.owns(pk)}
            readings = {node_id: reading for node_id, reading in readings.items() if node_id in nodes}
            self.reports.store(readings)
            self.reports.store_counted(readings, instant)
            buckets = [bucket for bucket in self.pending if bucket.node_id in nodes]
            services.store_buckets(
                SHORT, ((each.at, each.node_id, *row) for each in buckets for row in each.worth_storing())
            )
            names = {pk: node.name for pk, node in everyone.items()}
            new = self._new(self._verdicts(nodes, readings, names, instant))
            services.store_verdicts(new.values(), instant)
        self._note_distances(nodes, readings)
        for node_id in set(self.gatherers) - set(nodes):
            self._forget(node_id)
        return new

    def _verdicts(
        self, nodes: Collection[int], readings: Mapping[int, Reading], names: Mapping[int, str], instant: datetime
    ) -> list[Verdict]:
        found = self.evaluator.evaluate_nodes(nodes, readings, names, instant)
        facts = self.evaluator.facts(nodes, instant)
        if not self.leads:
            self.others.tell(self.holder, facts)
            return found
        several = self.others.hear(self.holder) if self.holder else []
        if self.others.changed:
            self.evaluator.be_patient(instant)
        return found + self.evaluator.evaluate_pools(merged([facts, *several]), instant)

    def _new(self, verdicts: Iterable[Verdict]) -> dict[tuple[str, int, str], Verdict]:
        """Those that were not stored just so before."""
        keyed = {(each.kind, each.object_id, each.type.value): each for each in verdicts}
        return {key: each for key, each in keyed.items() if self.said.get(key) != each}

    def _note_distances(self, nodes: Mapping[int, Watched], readings: Mapping[int, Reading]) -> None:
        """Remember the shortest way of any node of a region to each other region."""
        for node_id, reading in readings.items():
            if reading.counters is None:
                continue
            for name, ms in reading.counters.distances_ms.items():
                pair = nodes[node_id].region_id, int(name.removeprefix("rgn-"))
                self.trips[pair] = min(ms, self.trips.get(pair, ms))

    def measure(self, instant: datetime) -> None:
        """Each half minute: hand on how far regions are from each other. Raises django.db.Error."""
        if self.measured == (period := start_of(instant.timestamp(), DISTANCES_EVERY)):
            return
        if self.leads:
            trips = merged([Facts(trips=self.trips), *self.others.facts()]).trips
            for (from_region_id, to_region_id), ms in trips.items():
                record_latency(from_region_id=from_region_id, to_region_id=to_region_id, ms=ms)
        self.others.trips = dict(self.trips)
        self.trips.clear()
        self.measured = period

    def _moved(self, readings: Mapping[int, Reading]) -> list[int]:
        """Nodes that say something else than at the last tick."""
        moved = []
        for node_id, reading in readings.items():
            if self.told.get(node_id, ...) != reading.state:
                self.told[node_id] = reading.state
                moved.append(node_id)
        return moved

    def tend(self, instant: datetime) -> None:
        """Once a minute: roll up, prune a batch, forget verdicts on what is gone. Raises django.db.Error."""
        if self.begin_minute(instant):
            self.sum_up(instant, self.evaluator.existing())

    def begin_minute(self, instant: datetime) -> bool:
        """Once a minute: write verdicts and reports anew; whether the minute before is ours to sum up."""
        minute = start_of(instant.timestamp(), 60)
        # The last buckets of a minute are closed a tick or two after it ended.
        if minute == self.tended or instant.timestamp() - minute < SHORT:
            return False
        self.said.clear()
        self.reports.forget_all()
        self.tended = minute
        return self.leads

    @staticmethod
    def sum_up(instant: datetime, existing: Mapping[str, Collection[int]], wait: rolling.Wait = time.sleep) -> None:
        """Roll up, prune a batch, forget verdicts on what is gone but `existing`. Raises django.db.Error.

        It takes half a minute at a thousand nodes, and needs nothing of the collector that goes on meanwhile.
        """
        rolling.roll_up(start_of(instant.timestamp(), 60), wait)
        with transaction.atomic():
            services.store_verdicts(limit_use.evaluate_all(instant), instant)
            services.store_verdicts(identity.evaluate_all(instant), instant)
            services.store_verdicts(lost_pools.evaluate_all(), instant)
            services.store_verdicts(server_sources.evaluate_all(), instant)
        rolling.prune(instant)
        nodes = {"node": list(Node.objects.values_list("pk", flat=True))}
        every = nodes | dict(existing) | identity.existing() | lost_pools.existing() | server_sources.existing()
        for kind, keys in every.items():
            services.forget_verdicts(kind, keys)

    def make_hour(self, instant: datetime) -> None:
        """At each tick an hour of one node, until none is lacking; then look again in a minute.

        Raises django.db.Error.
        """
        if self.leads and instant.timestamp() >= self.hours_from and not rolling.roll_up_hour():
            self.hours_from = instant.timestamp() + LONG

    def show(self, readings: Mapping[int, Reading]) -> None:
        """Live numbers for open pages. Raises redis.RedisError."""
        live.write_changes(
            {
                node_id: self.gatherers[node_id].change(reading.at.timestamp(), reading.counters)
                for node_id, reading in readings.items()
                if reading.counters is not None and node_id in self.gatherers and self.gatherers[node_id].memory
            }
        )

    def tell(self, moved: Iterable[int], instant: datetime) -> None:
        """Wake open pages up: nodes that moved, and once for all collectors each sample. Raises redis.RedisError."""
        if self.leads:
            publish("samples", at=int(instant.timestamp()))
        for node_id in moved:
            publish("nodes", node=node_id)

    def flush(self, shards: Collection[int] = lease.EVERY) -> None:
        """Store the open buckets of these shards, which go to another collector. Raises django.db.Error."""
        existing = {pk for pk in Node.objects.values_list("pk", flat=True) if lease.shard_of(pk) in shards}
        open_now = [each.close(END_OF_TIME) for pk, each in self.gatherers.items() if pk in existing]
        buckets = [each for each in (*self.pending, *open_now) if each is not None and each.node_id in existing]
        services.store_buckets(
            SHORT, ((each.at, each.node_id, *row) for each in buckets for row in each.worth_storing())
        )
        self.pending = deque((each for each in self.pending if each.node_id not in existing), maxlen=PENDING)
