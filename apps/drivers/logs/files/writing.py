"""Rows become Parquet: a batch as it comes, and several files in one; each appears whole, with all of its bytes."""

from __future__ import annotations

import threading
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from apps.drivers.logs.contract import Record, Unavailable
from apps.drivers.logs.files.columns import TYPES, line_of
from apps.drivers.logs.files.layout import batch_name, holds_batch, hour_folder, hour_of, one_hour
from apps.drivers.logs.files.port import Files

FORMAT = "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {level}, PARQUET_VERSION v2, ROW_GROUP_SIZE 122880)"
MEMORY = "512MB"


def connect(working: Path, threads: int = 1) -> Any:
    """A DuckDB of our own for files of our own: it fetches nothing, and spills where unfinished files lie.

    It reads each file once, so it keeps none in memory: DuckDB would keep them up to the limit of its memory.
    """
    connection = duckdb.connect(
        config={
            "threads": threads,
            "memory_limit": MEMORY,
            "temp_directory": str(working),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_file_cache": False,
        }
    )
    connection.execute("SET preserve_insertion_order = true; SET TimeZone = 'UTC'")
    return connection


class Writer:
    """Batches on their way to files; threads may share it."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._connection: Any = None

    def store(self, batch_id: str, records: Sequence[Record], *, first: bool) -> int:
        """Write one file for each account and hour that does not have the batch yet; the lines that are new.

        Whether an hour has it takes longer the more files there are: what comes for the `first` time is not looked for.
        """
        parts = defaultdict(list)
        for record in records:
            parts[record.account, hour_of(record.time)].append(record)
        in_order = sorted(parts.items(), key=lambda part: part[0])
        with ThreadPoolExecutor(self._files.at_once) as pool:
            return sum(pool.map(partial(self._store_part, batch_id, first=first), in_order))

    def _store_part(self, batch_id: str, part: tuple[tuple[int, datetime], Sequence[Record]], *, first: bool) -> int:
        (account, start), records = part
        folder = hour_folder(account, start)
        name = batch_name(folder, batch_id, len(records))
        if not first and holds_batch(self._files, one_hour(self._files, account, start), batch_id):
            return 0
        try:
            self._files.make_folder(folder)
            self._write(records, name)
        except (OSError, duckdb.Error) as error:
            raise Unavailable(f"The log store could not write {folder}: {error}") from error
        return len(records)

    def _write(self, records: Iterable[Record], name: str) -> None:
        raw = self._files.working / f"{uuid.uuid4().hex}.jsonl"
        waiting = raw.with_suffix(".parquet")
        columns = ", ".join(f"{name}: '{_read_as(name)}'" for name in TYPES)
        selected = ", ".join(f"epoch_ms(time)::TIMESTAMP_MS AS {name}" if name == "time" else name for name in TYPES)
        try:
            raw.write_bytes(b"\n".join(map(line_of, records)))
            with self._lock:
                self._connection = self._connection or connect(self._files.working)
                self._connection.execute(
                    f"COPY (SELECT {selected} FROM read_json(?, format='newline_delimited', columns={{{columns}}}, "
                    f"maximum_object_size=67108864) ORDER BY time, id) TO {quoted(waiting)} {FORMAT.format(level=3)}",
                    [str(raw)],
                )
            self._files.put(waiting, name)
        finally:
            for each in (raw, waiting):
                each.unlink(missing_ok=True)


def _read_as(name: str) -> str:
    return "BIGINT" if name == "time" else TYPES[name]


def quoted(path: Path) -> str:
    """A path as a literal of SQL, where DuckDB takes no parameter."""
    return "'" + str(path).replace("'", "''") + "'"
