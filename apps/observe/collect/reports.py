"""What nodes say becomes their reports; most say the same as before, and of those only the time is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from apps.observe import services
from apps.observe.collect.buckets import SHORT, start_of
from apps.observe.collect.readings import Reading
from apps.observe.models import NodeReport


@dataclass(slots=True)
class Reports:
    """What was written last of each node, so that nothing is written again for nothing."""

    _said: dict[int, object] = field(default_factory=dict)
    _counts: dict[int, bool] = field(default_factory=dict)
    _seen: datetime | None = None
    _counted: int = 0

    def forget(self, node_id: int) -> None:
        """Another collector writes of it."""
        self._said.pop(node_id, None)
        self._counts.pop(node_id, None)

    def forget_all(self) -> None:
        """The next time everything is written again, whatever others made of it."""
        self._said = {}

    def store(self, readings: Mapping[int, Reading]) -> None:
        """A whole report of a node that says something new; of the many others only that they were seen."""
        same, errors, others = [], {}, {}
        for node_id, reading in readings.items():
            if reading.state is None:
                if self._said.get(node_id) != reading.error:
                    errors[node_id] = reading.error
            elif self._said.get(node_id) == reading.state and self._seen is not None and reading.asked_at >= self._seen:
                same.append(reading)
            else:
                others[node_id] = reading
        if same:
            asked, seen = min(each.asked_at for each in same), max(each.at for each in same)
            rows = NodeReport.objects.filter(node_id__in=[each.node_id for each in same], seen_at__lte=asked)
            if rows.update(seen_at=seen) < len(same):
                # A push stored what is newer: the next time all of them tell everything.
                self._said = {}
        if others:
            newer = dict(NodeReport.objects.filter(node_id__in=list(others)).values_list("node_id", "seen_at"))
            services.store_reports(
                services.report_of(node_id, reading.state, reading.at)
                for node_id, reading in others.items()
                if reading.state is not None and ((at := newer.get(node_id)) is None or at <= reading.asked_at)
            )
        if errors:
            services.store_contact_errors(errors)
        self._said |= {pk: each.state or each.error for pk, each in readings.items() if pk in others or pk in errors}
        self._seen = max((reading.at for reading in readings.values()), default=self._seen)

    def store_counted(self, readings: Mapping[int, Reading], instant: datetime) -> None:
        """What nodes count with their peers, also that one no longer does; the others never have such a row."""
        if self._counted == (bucket := start_of(instant.timestamp(), SHORT)):
            return
        found = {}
        unknown = [pk for pk, each in readings.items() if each.counters is not None and pk not in self._counts]
        if unknown:
            rows = NodeReport.objects.filter(node_id__in=unknown).values_list("node_id", "admitted", "peers")
            self._counts |= dict.fromkeys(unknown, False) | {pk: bool(sums or peers) for pk, sums, peers in rows}
        for node_id, reading in readings.items():
            counters = reading.counters
            if counters is not None and (counters.admitted or counters.peers or self._counts[node_id]):
                found[node_id] = counters
        if found:
            services.store_counted(found, instant)
            self._counts |= {pk: bool(each.admitted or each.peers) for pk, each in found.items()}
        self._counted = bucket
