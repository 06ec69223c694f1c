"""Where lines lie on disk: a folder per account, day and hour, and files that appear whole or not at all.

    account=17/day=2026-11-23/hour=08/b-<batch>.<lines>.parquet            one batch as it came
                                      m<level>-<id>.<lines>.parquet        several files in one, sorted by time
                                      m<level>-<id>.<lines>.replaces       names it stands for, while those may be there
                                      m<level>-<id>.<lines>.batches        ids of all batches in it, compressed
                                      m<level>-<id>.<lines>.minutes        counts by minute, of a closed hour

`.replaces` and `.batches` exist before their file does, so whoever sees a merged file also sees what it stands for.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from apps.drivers.logs.contract import Rejected

BATCH_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
HOUR = timedelta(hours=1)
_NAME = re.compile(r"(?:b-(?P<batch>[A-Za-z0-9_-]+)|m(?P<level>\d)-[0-9a-f]+)\.(?P<lines>\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One Parquet file; `batch` is empty for merged files, `level` 0 for batches."""

    path: Path
    lines: int
    batch: str
    level: int

    def beside(self, suffix: str) -> Path:
        """The file of the same name that says something about this one."""
        return self.path.with_suffix(suffix)


def hour_of(time: datetime) -> datetime:
    """The start of the hour, UTC."""
    return time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def account_folder(root: Path, account: int) -> Path:
    """Everything of one account."""
    return root / f"account={int(account)}"


def hour_folder(root: Path, account: int, hour: datetime) -> Path:
    """All of one hour."""
    return account_folder(root, account) / f"day={hour:%Y-%m-%d}" / f"hour={hour:%H}"


def batch_path(folder: Path, batch_id: str, lines: int) -> Path:
    """Where a batch lies before it is merged. Raises Rejected for an id that is no safe name."""
    if not BATCH_ID.fullmatch(batch_id):
        raise Rejected("A batch id has only letters, digits, - and _, at most 100 of them.")
    return folder / f"b-{batch_id}.{lines}.parquet"


def merged_path(folder: Path, level: int, lines: int) -> Path:
    """A new name for a merged file."""
    return folder / f"m{level}-{uuid.uuid4().hex[:16]}.{lines}.parquet"


def accounts_of(root: Path) -> tuple[int, ...]:
    """Everybody who has a folder."""
    return tuple(sorted(int(name[8:]) for name in _names(root) if name.startswith("account=") and name[8:].isdigit()))


def hours_of(root: Path, account: int) -> list[tuple[datetime, Path]]:
    """The hours that an account has, oldest first."""
    found = []
    for day in sorted(_names(account_folder(root, account))):
        for hour in sorted(_names(account_folder(root, account) / day)):
            with suppress(ValueError):
                start = datetime.strptime(f"{day} {hour}", "day=%Y-%m-%d hour=%H").replace(tzinfo=UTC)
                found.append((start, account_folder(root, account) / day / hour))
    return found


def hours_between(root: Path, account: int, start: datetime, end: datetime) -> list[tuple[datetime, Path]]:
    """The hours of an account that the window touches, oldest first."""
    return [(hour, folder) for hour, folder in hours_of(root, account) if hour + HOUR > start and hour < end]


def live_files(folder: Path) -> list[LogFile]:
    """Files of an hour that count, each line once.

    The names come first and what merged files replace second: a merged file that is among the names has told before.
    """
    files = [file for name in _names(folder) if (file := _file(folder, name))]
    gone = replaced_names(folder)
    return [file for file in files if file.path.name not in gone]


def replaced_names(folder: Path) -> set[str]:
    """Names of files whose lines are in merged files that are there."""
    names = set(_names(folder))
    gone: set[str] = set()
    for name in names:
        if name.endswith(".replaces") and f"{name[: -len('.replaces')]}.parquet" in names:
            with suppress(FileNotFoundError):
                gone.update((folder / name).read_text().split())
    return gone


def holds_batch(folder: Path, batch_id: str) -> bool:
    """Whether the hour has this batch, as its own file or in a merged one."""
    for name in _names(folder):
        file = _file(folder, name)
        if file and (file.batch == batch_id or (file.level and batch_id in batches_of(file.beside(".batches")))):
            return True
    return False


@lru_cache(maxsize=256)
def batches_of(path: Path) -> frozenset[str]:
    """Ids of the batches in a merged file; such a list never changes."""
    with suppress(FileNotFoundError):
        return frozenset(gzip.decompress(path.read_bytes()).decode().split())
    return frozenset()


def write_batches(path: Path, batches: Iterable[str]) -> None:
    """Keep the list of a merged file."""
    write_whole(path, gzip.compress("\n".join(sorted(batches)).encode()))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there with all of its bytes, or not at all, after a crash too."""
    waiting = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    waiting.write_bytes(content)
    publish(waiting, path)


def publish(waiting: Path, path: Path) -> None:
    """Give a finished file its name; both the bytes and the name survive a crash."""
    with waiting.open("rb") as opened:
        os.fsync(opened.fileno())
    waiting.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names of a folder survive a crash."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def make_folder(root: Path, folder: Path) -> None:
    """Make a folder below the root; its name and those above survive a crash."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for each in (folder, *folder.parents):
        if each == root.parent:
            break
        sync_folder(each)


def working_folder(root: Path) -> Path:
    """Where files are written before they have a name; what lies here is worth nothing after a crash."""
    folder = root / "working"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_folder(root: Path, folder: Path) -> None:
    """Take a folder away at once, then delete it: no reader sees half of an hour."""
    doomed = working_folder(root) / f"doomed-{uuid.uuid4().hex}"
    with suppress(FileNotFoundError):
        folder.rename(doomed)
        sync_folder(folder.parent)
    shutil.rmtree(doomed, ignore_errors=True)


def remove_empty(folder: Path) -> None:
    """Take away folders of days, and the folder itself, that nothing is in."""
    for each in (*(folder / name for name in _names(folder)), folder):
        with suppress(OSError):
            each.rmdir()


@contextmanager
def only_one(root: Path) -> Iterator[bool]:
    """True for one process at a time, False for others, which then leave tidying to it."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "tidying.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _file(folder: Path, name: str) -> LogFile | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return LogFile(folder / name, int(match["lines"]), match["batch"] or "", int(match["level"] or 0))


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
