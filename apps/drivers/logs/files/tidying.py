"""Many small files of an hour become few large ones; killed at any step, no line is lost and none counts twice.

A merged file appears with a list of what it replaces, from that moment readers leave those out, and only when every
reader who may have seen them has ended are they deleted.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from apps.drivers.logs.contract import Unavailable
from apps.drivers.logs.files.columns import rows_of
from apps.drivers.logs.files.layout import (
    HOUR,
    LogFile,
    accounts_of,
    batches_of,
    hours_of,
    live_files,
    merged_path,
    only_one,
    publish,
    replaced_names,
    sync_folder,
    working_folder,
    write_batches,
    write_whole,
)
from apps.drivers.logs.files.writing import FORMAT, quoted

MANY = 32
HIGHEST = 9
# Longer than any question may take: whoever read the names of files before a merge has ended.
GRACE_S = 180.0
# An hour is closed when nothing came for so long after its end.
QUIET = timedelta(minutes=10)
ABANDONED_S = 3600.0
# By what a minute is counted; searches that name only these need not read the lines.
COUNTED_BY = (
    "kind", "load_balancer", "listener", "route", "pool", "server", "region", "home_region", "why", "decided_by",
    "status", "termination", "test_run",
)  # fmt: skip


def tidy(connection: Any, root: Path, now: datetime, since: datetime | None) -> int:
    """Tidy the hours from `since` on, all of them without it; the number of files that went into others.

    An hour that cannot be tidied keeps no other waiting. Raises Unavailable for the first of them, in the end.
    """
    gone, trouble = 0, None
    with only_one(root) as mine:
        if not mine:
            return 0
        _clear(working_folder(root))
        for account in accounts_of(root):
            for hour, folder in hours_of(root, account):
                if since is None or hour >= since:
                    try:
                        gone += tidy_hour(connection, root, hour, folder, now)
                    except Unavailable as error:
                        trouble = trouble or error
    if trouble:
        raise trouble
    return gone


def tidy_hour(connection: Any, root: Path, hour: datetime, folder: Path, now: datetime) -> int:
    """Finish what an earlier run began, then merge what is due."""
    try:
        finish(folder)
        inputs, level = _due(folder, hour, now)
        if inputs:
            merge(connection, root, folder, inputs, level)
    except (OSError, duckdb.Error) as error:
        raise Unavailable(f"The log store could not tidy {folder}: {error}") from error
    return len(inputs)


def finish(folder: Path) -> None:
    """Delete what merged files replaced long enough ago, and notes that belong to no file."""
    present = {path.name: path for path in folder.iterdir()}
    for name, path in sorted(present.items()):
        if name.endswith((".replaces", ".batches", ".minutes")) and f"{path.stem}.parquet" not in present:
            path.unlink()
        elif name.endswith(".replaces") and time.time() - path.stat().st_mtime > GRACE_S:
            for each in path.read_text().split():
                for suffix in (".minutes", ".batches", ".replaces", ".parquet"):
                    with suppress(FileNotFoundError):
                        (folder / each).with_suffix(suffix).unlink()
            sync_folder(folder)
            with suppress(FileNotFoundError):
                path.unlink()


def merge(connection: Any, root: Path, folder: Path, inputs: Sequence[LogFile], level: int) -> None:
    """Write the merged file and what it stands for; it counts from the moment that it has its name."""
    lines = sum(file.lines for file in inputs)
    path = merged_path(folder, level, lines)
    waiting = working_folder(root) / f"{uuid.uuid4().hex}.parquet"
    try:
        names = [str(file.path) for file in inputs]
        written = connection.execute(
            f"COPY (SELECT * FROM {rows_of('?')} ORDER BY time, id) TO {quoted(waiting)} {FORMAT.format(level=6)}",
            [names],
        ).fetchone()[0]
        if written != lines:
            raise Unavailable(f"Files in {folder} have {written} lines where {lines} are expected: nothing was merged.")
        if level == HIGHEST:
            _count_minutes(connection, root, waiting, path.with_suffix(".minutes"))
        batches = {file.batch for file in inputs if file.batch}
        batches.update(*(batches_of(file.beside(".batches")) for file in inputs if file.level))
        write_batches(path.with_suffix(".batches"), batches)
        # What these files replaced themselves stays replaced when they are gone.
        replaced = replaced_names(folder) | {file.path.name for file in inputs}
        write_whole(path.with_suffix(".replaces"), "\n".join(sorted(replaced)).encode())
        publish(waiting, path)
    finally:
        with suppress(FileNotFoundError):
            waiting.unlink()


def _due(folder: Path, hour: datetime, now: datetime) -> tuple[list[LogFile], int]:
    live = _without_repeated(folder)
    if not live:
        return [], 0
    newest = max(file.path.stat().st_mtime for file in live)
    if now >= hour + HOUR + QUIET and newest <= (now - QUIET).timestamp():
        finished = len(live) == 1 and live[0].beside(".minutes").exists()
        return ([], 0) if finished else (live, HIGHEST)
    for level in range(HIGHEST - 1):
        same = [file for file in live if file.level == level]
        if len(same) >= MANY:
            return same, level + 1
    return [], 0


def _without_repeated(folder: Path) -> list[LogFile]:
    """Live files; a batch that came again after it was merged is deleted."""
    live = live_files(folder)
    merged = frozenset[str]().union(*(batches_of(file.beside(".batches")) for file in live if file.level))
    for file in live:
        if file.batch in merged:
            file.path.unlink()
    return [file for file in live if file.batch not in merged]


def _count_minutes(connection: Any, root: Path, lines: Path, path: Path) -> None:
    waiting = working_folder(root) / f"{uuid.uuid4().hex}.minutes"
    names = ", ".join(COUNTED_BY)
    connection.execute(
        f"COPY (SELECT date_trunc('minute', time)::TIMESTAMP_MS AS time, {names}, count(*)::BIGINT AS lines "
        f"FROM read_parquet(?) GROUP BY ALL ORDER BY ALL) TO {quoted(waiting)} {FORMAT.format(level=6)}",
        [str(lines)],
    )
    publish(waiting, path)


def _clear(working: Path) -> None:
    """Delete what a process that died has left."""
    for path in working.iterdir():
        with suppress(FileNotFoundError):
            if path.is_file() and time.time() - path.stat().st_mtime > ABANDONED_S:
                path.unlink()
