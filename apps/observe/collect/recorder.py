"""What one tick of the collector learned becomes rows, verdicts and live numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from apps.core.clock import now
from apps.core.events import publish
from apps.definitions.previewing.node_words import in_words
from apps.fleet.models import Node
from apps.fleet.services import record_latency
from apps.observe import services
from apps.observe.collect.buckets import SHORT, Bucket, Gatherer, start_of
from apps.observe.collect.deltas import Counts, Key, Memory, take
from apps.observe.collect.readings import Reading
from apps.observe.evaluate import identity, limit_use, lost_pools
from apps.observe.evaluate.evaluator import ConditionEvaluator
from apps.observe.live import store as live
from apps.observe.models import Sample

# While the database is away, samples wait; ten minutes of four nodes.
PENDING = 240
END_OF_TIME = 1e12
# The quickest of so many seconds counts: whatever comes in between only makes a way longer.
DISTANCES_EVERY = 30


@dataclass(slots=True)
class Recorder:
    """The memory of a collector between ticks; throw it away when the lease is lost."""

    memories: dict[int, Memory] = field(default_factory=dict)
    gatherers: dict[int, Gatherer] = field(default_factory=dict)
    pending: deque[Bucket] = field(default_factory=lambda: deque(maxlen=PENDING))
    windows: dict[int, dict[Key, Counts]] = field(default_factory=dict)
    evaluator: ConditionEvaluator = field(default_factory=ConditionEvaluator)
    told: dict[int, object] = field(default_factory=dict)
    tended: int = 0
    counted: int = 0
    trips: dict[tuple[int, int], int] = field(default_factory=dict)
    measured: int = 0

    def seed(self) -> None:
        """Go on with the bucket that another collector began: what it counted is the first part."""
        at = start_of(now().timestamp(), SHORT)
        for row in Sample.objects.filter(resolution=SHORT, at=datetime.fromtimestamp(at, now().tzinfo)):
            gatherer = self.gatherers.setdefault(row.node_id, Gatherer(row.node_id, open_at=at))
            gatherer.parts = gatherer.parts or [{}]
            gatherer.parts[0][row.kind, row.object_id] = services.counts_of(row)

    def gather(self, readings: Iterable[Reading]) -> None:
        """Counters become deltas, deltas fill buckets. No I/O."""
        for reading in readings:
            if reading.counters is None:
                continue
            gatherer = self.gatherers.setdefault(reading.node_id, Gatherer(reading.node_id))
            memory, rows = take(self.memories.get(reading.node_id), reading.counters)
            self.memories[reading.node_id] = memory
            if bucket := gatherer.put(reading.at.timestamp(), rows):
                self._closed(bucket)
            self.windows[reading.node_id] = gatherer.window()

    def close_buckets(self, instant: float) -> None:
        """Close what is over at `instant` (Unix seconds), also of nodes that fell silent."""
        for gatherer in self.gatherers.values():
            if bucket := gatherer.close(instant):
                self._closed(bucket)

    def _closed(self, bucket: Bucket) -> None:
        self.pending.append(bucket)
        self.evaluator.hear(bucket)

    def store(self, readings: Mapping[int, Reading], instant: datetime) -> list[int]:
        """Everything of this tick in one transaction; returns the nodes whose state moved. Raises django.db.Error.

        1. Reports of nodes that answered, unless a push stored a newer one; errors of those that did not.
        2. Once in ten seconds what nodes count together. 3. Buckets that are over. 4. Verdicts that changed.
        """
        with transaction.atomic():
            nodes = {node.pk: node for node in Node.objects.select_related("report", "fleet__region")}
            self._store_reports(nodes, readings)
            self._store_counted(nodes, readings, instant)
            buckets = [bucket for bucket in self.pending if bucket.node_id in nodes]
            services.store_buckets(
                SHORT, ((each.at, each.node_id, *row) for each in buckets for row in each.worth_storing())
            )
            verdicts = self.evaluator.evaluate(nodes, readings, self.windows, instant)
            services.store_verdicts(verdicts, instant)
        self.pending.clear()
        self._note_distances(nodes, readings)
        self._forget_nodes(nodes)
        return self._moved(readings)

    def _store_reports(self, nodes: Mapping[int, Node], readings: Mapping[int, Reading]) -> None:
        reports, errors = [], {}
        for node_id, reading in readings.items():
            if node_id not in nodes:
                continue
            report = getattr(nodes[node_id], "report", None)
            if reading.state is None:
                if report is None or report.last_contact_error != in_words(reading.error)[:400]:
                    errors[node_id] = reading.error
            elif report is None or report.seen_at is None or report.seen_at <= reading.asked_at:
                reports.append(services.report_of(node_id, reading.state, reading.at))
        if reports:
            services.store_reports(reports)
        if errors:
            services.store_contact_errors(errors)

    def _store_counted(self, nodes: Mapping[int, Node], readings: Mapping[int, Reading], instant: datetime) -> None:
        """What nodes count with their peers, also that one no longer does; the others never have such a row."""
        if self.counted == (bucket := start_of(instant.timestamp(), SHORT)):
            return
        found = {}
        for node_id, reading in readings.items():
            report = getattr(nodes.get(node_id), "report", None)
            counters, known = reading.counters, report is not None and bool(report.admitted or report.peers)
            if node_id in nodes and counters is not None and (counters.admitted or counters.peers or known):
                found[node_id] = counters
        if found:
            services.store_counted(found, instant)
        self.counted = bucket

    def _note_distances(self, nodes: Mapping[int, Node], readings: Mapping[int, Reading]) -> None:
        """Remember the shortest way of any node of a region to each other region."""
        for node_id, reading in readings.items():
            if node_id not in nodes or reading.counters is None:
                continue
            for name, ms in reading.counters.distances_ms.items():
                pair = nodes[node_id].fleet.region_id, int(name.removeprefix("rgn-"))
                self.trips[pair] = min(ms, self.trips.get(pair, ms))

    def measure(self, instant: datetime) -> None:
        """Each half minute: hand on how far regions are from each other. Raises django.db.Error."""
        if self.measured == (period := start_of(instant.timestamp(), DISTANCES_EVERY)):
            return
        for (from_region_id, to_region_id), ms in self.trips.items():
            record_latency(from_region_id=from_region_id, to_region_id=to_region_id, ms=ms)
        self.trips.clear()
        self.measured = period

    def _forget_nodes(self, nodes: Mapping[int, Node]) -> None:
        for node_id in set(self.gatherers) - set(nodes):
            self.gatherers.pop(node_id)
            self.memories.pop(node_id, None)
            self.windows.pop(node_id, None)

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
        minute = start_of(instant.timestamp(), 60)
        # The last buckets of a minute are closed a tick or two after it ended.
        if minute == self.tended or instant.timestamp() - minute < SHORT:
            return
        with transaction.atomic():
            services.roll_up(minute)
            services.store_verdicts(limit_use.evaluate_all(instant), instant)
            services.store_verdicts(identity.evaluate_all(instant), instant)
            services.store_verdicts(lost_pools.evaluate_all(), instant)
        services.prune(instant)
        for kind, existing in (self.evaluator.existing() | identity.existing() | lost_pools.existing()).items():
            services.forget_verdicts(kind, existing)
        self.tended = minute

    def show(self, readings: Mapping[int, Reading], moved: list[int], instant: datetime) -> None:
        """Live numbers and wake-ups for open pages. Raises redis.RedisError."""
        counters = {node_id: reading.counters for node_id, reading in readings.items() if reading.counters is not None}
        windows = {
            node_id: live.LiveNode(readings[node_id].at.timestamp(), self.windows[node_id], read.in_use)
            for node_id, read in counters.items()
            if node_id in self.windows
        }
        if windows:
            live.write(windows, counters)
        publish("samples", at=int(instant.timestamp()))
        for node_id in moved:
            publish("nodes", node=node_id)

    def flush(self) -> None:
        """At the end: store the buckets that are not over yet. Raises django.db.Error."""
        self.close_buckets(END_OF_TIME)
        with transaction.atomic():
            existing = set(Node.objects.values_list("pk", flat=True))
            buckets = [bucket for bucket in self.pending if bucket.node_id in existing]
            services.store_buckets(
                SHORT, ((each.at, each.node_id, *row) for each in buckets for row in each.worth_storing())
            )
        self.pending.clear()
