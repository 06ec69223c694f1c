"""Answers to typed questions over the files of one account, or of some; runs in the process that asks DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import MAXYEAR, datetime, timedelta
from functools import wraps
from itertools import groupby
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import duckdb

from apps.drivers.logs.asking.statements import Values, names_of, where
from apps.drivers.logs.bins import check_fields, check_measured, step_of
from apps.drivers.logs.ceilings import check_exported
from apps.drivers.logs.contract import STATUS_CLASSES, Query
from apps.drivers.logs.files.columns import NAMES, NO_ROWS, cursor_of, millis, moment, position, rows_of
from apps.drivers.logs.files.layout import HOUR, Hour, account_of, hour_of, hours_of_each, live_files
from apps.drivers.logs.files.port import Entry, Files
from apps.drivers.logs.files.tidying import COUNTED_BY
from apps.drivers.logs.files.writing import FORMAT, quoted

READ, READ_OF, MINUTES = rows_of("?"), rows_of("?", file="file"), "read_parquet(?, hive_partitioning=false)"
TRIES = 3
MINUTE_S = 60
Row = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")
_CLASS = "CASE WHEN status BETWEEN 100 AND 599 THEN (status // 100) || 'xx' ELSE 'none' END"
_COUNTED = (
    "count(*), count(*) FILTER (status >= 500), count(DISTINCT path), sum(bytes_out)::BIGINT, "
    "quantile_cont(response_ms, 0.5)::DOUBLE, quantile_cont(total_ms, 0.95)::DOUBLE"
)
# Until the response begins; null where none did.
_WAIT = "coalesce(queue_ms, 0) + coalesce(connect_ms, 0) + response_ms"
_JSON_LINES = "(FORMAT json, COMPRESSION gzip)"
_TIME_AS_JSON = "strftime(line.time, '%Y-%m-%dT%H:%M:%S.%gZ')"
_AS_JSON = f"* REPLACE ({_TIME_AS_JSON} AS time, coalesce(nullif(headers, ''), '{{}}')::JSON AS headers)"
_ALL = ", ".join("epoch_ms(time) AS time" if name == "time" else name for name in NAMES)


def patient(ask: Callable[P, T]) -> Callable[P, T]:
    """Ask again, with the names of files read anew, when one of them was merged away meanwhile."""

    @wraps(ask)
    def asked(*given: P.args, **named: P.kwargs) -> T:
        for _ in range(TRIES - 1):
            with suppress(duckdb.IOException, FileNotFoundError):
                return ask(*given, **named)
        return ask(*given, **named)

    return asked


class Answering:
    """The questions about one account, or some together."""

    def __init__(self, connection: Any, files: Files, accounts: Sequence[int]) -> None:
        self._connection = connection
        self._files = files
        self._accounts = accounts

    def search(self, query: Query, limit: int, cursor: str) -> dict[str, Any]:
        """The newest rows that fit, and where to go on; hours are read from the newest on, more and more at once."""
        text, values = where(query)
        if cursor:
            at, record_id = position(cursor)
            text += " AND (time < ?::TIMESTAMP OR (time = ?::TIMESTAMP AND id < ?))"
            values += [_text_of(at), _text_of(at), record_id]
            query = Query(query.start, min(query.end, at + timedelta(milliseconds=1)), query.conditions)
        rows: list[Row] = []
        hours = [list(same) for _, same in groupby(self._hours(query), key=lambda each: each.start)]
        at_once = 1
        while hours and len(rows) <= limit:
            group, hours = hours[-at_once:], hours[:-at_once]
            rows += self._newest([hour for same in group for hour in same], text, values, limit + 1 - len(rows))
            at_once = min(at_once * 2, 24)
        more = len(rows) > limit
        rows = rows[:limit]
        return {"rows": rows, "cursor": cursor_of(rows[-1]["time"], rows[-1]["id"]) if more and rows else ""}

    @patient
    def histogram(self, query: Query, bins: int) -> dict[str, Any]:
        """Counts by step and status class."""
        step = step_of(query, bins)
        counts: dict[int, dict[str, int]] = {}
        for source, values in self._sources(query, {"status"}, step):
            sql = (
                f"SELECT epoch_ms(time) // {step * 1000} AS step, {_CLASS} AS class, sum(lines)::BIGINT "
                f"FROM ({source}) GROUP BY ALL"
            )
            for number, status_class, lines in self._rows(sql, values):
                bucket = counts.setdefault(int(number) * step, dict.fromkeys(STATUS_CLASSES, 0))
                bucket[status_class] += lines
        return {"step": step, "bins": sorted(counts.items())}

    @patient
    def facets(self, query: Query, fields: Sequence[str], limit: int) -> dict[str, Any]:
        """The most frequent values of each field."""
        check_fields(fields)
        counts: dict[str, dict[str, int]] = {name: {} for name in fields}
        counted = [name for name in counts if name in COUNTED_BY]
        for group in (counted, [name for name in counts if name not in COUNTED_BY]):
            if group:
                self._add_counts(query, group, limit, counts)
        return {"facets": [[name, sorted(counts[name].items(), key=_by_lines)[:limit]] for name in fields]}

    @patient
    def groups(self, query: Query, fields: Sequence[str], limit: int) -> dict[str, Any]:
        """Lines put together by fields, the largest groups first."""
        check_fields(fields)
        text, values = where(query)
        files = self._lines_of(self._hours(query))
        if not files:
            return {"groups": []}
        names = [f"coalesce({name}::VARCHAR, '')" for name in fields]
        order = ", ".join(["2 DESC", *names])
        sql = (
            f"SELECT [{', '.join(names)}]::VARCHAR[], {_COUNTED} FROM {READ} AS line WHERE {text} "
            f"GROUP BY {', '.join(names) or '()'} HAVING count(*) > 0 ORDER BY {order} LIMIT {int(limit)}"
        )
        return {"groups": self._rows(sql, [files, *values])}

    @patient
    def series(self, query: Query, step: int, of: str, percentile: int) -> dict[str, Any]:
        """Lines by steps of time, with a percentile of a number."""
        check_measured(step, of, percentile)
        text, values = where(query)
        files = self._lines_of(self._hours(query))
        if not files:
            return {"points": []}
        measured = f"quantile_cont({of}, {int(percentile) / 100})::DOUBLE" if of else "NULL"
        sql = (
            f"SELECT epoch_ms(time) // {int(step) * 1000} * {int(step) * 1000} AS start, count(*), {measured} "
            f"FROM {READ} AS line WHERE {text} GROUP BY start ORDER BY start"
        )
        return {"points": self._rows(sql, [files, *values])}

    @patient
    def outcomes(self, query: Query, step: int, bounds: Sequence[int]) -> dict[str, Any]:
        """How lines ended, by route and steps of time."""
        check_measured(step, "", 50)
        text, values = where(query)
        files = self._lines_of(self._hours(query))
        if not files:
            return {"outcomes": []}
        slower = ", ".join(f"count(*) FILTER ({_WAIT} > {int(bound)})" for bound in bounds)
        sql = (
            f"SELECT epoch_ms(time) // {int(step) * 1000} * {int(step) * 1000} AS start, coalesce(route, '') AS name, "
            f"count(*), count(*) FILTER (status >= 500), count(response_ms), [{slower}]::BIGINT[] "
            f"FROM {READ} AS line WHERE {text} GROUP BY start, name ORDER BY start, name"
        )
        return {"outcomes": self._rows(sql, [files, *values])}

    def one(self, record_id: str) -> dict[str, Any]:
        """The row of an id; its first twelve digits are the milliseconds when it was made."""
        digits = record_id.replace("-", "")[:12]
        try:
            made = moment(int(digits, 16))
        except (ValueError, OverflowError, OSError):
            return {"row": None}
        if made.year == MAXYEAR:  # the hours after it are none
            return {"row": None}
        # A line is stored by its own time, which is a request's duration or a clock away from its id's.
        for start in (hour_of(made), hour_of(made) + HOUR, hour_of(made) - HOUR):
            hours = hours_of_each(self._files, self._accounts, start, start + HOUR)
            rows = self._newest(hours, "id = ?", [record_id], 1)
            if rows:
                return {"row": rows[0]}
        return {"row": None}

    @patient
    def export(self, query: Query, target: str, kind: str) -> dict[str, Any]:
        """Write what fits into a file, oldest first."""
        text, values = where(query)
        files = self._lines_of(self._hours(query))
        lines = self._count(files, text, values)
        check_exported(lines, kind)
        form, columns = (FORMAT.format(level=6), "*") if kind == "parquet" else (_JSON_LINES, _AS_JSON)
        found = f"SELECT {columns} FROM {READ} AS line WHERE {text} ORDER BY line.time, id" if files else NO_ROWS
        self._rows(f"COPY ({found}) TO {quoted(Path(target))} {form}", [files, *values] if files else [])
        return {"lines": lines}

    def _hours(self, query: Query) -> list[Hour]:
        return hours_of_each(self._files, self._accounts, query.start, query.end)

    def _lines_of(self, hours: Sequence[Hour]) -> list[str]:
        return self._paths([file.entry for hour in hours for file in live_files(self._files, hour)])

    def _paths(self, entries: Sequence[Entry]) -> list[str]:
        # In this process files stay until the question is answered.
        with self._files.local(entries) as paths:
            return list(map(str, paths))

    def _count(self, files: list[str], text: str, values: Values) -> int:
        if not files:
            return 0
        return int(self._rows(f"SELECT count(*) FROM {READ} WHERE {text}", [files, *values])[0][0])

    def _newest(self, hours: Sequence[Hour], text: str, values: Values, limit: int) -> list[Row]:
        """As these hours are listed; listed anew when a file was merged away meanwhile."""
        listed = iter([hours])

        @patient
        def ask() -> list[Row]:
            known = next(listed, None)
            if known is None:
                known = hours_of_each(self._files, self._accounts, hours[0].start, hours[-1].end)
            return self._newest_of(known, text, values, limit)

        return ask()

    def _newest_of(self, hours: Sequence[Hour], text: str, values: Values, limit: int) -> list[Row]:
        """Two steps: when the oldest that is wanted was, from few columns; then whole rows, from few places."""
        entries = [file.entry for hour in hours for file in live_files(self._files, hour)]
        if not entries:
            return []
        files = self._paths(entries)
        owners = {path: account_of(entry.name) for path, entry in zip(files, entries, strict=True)}
        newest = f"SELECT time FROM {READ} WHERE {text} ORDER BY time DESC LIMIT {int(limit)}"
        oldest = self._rows(f"SELECT min(time)::VARCHAR FROM ({newest})", [files, *values])[0][0]
        if oldest is None:
            return []
        rows = self._rows(
            f"SELECT file, {_ALL} FROM {READ_OF} AS line WHERE ({text}) AND line.time >= ?::TIMESTAMP "
            f"ORDER BY line.time DESC, id DESC LIMIT {int(limit)}",
            [files, *values, oldest],
        )
        return [{"account": owners[path], **dict(zip(NAMES, row, strict=True))} for path, *row in rows]

    def _add_counts(self, query: Query, names: Sequence[str], limit: int, counts: dict[str, dict[str, int]]) -> None:
        """Count all fields in one pass over each source."""
        sources = self._sources(query, set(names))
        listed, sets = ", ".join(names), ", ".join(f"({name})" for name in names)
        texts = ", ".join(f"coalesce({name}::VARCHAR, '') AS {name}" for name in names)
        which = " ".join(f"WHEN grouping({name}) = 0 THEN '{name}'" for name in names)
        # Few values stand together in many lines; of others, the combinations might be as many as lines.
        few = len(names) == 1 or set(names) <= set(COUNTED_BY)
        for source, values in sources:
            if few:
                source = f"SELECT {listed}, sum(lines) AS lines FROM ({source}) GROUP BY ALL"  # noqa: PLW2901
            sql = (
                f"SELECT CASE {which} END AS field, coalesce({listed}) AS value, sum(lines)::BIGINT AS found "
                f"FROM (SELECT {texts}, lines FROM ({source})) GROUP BY GROUPING SETS ({sets})"
            )
            if len(sources) == 1:  # of two, the most frequent of both may be anywhere in each
                sql += f" QUALIFY row_number() OVER (PARTITION BY field ORDER BY found DESC, value) <= {int(limit)}"
            for name, value, lines in self._rows(sql, values):
                counts[name][value] = counts[name].get(value, 0) + lines

    def _sources(self, query: Query, names: set[str], step: int = MINUTE_S) -> list[tuple[str, Values]]:
        """Where to count: minutes of whole closed hours where nothing else is asked for, lines elsewhere.

        Counts that are put into steps of seconds are of whole minutes where a step is.
        """
        text, values = where(query)
        wanted = names | names_of(query.conditions)
        columns = ", ".join(sorted({"time", *names}))
        minutes: list[Entry] = []
        lines: list[Entry] = []
        for hour in self._hours(query):
            fits = wanted <= set(COUNTED_BY) and step % MINUTE_S == 0
            whole = fits and query.start <= hour.start and hour.end <= query.end
            for file in live_files(self._files, hour):
                counted = hour.entries.get(file.beside(".minutes"))
                if whole and counted:
                    minutes.append(counted)
                else:
                    lines.append(file.entry)
        sources: list[tuple[str, Values]] = []
        if minutes:
            sources.append((f"SELECT {columns}, lines FROM {MINUTES} WHERE {text}", [self._paths(minutes), *values]))
        if lines:
            sources.append((f"SELECT {columns}, 1 AS lines FROM {READ} WHERE {text}", [self._paths(lines), *values]))
        return sources

    def _rows(self, sql: str, values: Sequence[object]) -> list[Any]:
        return list(self._connection.execute(sql, list(values)).fetchall())


def _text_of(time: datetime) -> str:
    return moment(millis(time)).replace(tzinfo=None).isoformat()


def _by_lines(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]
