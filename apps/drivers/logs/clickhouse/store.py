"""The store in ClickHouse, beyond one machine: one table of lines, partitioned by account and day."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from apps.drivers.logs.ceilings import Ceilings, Turns
from apps.drivers.logs.clickhouse import schema, sql, storing
from apps.drivers.logs.clickhouse.answering import Answering
from apps.drivers.logs.clickhouse.asking import Client, Endpoint, Values
from apps.drivers.logs.clickhouse.schema import TABLE
from apps.drivers.logs.clickhouse.statements import ceiling, moment_of, whose
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
    Usage,
    Whose,
)
from apps.drivers.logs.files.columns import moment
from apps.drivers.logs.files.layout import check_batch_id, hour_of

_AT_ONCE = {"lightweight_deletes_sync": 2, "mutations_sync": 2}


class ClickHouseStore:
    """A LogStore over one table; any number of processes may have it open."""

    def __init__(self, endpoint: Endpoint, ceilings: Ceilings | None = None) -> None:
        self._ceilings = ceilings or Ceilings()
        self._client = Client(endpoint, self._ceilings)
        self._turns = Turns(self._ceilings)
        self._making = threading.Lock()
        self._made = False

    def store(self, batch_id: str, records: Sequence[Record], *, first: bool = False) -> int:
        """Once for each batch id."""
        check_batch_id(batch_id)
        return storing.store(self._ready(), batch_id, records, first=first)

    def search(self, account: Whose, query: Query, *, limit: int, cursor: str = "") -> Page:
        """Newest first."""
        with self._turns.taken(account):
            return Answering(self._ready()).search(account, query, limit, cursor)

    def histogram(self, account: Whose, query: Query, *, bins: int) -> Histogram:
        """From the lines themselves."""
        with self._turns.taken(account):
            return Answering(self._ready()).histogram(account, query, bins)

    def facets(self, account: Whose, query: Query, fields: Sequence[str], *, limit: int) -> tuple[Facet, ...]:
        """From the lines themselves."""
        with self._turns.taken(account):
            return Answering(self._ready()).facets(account, query, fields, limit)

    def groups(self, account: int, query: Query, fields: Sequence[str], *, limit: int) -> tuple[Group, ...]:
        """From the lines themselves."""
        with self._turns.taken(account):
            return Answering(self._ready()).groups(account, query, fields, limit)

    def series(
        self, account: int, query: Query, *, step_seconds: int, of: str = "", percentile: int = 50
    ) -> tuple[Point, ...]:
        """From the lines themselves."""
        with self._turns.taken(account):
            return Answering(self._ready()).series(account, query, step_seconds, of, percentile)

    def outcomes(
        self, account: int, query: Query, *, step_seconds: int, bounds_ms: Sequence[int]
    ) -> tuple[Outcome, ...]:
        """From the lines themselves."""
        with self._turns.taken(account):
            return Answering(self._ready()).outcomes(account, query, step_seconds, bounds_ms)

    def one(self, account: int, record_id: str) -> Record | None:
        """From the hours around the time that the id names."""
        with self._turns.taken(account):
            return Answering(self._ready()).one(account, record_id)

    def sql(self, account: int, text: str, *, start: datetime, end: datetime) -> SqlAnswer:
        """Asked by the reader, where the URL names one."""
        with self._turns.taken(account):
            window = ceiling(start), ceiling(end)
            return sql.answer(self._ready(), account, text, window, self._ceilings.rows)

    def export(self, account: int, query: Query, target: Path, kind: ExportFormat) -> int:
        """Written as it comes."""
        with self._turns.taken(account, exports=True):
            return Answering(self._ready()).export(account, query, target, kind)

    def usage(self, account: int) -> Usage:
        """Bytes are those of the parts on disk, without the share of lines that are deleted there already."""
        days = Answering(self._ready()).days_of(account)
        values = Values()
        sizes = self._client.rows(
            "SELECT partition, sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active "
            f"AND database = {values.put('String', self._client.endpoint.database)} AND table = '{TABLE}' "
            f"AND startsWith(partition, {values.put('String', f'({account},')}) GROUP BY partition",
            values,
        )
        on_disk = {int(name.strip("()").split(",")[1]): (rows, size) for name, rows, size in sizes}
        found = 0
        for day, lines, _ in days:
            rows, size = on_disk.get(day, (lines, 0))
            found += size * lines // max(rows, lines, 1)
        oldest = hour_of(moment(min(first for _, _, first in days))) if days else None
        return Usage(sum(lines for _, lines, _ in days), found, oldest)

    def accounts(self) -> tuple[int, ...]:
        """Everybody who has lines."""
        return tuple(each for (each,) in self._ready().rows(f"SELECT DISTINCT account FROM {TABLE} ORDER BY account"))

    def delete(self, account: int, before: datetime | None = None) -> int:
        """Whole days go with their partition; hours of a day are marked, and their room is free when it is merged."""
        gone = 0
        until = None if before is None else hour_of(before.astimezone(UTC))
        for day, lines, first in Answering(self._ready()).days_of(account):
            start = datetime.strptime(str(day), "%Y%m%d").replace(tzinfo=UTC)
            if until is None or start + timedelta(days=1) <= until:
                self._client.ask(f"ALTER TABLE {TABLE} DROP PARTITION ({int(account)}, {int(day)})", settings=_AT_ONCE)
                gone += lines
            elif moment(first) < until:
                gone += self._delete_hours(account, day, until)
        return gone

    def _delete_hours(self, account: int, day: int, until: datetime) -> int:
        values = Values()
        text = f"{whose(account, values)} AND toYYYYMMDD(time) = {values.put('UInt32', day)}"
        text += f" AND time < {moment_of(ceiling(until), values)}"
        lines = int(self._client.rows(f"SELECT count() FROM {TABLE} WHERE {text}", values)[0][0])
        where = f"IN PARTITION ({int(account)}, {int(day)}) WHERE {text}"
        self._client.ask(f"DELETE FROM {TABLE} {where}", values, settings=_AT_ONCE)
        return lines

    def tidy(self, now: datetime) -> int:  # noqa: ARG002 - the contract
        """ClickHouse merges by itself."""
        return 0

    def close(self) -> None:
        """Nothing waits here."""

    def _ready(self) -> Client:
        """The client, once its table is there."""
        with self._making:
            if not self._made:
                schema.make(self._client)
                self._made = True
        return self._client
