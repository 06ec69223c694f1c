"""Columns of a stored line: their types, and the way from a record to a row and back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from apps.drivers.logs.contract import NUMBER_FIELDS, Record, Rejected

# The account is not a column: it is the folder that a file lies in.
NAMES = tuple(each.name for each in fields(Record) if each.name != "account")
TYPES: Mapping[str, str] = {
    name: "TIMESTAMP_MS"
    if name == "time"
    else ("BIGINT" if name.startswith("bytes") else "INTEGER")
    if name in NUMBER_FIELDS
    else "VARCHAR"
    for name in NAMES
}
NO_ROWS = "SELECT " + ", ".join(f"NULL::{TYPES[name]} AS {name}" for name in NAMES) + " WHERE false"
_CURSOR = re.compile(r"(?P<milliseconds>[0-9]{1,14})\.(?P<id>[!-~]{1,200})", re.ASCII)
# The bounds of the columns: what is outside says nothing and becomes unknown.
_LARGEST = {name: 2**31 - 1 if TYPES[name] == "INTEGER" else 2**62 for name in NUMBER_FIELDS}


def rows_of(listed: str, *, file: str = "") -> str:
    """Rows of Parquet files with all columns of now: what an older file does not have is NULL in its rows.

    With `file` a column of this name has the path of the file that a row is in.
    """
    path = f", filename='{file}'" if file else ""
    found = f"SELECT * FROM read_parquet({listed}, hive_partitioning=false, union_by_name=true{path})"
    return f"({NO_ROWS} UNION ALL BY NAME {found})"


def millis(time: datetime) -> int:
    """Milliseconds since 1970."""
    return round(time.timestamp() * 1000)


def moment(milliseconds: int) -> datetime:
    """The time of so many milliseconds."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def cursor_of(milliseconds: int, record_id: str) -> str:
    """Where a search goes on: after this record."""
    return f"{milliseconds}.{record_id}"


def position(cursor: str) -> tuple[datetime, str]:
    """The time and id of the last record before a cursor. Raises Rejected for what is none."""
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise Rejected("The cursor is not one that this search gave.")
    return moment(int(match["milliseconds"])), match["id"]


def row_of(record: Record) -> dict[str, object]:
    """The values of a record as JSON has them; `time` in milliseconds, headers as a JSON object or empty."""
    row: dict[str, object] = {name: getattr(record, name) for name in NAMES}
    row["time"] = millis(record.time)
    row["headers"] = json.dumps(dict(record.headers), sort_keys=True) if record.headers else ""
    for name, largest in _LARGEST.items():
        value = row[name]
        if isinstance(value, int) and not 0 <= value <= largest:
            row[name] = 0 if name.startswith("bytes") else None
    return row


def line_of(record: Record) -> bytes:
    """The row as a line of JSON; what is no character in UTF-8 becomes a question mark."""
    return json.dumps(row_of(record), ensure_ascii=False).encode("utf-8", "replace")


def record_of(account: int, row: Mapping[str, Any]) -> Record:
    """A record from its row, in the form that `row_of` makes; what another version knows and we do not is left out."""
    values: dict[str, Any] = {
        name: "" if row[name] is None and TYPES[name] == "VARCHAR" else row[name] for name in NAMES if name in row
    }
    values["time"] = moment(values["time"])
    values["headers"] = json.loads(values["headers"]) if values["headers"] else {}
    return Record(account=account, **values)
