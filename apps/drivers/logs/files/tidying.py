"""Many small files of an hour become few large ones; killed at any step, no line is lost and none counts twice.

A merged file appears with a list of what it replaces, from that moment readers leave those out, and only when every
reader who may have seen them has ended are they deleted. Should two machines tidy at once, or one that was stopped go
on later, the older of two merged files with the same lines counts, and the younger is deleted before anything that it
stands for.
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

from apps.drivers.logs.contract import LogStoreError, Unavailable
from apps.drivers.logs.files.columns import rows_of
from apps.drivers.logs.files.layout import (
    NOTES,
    Hour,
    LogFile,
    accounts_of,
    age,
    as_batches,
    as_replaces,
    batches_of,
    hours_of,
    live_files,
    merged_name,
    one_hour,
    replaced_by,
    sorted_out,
)
from apps.drivers.logs.files.port import Entry, Files
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


def tidy(connection: Any, files: Files, now: datetime, since: datetime | None) -> int:
    """Tidy the hours from `since` on, all of them without it; the number of files that went into others.

    An hour that cannot be tidied keeps no other waiting. Raises LogStoreError for the first of them, in the end.
    """
    gone, trouble = 0, None
    with files.only_one() as mine:
        if not mine:
            return 0
        _clear(files.working)
        for account in accounts_of(files):
            for hour in hours_of(files, account, since):
                try:
                    gone += tidy_hour(connection, files, account, hour, now)
                except LogStoreError as error:
                    trouble = trouble or error
    if trouble:
        raise trouble
    return gone


def tidy_hour(connection: Any, files: Files, account: int, hour: Hour, now: datetime) -> int:
    """Finish what an earlier run began, then merge what is due."""
    try:
        if finish(files, hour):
            hour = one_hour(files, account, hour.start)
        inputs, level = _due(files, hour, now)
        if inputs:
            name = merge(connection, files, hour, inputs, level)
            # Deleted meanwhile are the lines of the hour: they must not come back.
            if not {file.name for file in inputs} <= set(one_hour(files, account, hour.start).entries):
                _delete_merged(files, name)
    except (OSError, duckdb.Error) as error:
        raise Unavailable(f"The log store could not tidy {hour.folder}: {error}") from error
    return len(inputs)


def finish(files: Files, hour: Hour) -> bool:
    """Delete merged files that do not count, what others replaced long enough ago, and notes that belong to no file.

    Whether anything was deleted.
    """
    live, doomed = sorted_out(files, hour)
    doomed += _late(files, live)
    for file in doomed:
        _delete_merged(files, file.name)
    stems = {file.beside("") for file in hour.files()}
    gone = [
        note.name
        for note in hour.entries.values()
        if note.name.endswith(NOTES) and _stem(note.name) not in stems and time.time() - note.written > ABANDONED_S
    ]
    done = []
    for file in live:
        note = hour.entries.get(file.beside(".replaces"))
        if note and file not in doomed and time.time() - max(note.written, file.entry.written) > GRACE_S:
            replaced = {_stem(name) for name in replaced_by(files, hour, file)}
            gone += [name for name in hour.entries if _stem(name) in replaced]
            done.append(note.name)
    files.delete(gone)
    files.delete(done)
    return bool(doomed or gone or done)


def _late(files: Files, live: Sequence[LogFile]) -> list[LogFile]:
    """Merged files of who was stopped, went on, and wrote lines that an older merged file has.

    What else they stand for is there yet: this is looked at before anything that a file replaced is deleted.
    """
    merged = sorted((file for file in live if file.level), key=age)
    late, known = [], set[str]()
    for file in merged if len(merged) > 1 else ():
        batches = batches_of(files, file.beside(".batches"))
        if batches & known:
            late.append(file)
        known |= batches
    return late


def merge(connection: Any, files: Files, hour: Hour, inputs: Sequence[LogFile], level: int) -> str:
    """Write the merged file and what it stands for; it counts from the moment that it has its name, which is told."""
    lines = sum(file.lines for file in inputs)
    name = merged_name(hour.folder, level, lines)
    waiting = files.working / f"{uuid.uuid4().hex}.parquet"
    try:
        with files.local([file.entry for file in inputs]) as paths:
            written = connection.execute(
                f"COPY (SELECT * FROM {rows_of('?')} ORDER BY time, id) TO {quoted(waiting)} {FORMAT.format(level=6)}",
                [list(map(str, paths))],
            ).fetchone()[0]
        if written != lines:
            raise Unavailable(
                f"Files in {hour.folder} have {written} lines where {lines} are expected: nothing was merged."
            )
        merged = LogFile(Entry(name, 0, 0.0), lines, "", level)
        if level == HIGHEST:
            _count_minutes(connection, files, waiting, merged.beside(".minutes"))
        batches = {file.batch for file in inputs if file.batch}
        batches.update(*(batches_of(files, file.beside(".batches")) for file in inputs if file.level))
        _note(files, merged.beside(".batches"), as_batches(batches))
        # What these files replaced themselves stays replaced when they are gone.
        replaced = {file.name for file in inputs}.union(*(replaced_by(files, hour, file) for file in inputs))
        _note(files, merged.beside(".replaces"), as_replaces(replaced))
        files.put(waiting, name)
    finally:
        waiting.unlink(missing_ok=True)
    return name


def _due(files: Files, hour: Hour, now: datetime) -> tuple[list[LogFile], int]:
    live = _without_repeated(files, hour)
    if not live:
        return [], 0
    newest = max(file.entry.written for file in live)
    if now >= hour.end + QUIET and newest <= (now - QUIET).timestamp():
        finished = len(live) == 1 and live[0].beside(".minutes") in hour.entries
        return ([], 0) if finished else (live, HIGHEST)
    for level in range(HIGHEST - 1):
        same = [file for file in live if file.level == level]
        if len(same) >= MANY:
            return same, level + 1
    return [], 0


def _without_repeated(files: Files, hour: Hour) -> list[LogFile]:
    """Live files; a batch that came again after it was merged is deleted."""
    live = live_files(files, hour)
    if len(live) < 2:
        return live
    merged = frozenset[str]().union(*(batches_of(files, file.beside(".batches")) for file in live if file.level))
    files.delete([file.name for file in live if file.batch in merged])
    return [file for file in live if file.batch not in merged]


def _delete_merged(files: Files, name: str) -> None:
    """The file goes before its notes: without them its lines would count beside what it stands for."""
    files.delete([name])
    files.delete([_stem(name) + note for note in NOTES])


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _note(files: Files, name: str, content: bytes) -> None:
    waiting = files.working / f"{uuid.uuid4().hex}.note"
    waiting.write_bytes(content)
    files.put(waiting, name)


def _count_minutes(connection: Any, files: Files, lines: Path, name: str) -> None:
    waiting = files.working / f"{uuid.uuid4().hex}.minutes"
    names = ", ".join(COUNTED_BY)
    connection.execute(
        f"COPY (SELECT date_trunc('minute', time)::TIMESTAMP_MS AS time, {names}, count(*)::BIGINT AS lines "
        f"FROM read_parquet(?) GROUP BY ALL ORDER BY ALL) TO {quoted(waiting)} {FORMAT.format(level=6)}",
        [str(lines)],
    )
    files.put(waiting, name)


def _clear(working: Path) -> None:
    """Delete what a process that died has left."""
    for path in working.iterdir():
        with suppress(FileNotFoundError):
            if path.is_file() and time.time() - path.stat().st_mtime > ABANDONED_S:
                path.unlink()
