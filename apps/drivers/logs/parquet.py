"""The store in Parquet files, in a folder or a bucket, searched by DuckDB."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from apps.drivers.logs.asking.workers import Workers
from apps.drivers.logs.bins import histogram_of
from apps.drivers.logs.ceilings import Ceilings
from apps.drivers.logs.contract import (
    ExportFormat,
    Facet,
    Group,
    Histogram,
    Outcome,
    Page,
    Point,
    Query,
    Record,
    SqlAnswer,
    Unavailable,
    Usage,
    Whose,
)
from apps.drivers.logs.files import layout, tidying, writing
from apps.drivers.logs.files.columns import moment, record_of
from apps.drivers.logs.files.port import Files
from apps.drivers.logs.wire import query_to_json

# Hours that are tidied each time; older ones, where a late batch may have come, once an hour.
RECENT = timedelta(hours=3)
THOROUGH = timedelta(hours=1)


class ParquetStore:
    """A LogStore over files; any number of processes may have it open."""

    def __init__(self, files: Files, ceilings: Ceilings | None = None) -> None:
        self._files = files
        self._workers = Workers(files, ceilings or Ceilings())
        self._writer = writing.Writer(files)
        self._tidying = threading.Lock()
        self._connection: Any = None
        self._tidied_at: datetime | None = None
        self._thorough_at: datetime | None = None

    def store(self, batch_id: str, records: Sequence[Record], *, first: bool = False) -> int:
        """One file for each account and hour."""
        return self._writer.store(batch_id, records, first=first)

    def search(self, account: Whose, query: Query, *, limit: int, cursor: str = "") -> Page:
        """Hours from the newest on."""
        found = self._workers.ask(account, "search", [query_to_json(query), limit, cursor])
        return Page(tuple(record_of(row["account"], row) for row in found["rows"]), found["cursor"])

    def histogram(self, account: Whose, query: Query, *, bins: int) -> Histogram:
        """From counts by minute where the question allows it."""
        found = self._workers.ask(account, "histogram", [query_to_json(query), bins])
        return histogram_of(query, found["step"], {int(start): counts for start, counts in found["bins"]})

    def facets(self, account: Whose, query: Query, fields: Sequence[str], *, limit: int) -> tuple[Facet, ...]:
        """From counts by minute where the question allows it."""
        found = self._workers.ask(account, "facets", [query_to_json(query), list(fields), limit])
        return tuple(Facet(name, tuple((value, lines) for value, lines in values)) for name, values in found["facets"])

    def groups(self, account: int, query: Query, fields: Sequence[str], *, limit: int) -> tuple[Group, ...]:
        """From the lines themselves."""
        found = self._workers.ask(account, "groups", [query_to_json(query), list(fields), limit])
        return tuple(Group(tuple(values), *counted) for values, *counted in found["groups"])

    def series(
        self, account: int, query: Query, *, step_seconds: int, of: str = "", percentile: int = 50
    ) -> tuple[Point, ...]:
        """From the lines themselves."""
        found = self._workers.ask(account, "series", [query_to_json(query), step_seconds, of, percentile])
        return tuple(Point(moment(start), lines, value) for start, lines, value in found["points"])

    def outcomes(
        self, account: int, query: Query, *, step_seconds: int, bounds_ms: Sequence[int]
    ) -> tuple[Outcome, ...]:
        """From the lines themselves."""
        found = self._workers.ask(account, "outcomes", [query_to_json(query), step_seconds, list(bounds_ms)])
        return tuple(
            Outcome(moment(start), route, lines, failed, timed, tuple(slower))
            for start, route, lines, failed, timed, slower in found["outcomes"]
        )

    def one(self, account: int, record_id: str) -> Record | None:
        """From the hour that the id names, or one beside it."""
        row = self._workers.ask(account, "one", [record_id])["row"]
        return record_of(row["account"], row) if row else None

    def sql(self, account: int, text: str, *, start: datetime, end: datetime) -> SqlAnswer:
        """In a process that ends with the statement."""
        given = [text, start.isoformat(), end.isoformat(), self._workers.ceilings.rows]
        found = self._workers.ask(account, "sql", given, alone=True)
        return SqlAnswer(tuple(found["columns"]), tuple(tuple(row) for row in found["rows"]), found["truncated"])

    def export(self, account: int, query: Query, target: Path, kind: ExportFormat) -> int:
        """Written by a process of its own."""
        found = self._workers.ask(account, "export", [query_to_json(query), str(target), kind], alone=True)
        return int(found["lines"])

    def usage(self, account: int) -> Usage:
        """From the names and sizes of files; none is opened."""
        hours = layout.hours_of(self._files, account)
        lines = sum(file.lines for hour in hours for file in layout.live_files(self._files, hour))
        size = sum(entry.size for hour in hours for entry in hour.entries.values())
        return Usage(lines, size, hours[0].start if hours else None)

    def accounts(self) -> tuple[int, ...]:
        """By their folders."""
        return layout.accounts_of(self._files)

    def delete(self, account: int, before: datetime | None = None) -> int:
        """Hour by hour, and again what was merged of it meanwhile."""
        gone = 0
        try:
            for hour in layout.hours_of(self._files, account, end=before):
                if before is None or hour.end <= before:
                    gone += self._delete_hour(hour)
                    self._delete_hour(layout.one_hour(self._files, account, hour.start))
        except OSError as error:
            raise Unavailable(f"The log store could not delete lines: {error}") from error
        return gone

    def _delete_hour(self, hour: layout.Hour) -> int:
        """What other files stand for goes first, so that it never counts again; the lines that went."""
        live = {file.name: file.lines for file in layout.live_files(self._files, hour)}
        others = [file.name for file in hour.files() if file.name not in live]
        notes = [name for name in hour.entries if name not in {*live, *others}]
        if hour.entries:
            self._files.remove(hour.folder, [others, [*live], notes])
        return sum(live.values())

    def tidy(self, now: datetime) -> int:
        """Recent hours each time, all of them once an hour."""
        if self._tidied_at is not None and (now - self._tidied_at).total_seconds() < self._files.pause_s:
            return 0
        thorough = self._thorough_at is None or now - self._thorough_at >= THOROUGH
        with self._tidying:
            self._connection = self._connection or writing.connect(self._files.working)
            gone = tidying.tidy(self._connection, self._files, now, None if thorough else now - RECENT)
        self._tidied_at = now
        if thorough:
            self._thorough_at = now
        return gone

    def close(self) -> None:
        """End the processes that wait for questions."""
        self._workers.close()
