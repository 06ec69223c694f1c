"""Batches on their way into ClickHouse: each once, whole days of an account at a time, on disk when it is answered."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from apps.drivers.logs.clickhouse.asking import Client, Values
from apps.drivers.logs.clickhouse.schema import TABLE
from apps.drivers.logs.clickhouse.statements import moment_of, whose
from apps.drivers.logs.contract import Record
from apps.drivers.logs.files.columns import NAMES, millis, row_of

Part = tuple[int, int]
# One block: each partition of it appears whole, or not at all, under the token of its batch.
_ONE_BLOCK = {
    "async_insert": 0,
    "max_insert_threads": 1,
    "input_format_parallel_parsing": 0,
    "max_insert_block_size": 2**24,
    "min_insert_block_size_rows": 2**24,
    "min_insert_block_size_bytes": 2**34,
    "max_partitions_per_insert_block": 0,
}


def store(client: Client, batch_id: str, records: Sequence[Record], *, first: bool) -> int:
    """Insert what is not stored of the batch; how many lines are new. Raises LogStoreError.

    What an insert that was cut off has stored is whole days of accounts: the rest is inserted when it comes again.
    """
    parts: dict[Part, list[Record]] = defaultdict(list)
    for record in records:
        parts[record.account, _day(record.time)].append(record)
    for part in () if first else _stored(client, batch_id, records):
        parts.pop(part, None)
    fresh = [record for part in sorted(parts) for record in parts[part]]
    if fresh:
        content = b"\n".join(map(partial(_line, batch_id), fresh))
        columns = f"account, batch, {', '.join(NAMES)}"
        settings = {**_ONE_BLOCK, "insert_deduplication_token": batch_id}
        client.ask(f"INSERT INTO {TABLE} ({columns}) FORMAT JSONEachRow", content=content, settings=settings)
    return len(fresh)


def _stored(client: Client, batch_id: str, records: Sequence[Record]) -> list[Part]:
    if not records:
        return []
    values, times = Values(), [millis(each.time) for each in records]
    accounts = tuple(sorted({each.account for each in records}))
    found = client.rows(
        f"SELECT DISTINCT account, toYYYYMMDD(time) FROM {TABLE} WHERE batch = {values.put('String', batch_id)} "
        f"AND {whose(accounts, values)} AND time >= {moment_of(min(times), values)} "
        f"AND time <= {moment_of(max(times), values)}",
        values,
    )
    return [(account, day) for account, day in found]


def _line(batch_id: str, record: Record) -> bytes:
    """The line as JSON; what is no character in UTF-8 becomes a question mark."""
    row = {**row_of(record), "account": record.account, "batch": batch_id, "time": _text_of(record.time)}
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")


def _text_of(time: datetime) -> str:
    at = millis(time)
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%d %H:%M:%S}.{at % 1000:03}"


def _day(time: datetime) -> int:
    return int(f"{datetime.fromtimestamp(millis(time) // 1000, UTC):%Y%m%d}")
