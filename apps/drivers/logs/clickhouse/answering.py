"""Answers to typed questions about the lines of one account, or of some, by ClickHouse."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from apps.drivers.logs.bins import check_fields, check_measured, histogram_of, step_of
from apps.drivers.logs.ceilings import check_exported
from apps.drivers.logs.clickhouse.asking import Client, Values
from apps.drivers.logs.clickhouse.schema import TABLE
from apps.drivers.logs.clickhouse.statements import moment_of, where, whose
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
    Unavailable,
    Whose,
)
from apps.drivers.logs.files.columns import NAMES, cursor_of, millis, moment, position, record_of

_CLASS = "if(status BETWEEN 100 AND 599, concat(toString(intDiv(status, 100)), 'xx'), 'none')"
_COUNTED = (
    "count() AS counted, countIf(status >= 500), uniqExact(path), sum(bytes_out), "
    "quantileExactInclusive(0.5)(response_ms), quantileExactInclusive(0.95)(total_ms)"
)
# Until the response begins; null where none did.
_WAIT = "ifNull(queue_ms, 0) + ifNull(connect_ms, 0) + response_ms"
_MILLIS = "toUnixTimestamp64Milli(time)"
_ALL = ", ".join(f"{_MILLIS} AS at" if name == "time" else name for name in NAMES)
# A line of JSON as other stores write it; headers are an object already.
_AS_JSON = (
    "concat('{', arrayStringConcat(["
    + ", ".join(
        f"concat('\"{name}\": ', {text})"
        for name, text in {
            **{name: f"toJSONString({name})" for name in NAMES},
            "time": "toJSONString(concat(formatDateTime(time, '%Y-%m-%dT%H:%i:%S', 'UTC'), '.', "
            f"leftPad(toString({_MILLIS} % 1000), 3, '0'), 'Z'))",
            "headers": "if(headers = '', '{}', headers)",
        }.items()
    )
    + "], ', '), '}')"
)
# Fields with as many values as there are lines, or nearly.
_MANY = frozenset({"client", "host", "path"})
_HOUR = timedelta(hours=1)


class Answering:
    """The questions; `client` keeps to the ceilings."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def search(self, account: Whose, query: Query, limit: int, cursor: str) -> Page:
        """Newest first."""
        values = Values()
        text = where(account, query, values)
        if cursor:
            at, record_id = position(cursor)
            then = moment_of(millis(at), values)
            text += f" AND (time < {then} OR (time = {then} AND id < {values.put('String', record_id)}))"
        found = self._records(text, values, limit + 1)
        page, more = found[:limit], len(found) > limit
        return Page(tuple(page), cursor_of(millis(page[-1].time), page[-1].id) if more and page else "")

    def histogram(self, account: Whose, query: Query, bins: int) -> Histogram:
        """Counts by step and status class."""
        step, values = step_of(query, bins), Values()
        counts: dict[int, dict[str, int]] = {}
        for number, status_class, lines in self._client.rows(
            f"SELECT intDiv({_MILLIS}, {step * 1000}) AS step, {_CLASS} AS class, count() FROM {TABLE} "
            f"WHERE {where(account, query, values)} GROUP BY step, class",
            values,
        ):
            counts.setdefault(int(number) * step, dict.fromkeys(STATUS_CLASSES, 0))[status_class] += lines
        return histogram_of(query, step, counts)

    def facets(self, account: Whose, query: Query, fields: Sequence[str], limit: int) -> tuple[Facet, ...]:
        """The most frequent values of each field."""
        check_fields(fields)
        few = [name for name in dict.fromkeys(fields) if name not in _MANY]
        found: dict[str, list[tuple[str, int]]] = {name: [] for name in fields}
        # Few values stand together in many lines, so one pass counts them all; of others, each has its own.
        for group in (few, *([name] for name in found if name not in few)):
            for name, value, lines in self._counted(account, query, group, limit) if group else ():
                found[name].append((value, lines))
        return tuple(Facet(name, tuple(sorted(found[name], key=_by_lines))) for name in fields)

    def _counted(self, account: Whose, query: Query, names: Sequence[str], limit: int) -> Any:
        """The most frequent values of each, with its name and how many lines have it."""
        values = Values()
        listed = ", ".join(names)
        titles = ", ".join(f"'{name}'" for name in names)
        return self._client.rows(
            f"SELECT field, value, sum(lines) AS counted FROM (SELECT {listed}, count() AS lines FROM {TABLE} "
            f"WHERE {where(account, query, values)} GROUP BY {listed}) "
            f"ARRAY JOIN [{titles}] AS field, [{', '.join(map(_shown, names))}] AS value "
            f"GROUP BY field, value ORDER BY counted DESC, value LIMIT {int(limit)} BY field",
            values,
        )

    def groups(self, account: int, query: Query, fields: Sequence[str], limit: int) -> tuple[Group, ...]:
        """Lines put together by fields, the largest groups first."""
        check_fields(fields)
        values, names = Values(), ", ".join(map(_shown, fields))
        rows = self._client.rows(
            f"SELECT CAST([{names}], 'Array(String)') AS named, {_COUNTED} FROM {TABLE} "
            f"WHERE {where(account, query, values)} GROUP BY {names or 'tuple()'} HAVING counted > 0 "
            f"ORDER BY counted DESC, named LIMIT {int(limit)}",
            values,
        )
        return tuple(Group(tuple(named), *counted) for named, *counted in rows)

    def series(self, account: int, query: Query, step: int, of: str, percentile: int) -> tuple[Point, ...]:
        """Lines by steps of time, with a percentile of a number."""
        check_measured(step, of, percentile)
        values = Values()
        measured = f"quantileExactInclusive({int(percentile) / 100})({of})" if of else "NULL"
        rows = self._client.rows(
            f"SELECT {_start(step)} AS start, count(), {measured} FROM {TABLE} "
            f"WHERE {where(account, query, values)} GROUP BY start ORDER BY start",
            values,
        )
        return tuple(Point(moment(start), lines, value) for start, lines, value in rows)

    def outcomes(self, account: int, query: Query, step: int, bounds: Sequence[int]) -> tuple[Outcome, ...]:
        """How lines ended, by route and steps of time."""
        check_measured(step, "", 50)
        values = Values()
        slower = ", ".join(f"countIf({_WAIT} > {int(bound)})" for bound in bounds)
        rows = self._client.rows(
            f"SELECT {_start(step)} AS start, toString(route) AS name, count(), countIf(status >= 500), "
            f"count(response_ms), CAST([{slower}], 'Array(UInt64)') FROM {TABLE} "
            f"WHERE {where(account, query, values)} GROUP BY start, name ORDER BY start, name",
            values,
        )
        return tuple(
            Outcome(moment(start), route, lines, failed, timed, tuple(slow))
            for start, route, lines, failed, timed, slow in rows
        )

    def one(self, account: int, record_id: str) -> Record | None:
        """The record of an id; its first twelve digits are the milliseconds when it was made."""
        try:
            made = moment(int(record_id.replace("-", "")[:12], 16))
            # A line is stored by its own time, which is a request's duration or a clock away from its id's.
            window = Query(made - _HOUR, made + 2 * _HOUR)
        except (ValueError, OverflowError, OSError):
            return None
        values = Values()
        text = f"{where(account, window, values)} AND id = {values.put('String', record_id)}"
        return next(iter(self._records(text, values, 1)), None)

    def export(self, account: int, query: Query, target: Path, kind: ExportFormat) -> int:
        """Write what fits into a file, oldest first."""
        values = Values()
        text = where(account, query, values)
        lines = int(self._client.rows(f"SELECT count() FROM {TABLE} WHERE {text}", values)[0][0])
        check_exported(lines, kind)
        columns, form = (", ".join(NAMES), "Parquet") if kind == "parquet" else (_AS_JSON, "TSVRaw")
        asked = f"SELECT {columns} FROM {TABLE} WHERE {text} ORDER BY {TABLE}.time, id FORMAT {form}"
        try:
            with target.open("wb") if kind == "parquet" else gzip.open(target, "wb", compresslevel=5) as opened:
                self._client.save(asked, values, opened)
        except OSError as error:
            raise Unavailable(f"The archive could not be written: {error}") from error
        return lines

    def days_of(self, account: int) -> list[Any]:
        """The days of an account: how many lines each has, and when its first was."""
        values = Values()
        asked = f"SELECT toYYYYMMDD(time) AS day, count(), min({_MILLIS}) FROM {TABLE} WHERE "
        found: list[Any] = self._client.rows(f"{asked}{whose(account, values)} GROUP BY day ORDER BY day", values)
        return found

    def _records(self, text: str, values: Values, limit: int) -> list[Record]:
        rows = self._client.rows(
            f"SELECT account, {_ALL} FROM {TABLE} WHERE {text} ORDER BY time DESC, id DESC LIMIT {int(limit)}", values
        )
        return [record_of(account, dict(zip(NAMES, row, strict=True))) for account, *row in rows]


def _shown(name: str) -> str:
    return f"ifNull(toString({name}), '')"


def _start(step: int) -> str:
    return f"intDiv({_MILLIS}, {int(step) * 1000}) * {int(step) * 1000}"


def _by_lines(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]
