"""Rows become Parquet: a batch as it comes, and several files in one; each appears whole, with all of its bytes."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

from apps.drivers.logs.contract import Record, Unavailable
from apps.drivers.logs.files.columns import TYPES, line_of
from apps.drivers.logs.files.layout import (
    batch_path,
    holds_batch,
    hour_folder,
    hour_of,
    make_folder,
    publish,
    working_folder,
)

FORMAT = "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {level}, PARQUET_VERSION v2, ROW_GROUP_SIZE 122880)"
MEMORY = "512MB"


def connect(working: Path, threads: int = 1) -> Any:
    """A DuckDB of our own for files of our own: it fetches nothing, and spills where unfinished files lie."""
    connection = duckdb.connect(
        config={
            "threads": threads,
            "memory_limit": MEMORY,
            "temp_directory": str(working),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    connection.execute("SET preserve_insertion_order = true; SET TimeZone = 'UTC'")
    return connection


def store_batch(connection: Any, root: Path, batch_id: str, records: Sequence[Record]) -> int:
    """Write one file for each account and hour that does not have the batch yet; the lines that are new."""
    parts = defaultdict(list)
    for record in records:
        parts[record.account, hour_of(record.time)].append(record)
    new = 0
    for (account, hour), lines in sorted(parts.items(), key=lambda part: part[0]):
        folder = hour_folder(root, account, hour)
        path = batch_path(folder, batch_id, len(lines))
        if holds_batch(folder, batch_id):
            continue
        try:
            make_folder(root, folder)
            _write_records(connection, root, lines, path)
        except (OSError, duckdb.Error) as error:
            raise Unavailable(f"The log store could not write {path.parent}: {error}") from error
        new += len(lines)
    return new


def _write_records(connection: Any, root: Path, records: Iterable[Record], path: Path) -> None:
    raw = working_folder(root) / f"{uuid.uuid4().hex}.jsonl"
    waiting = raw.with_suffix(".parquet")
    columns = ", ".join(f"{name}: '{_read_as(name)}'" for name in TYPES)
    selected = ", ".join(f"epoch_ms(time)::TIMESTAMP_MS AS {name}" if name == "time" else name for name in TYPES)
    try:
        raw.write_bytes(b"\n".join(map(line_of, records)))
        connection.execute(
            f"COPY (SELECT {selected} FROM read_json(?, format='newline_delimited', columns={{{columns}}}, "
            f"maximum_object_size=67108864) ORDER BY time, id) TO {quoted(waiting)} {FORMAT.format(level=3)}",
            [str(raw)],
        )
        publish(waiting, path)
    finally:
        for each in (raw, waiting):
            with suppress(FileNotFoundError):
                each.unlink()


def _read_as(name: str) -> str:
    return "BIGINT" if name == "time" else TYPES[name]


def quoted(path: Path) -> str:
    """A path as a literal of SQL, where DuckDB takes no parameter."""
    return "'" + str(path).replace("'", "''") + "'"
