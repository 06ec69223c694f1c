"""The store in Parquet files, searched by DuckDB."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from apps.drivers.logs.asking.workers import Ceilings, Workers
from apps.drivers.logs.bins import histogram_of
from apps.drivers.logs.contract import (
    ExportFormat,
    Facet,
    Group,
    Histogram,
    Page,
    Point,
    Query,
    Record,
    SqlAnswer,
    Unavailable,
    Usage,
)
from apps.drivers.logs.files import layout, tidying, writing
from apps.drivers.logs.files.columns import moment, record_of
from apps.drivers.logs.wire import query_to_json

# Hours that are tidied each time; older ones, where a late batch may have come, once an hour.
RECENT = timedelta(hours=3)
THOROUGH = timedelta(hours=1)


class ParquetStore:
    """A LogStore below one folder; any number of processes may have it open."""

    def __init__(self, root: Path, ceilings: Ceilings | None = None) -> None:
        self._root = root
        self._workers = Workers(root, ceilings or Ceilings())
        self._writing = threading.Lock()
        self._connection: Any = None
        self._thorough_at: datetime | None = None

    def store(self, batch_id: str, records: Sequence[Record]) -> int:
        """One file for each account and hour."""
        with self._writing:
            return writing.store_batch(self._writer(), self._root, batch_id, records)

    def search(self, account: int, query: Query, *, limit: int, cursor: str = "") -> Page:
        """Hours from the newest on."""
        found = self._workers.ask(account, "search", [query_to_json(query), limit, cursor])
        return Page(tuple(record_of(account, row) for row in found["rows"]), found["cursor"])

    def histogram(self, account: int, query: Query, *, bins: int) -> Histogram:
        """From counts by minute where the question allows it."""
        found = self._workers.ask(account, "histogram", [query_to_json(query), bins])
        return histogram_of(query, found["step"], {int(start): counts for start, counts in found["bins"]})

    def facets(self, account: int, query: Query, fields: Sequence[str], *, limit: int) -> tuple[Facet, ...]:
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

    def one(self, account: int, record_id: str) -> Record | None:
        """From the hour that the id names, or one beside it."""
        row = self._workers.ask(account, "one", [record_id])["row"]
        return record_of(account, row) if row else None

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
        hours = layout.hours_of(self._root, account)
        files = [file for _, folder in hours for file in layout.live_files(folder)]
        try:
            size = sum(path.stat().st_size for _, folder in hours for path in folder.iterdir())
        except OSError as error:  # merged or deleted meanwhile
            raise Unavailable("The log store is being tidied: ask again.") from error
        return Usage(sum(file.lines for file in files), size, hours[0][0] if hours else None)

    def accounts(self) -> tuple[int, ...]:
        """By their folders."""
        return layout.accounts_of(self._root)

    def delete(self, account: int, before: datetime | None = None) -> int:
        """Each hour goes at once."""
        gone = 0
        try:
            for hour, folder in layout.hours_of(self._root, account):
                if before is None or hour + layout.HOUR <= before:
                    gone += sum(file.lines for file in layout.live_files(folder))
                    layout.remove_folder(self._root, folder)
            layout.remove_empty(layout.account_folder(self._root, account))
        except OSError as error:
            raise Unavailable(f"The log store could not delete lines: {error}") from error
        return gone

    def tidy(self, now: datetime) -> int:
        """Recent hours each time, all of them once an hour."""
        thorough = self._thorough_at is None or now - self._thorough_at >= THOROUGH
        with self._writing:
            gone = tidying.tidy(self._writer(), self._root, now, None if thorough else now - RECENT)
        if thorough:
            self._thorough_at = now
        return gone

    def close(self) -> None:
        """End the processes that wait for questions."""
        self._workers.close()

    def _writer(self) -> Any:
        if self._connection is None:
            try:
                self._connection = writing.connect(layout.working_folder(self._root))
            except OSError as error:
                raise Unavailable(f"The log store cannot be written: {error}") from error
        return self._connection
