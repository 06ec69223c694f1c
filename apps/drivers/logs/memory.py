"""An honest fake of the log store: the same answers, from a list in this process, gone when it ends."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from apps.drivers.logs.bins import check_fields, check_measured, histogram_of, step_of
from apps.drivers.logs.contract import (
    STATUS_CLASSES,
    ExportFormat,
    Facet,
    Group,
    Histogram,
    Outcome,
    Page,
    Point,
    Query,
    Record,
    Rejected,
    SqlAnswer,
    Usage,
    Whose,
    each_of,
)
from apps.drivers.logs.files.columns import cursor_of, millis, position, record_of, row_of
from apps.drivers.logs.files.layout import HOUR, check_batch_id, hour_of
from apps.drivers.logs.matching import fits, status_class


class MemoryStore:
    """A LogStore without files. It has no SQL and says so."""

    def __init__(self) -> None:
        self._batches: dict[str, tuple[Record, ...]] = {}

    def store(self, batch_id: str, records: Sequence[Record], *, first: bool = False) -> int:  # noqa: ARG002 - the port
        """Once for each batch id."""
        check_batch_id(batch_id)
        if batch_id in self._batches:
            return 0
        self._batches[batch_id] = tuple(record_of(each.account, row_of(each)) for each in records)
        return len(records)

    def search(self, account: Whose, query: Query, *, limit: int, cursor: str = "") -> Page:
        """Newest first."""
        found = sorted(self._fitting(account, query), key=lambda each: (each.time, each.id), reverse=True)
        if cursor:
            at = position(cursor)
            found = [each for each in found if (each.time, each.id) < at]
        page, more = found[:limit], len(found) > limit
        return Page(tuple(page), cursor_of(millis(page[-1].time), page[-1].id) if more and page else "")

    def histogram(self, account: Whose, query: Query, *, bins: int) -> Histogram:
        """Counted one by one."""
        step = step_of(query, bins)
        counts: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(STATUS_CLASSES, 0))
        for record in self._fitting(account, query):
            counts[int(record.time.timestamp()) // step * step][status_class(record)] += 1
        return histogram_of(query, step, dict(counts))

    def facets(self, account: Whose, query: Query, fields: Sequence[str], *, limit: int) -> tuple[Facet, ...]:
        """Counted one by one."""
        check_fields(fields)
        records = self._fitting(account, query)
        counted = {name: Counter(_shown(getattr(each, name)) for each in records) for name in fields}
        return tuple(
            Facet(name, tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]))
            for name, counts in counted.items()
        )

    def groups(self, account: int, query: Query, fields: Sequence[str], *, limit: int) -> tuple[Group, ...]:
        """Put together one by one."""
        check_fields(fields)
        found: dict[tuple[str, ...], list[Record]] = defaultdict(list)
        for record in self._fitting(account, query):
            found[tuple(_shown(getattr(record, name)) for name in fields)].append(record)
        groups = [_group(values, records) for values, records in found.items()]
        return tuple(sorted(groups, key=lambda each: (-each.lines, each.values))[:limit])

    def series(
        self, account: int, query: Query, *, step_seconds: int, of: str = "", percentile: int = 50
    ) -> tuple[Point, ...]:
        """Put together one by one."""
        check_measured(step_seconds, of, percentile)
        found: dict[int, list[Record]] = defaultdict(list)
        for record in self._fitting(account, query):
            found[int(record.time.timestamp()) // step_seconds * step_seconds].append(record)
        return tuple(
            Point(datetime.fromtimestamp(at, UTC), len(records), _percentile(records, of, percentile) if of else None)
            for at, records in sorted(found.items())
        )

    def outcomes(
        self, account: int, query: Query, *, step_seconds: int, bounds_ms: Sequence[int]
    ) -> tuple[Outcome, ...]:
        """Put together one by one."""
        check_measured(step_seconds, "", 50)
        found: dict[tuple[int, str], list[Record]] = defaultdict(list)
        for record in self._fitting(account, query):
            found[int(record.time.timestamp()) // step_seconds * step_seconds, record.route].append(record)
        return tuple(_outcome(at, route, records, bounds_ms) for (at, route), records in sorted(found.items()))

    def one(self, account: int, record_id: str) -> Record | None:
        """By its id."""
        return next((each for each in self._of(account) if each.id == record_id), None)

    def sql(self, account: int, text: str, *, start: datetime, end: datetime) -> SqlAnswer:  # noqa: ARG002 - the contract
        """There is no SQL here."""
        raise Rejected("The log store in memory has no SQL: choose logs+file:// as SPILLWAY_LOGS_URL.")

    def export(self, account: int, query: Query, target: Path, kind: ExportFormat) -> int:
        """JSON lines only."""
        if kind == "parquet":
            raise Rejected("The log store in memory exports JSON lines, not Parquet.")
        found = sorted(self._fitting(account, query), key=lambda each: (each.time, each.id))
        with gzip.open(target, "wt") as opened:
            for record in found:
                time = record.time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{millis(record.time) % 1000:03}Z"
                row = {**row_of(record), "time": time, "headers": dict(record.headers)}
                opened.write(json.dumps(row) + "\n")
        return len(found)

    def usage(self, account: int) -> Usage:
        """Bytes are those of the lines as JSON."""
        records = self._of(account)
        size = sum(len(json.dumps(row_of(each))) for each in records)
        return Usage(len(records), size, hour_of(min(each.time for each in records)) if records else None)

    def accounts(self) -> tuple[int, ...]:
        """Everybody who has lines."""
        return tuple(sorted({each.account for batch in self._batches.values() for each in batch}))

    def delete(self, account: int, before: datetime | None = None) -> int:
        """The batch stays known, so that it is not stored again."""
        gone = 0
        for batch_id, records in self._batches.items():
            kept = tuple(
                each
                for each in records
                if each.account != account or (before is not None and hour_of(each.time) + HOUR > before)
            )
            gone += len(records) - len(kept)
            self._batches[batch_id] = kept
        return gone

    def tidy(self, now: datetime) -> int:  # noqa: ARG002 - the contract
        """There is nothing to tidy."""
        return 0

    def _of(self, account: Whose) -> list[Record]:
        own = each_of(account)
        return [each for batch in self._batches.values() for each in batch if each.account in own]

    def _fitting(self, account: Whose, query: Query) -> list[Record]:
        return [each for each in self._of(account) if fits(each, query)]


def _group(values: tuple[str, ...], records: Sequence[Record]) -> Group:
    return Group(
        values,
        lines=len(records),
        failed=sum((each.status or 0) >= 500 for each in records),
        paths=len({each.path for each in records}),
        bytes_out=sum(each.bytes_out for each in records),
        response_p50_ms=_percentile(records, "response_ms", 50),
        total_p95_ms=_percentile(records, "total_ms", 95),
    )


def _outcome(at: int, route: str, records: Sequence[Record], bounds_ms: Sequence[int]) -> Outcome:
    waits = [
        (each.queue_ms or 0) + (each.connect_ms or 0) + each.response_ms
        for each in records
        if each.response_ms is not None
    ]
    return Outcome(
        datetime.fromtimestamp(at, UTC),
        route,
        lines=len(records),
        failed=sum((each.status or 0) >= 500 for each in records),
        timed=len(waits),
        slower=tuple(sum(wait > bound for wait in waits) for bound in bounds_ms),
    )


def _percentile(records: Sequence[Record], name: str, percent: int) -> float | None:
    """Between the two nearest values, as DuckDB's quantile_cont."""
    found = sorted(value for each in records if (value := getattr(each, name)) is not None)
    if not found:
        return None
    at = (len(found) - 1) * percent / 100
    low, high = found[int(at)], found[min(int(at) + 1, len(found) - 1)]
    return float(low + (high - low) * (at - int(at)))


def _shown(value: object) -> str:
    return "" if value is None else str(value)
