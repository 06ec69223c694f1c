"""Where lines lie: a folder per account, day and hour, and files that never change; and which of them count.

    account=17/day=2026-11-23/hour=08/b-<batch>.<lines>.parquet            one batch as it came
                                      m<level>-<id>.<lines>.parquet        several files in one, sorted by time
                                      m<level>-<id>.<lines>.replaces       names it stands for, while those may be there
                                      m<level>-<id>.<lines>.batches        ids of all batches in it, compressed
                                      m<level>-<id>.<lines>.minutes        counts by minute, of a closed hour

The notes of a merged file exist before it does, so whoever sees it also sees what it stands for.
"""

from __future__ import annotations

import gzip
import re
import uuid
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from apps.drivers.logs.contract import Rejected
from apps.drivers.logs.files.port import Entry, Files

_BATCH_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
HOUR = timedelta(hours=1)
NOTES = (".minutes", ".batches", ".replaces")
_NAME = re.compile(r"(?:b-(?P<batch>[A-Za-z0-9_-]+)|m(?P<level>\d)-[0-9a-f]+)\.(?P<lines>\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One Parquet file; `batch` is empty for merged files, `level` 0 for batches."""

    entry: Entry
    lines: int
    batch: str
    level: int

    @property
    def name(self) -> str:
        """Its whole name."""
        return self.entry.name

    def beside(self, suffix: str) -> str:
        """The name of the file that says something about this one."""
        return self.name.removesuffix(".parquet") + suffix


@dataclass(frozen=True, slots=True)
class Hour:
    """What is listed of an hour of an account, by whole names; `folder` ends with /."""

    start: datetime
    folder: str
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def end(self) -> datetime:
        """When it is over."""
        return self.start + HOUR

    def files(self) -> list[LogFile]:
        """All Parquet files of lines, also those that do not count."""
        return [file for entry in self.entries.values() if (file := _file(self.folder, entry))]


def hour_of(time: datetime) -> datetime:
    """The start of the hour, UTC."""
    return time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def account_folder(account: int) -> str:
    """Everything of one account."""
    return f"account={int(account)}/"


def hour_folder(account: int, hour: datetime) -> str:
    """All of one hour."""
    return f"{account_folder(account)}day={hour:%Y-%m-%d}/hour={hour:%H}/"


def check_batch_id(batch_id: str) -> None:
    """Raises Rejected for an id that is no safe name."""
    if not _BATCH_ID.fullmatch(batch_id):
        raise Rejected("A batch id has only letters, digits, - and _, at most 100 of them.")


def batch_name(folder: str, batch_id: str, lines: int) -> str:
    """What a batch is called before it is merged. Raises Rejected for an id that is no safe name."""
    check_batch_id(batch_id)
    return f"{folder}b-{batch_id}.{lines}.parquet"


def merged_name(folder: str, level: int, lines: int) -> str:
    """A new name for a merged file."""
    return f"{folder}m{level}-{uuid.uuid4().hex[:16]}.{lines}.parquet"


def accounts_of(files: Files) -> tuple[int, ...]:
    """Everybody who has a folder."""
    return tuple(
        sorted(int(name[8:]) for name in files.folders() if name.startswith("account=") and name[8:].isdigit())
    )


def hours_of(files: Files, account: int, start: datetime | None = None, end: datetime | None = None) -> list[Hour]:
    """The hours of an account that the window touches, oldest first."""
    first = hour_folder(account, hour_of(start)) if start else ""
    last = hour_folder(account, hour_of(end - timedelta(microseconds=1)) + HOUR) if end else ""
    found: dict[str, Hour] = {}
    for entry in files.entries(account_folder(account), first, last):
        folder = entry.name[: entry.name.rfind("/") + 1]
        if folder not in found:
            with suppress(ValueError):
                started = datetime.strptime(folder, f"{account_folder(account)}day=%Y-%m-%d/hour=%H/").replace(
                    tzinfo=UTC
                )
                found[folder] = Hour(started, folder)
        if folder in found:
            found[folder].entries[entry.name] = entry
    return sorted(found.values(), key=lambda each: each.start)


def hours_of_each(files: Files, accounts: Iterable[int], start: datetime, end: datetime) -> list[Hour]:
    """The same of several accounts together: the same hour once for each of them."""
    found = [hour for account in accounts for hour in hours_of(files, account, start, end)]
    return sorted(found, key=lambda each: each.start)


def account_of(name: str) -> int:
    """Whose a file with this whole name is."""
    return int(name.removeprefix("account=").partition("/")[0])


def one_hour(files: Files, account: int, start: datetime) -> Hour:
    """What is listed of one hour."""
    folder = hour_folder(account, start)
    return Hour(start, folder, {entry.name: entry for entry in files.entries(folder)})


def live_files(files: Files, hour: Hour) -> list[LogFile]:
    """Files of an hour that count, each line once."""
    return sorted_out(files, hour)[0]


def sorted_out(files: Files, hour: Hour) -> tuple[list[LogFile], list[LogFile]]:
    """Files of an hour that count, and merged ones that never did.

    Two machines may merge the same file at once. Then the older of the two counts, and what only the younger stands
    for counts by itself: it is there yet. A merged file counts by its notes: without them it is nothing.
    """
    gone: set[str] = set()
    overruled: list[LogFile] = []
    stands_in: dict[str, str] = {}
    merged = (file for file in hour.files() if file.level)
    for file in sorted(merged, key=age):
        replaced = replaced_by(files, hour, file)
        takes = {stands_in[name] for name in replaced if name in stands_in}
        if (takes <= replaced or _names_more(file, replaced)) and file.beside(".batches") in hour.entries:
            gone |= replaced
            stands_in |= dict.fromkeys(replaced, file.name)
        else:
            overruled.append(file)
    gone |= {file.name for file in overruled}
    return [file for file in hour.files() if file.name not in gone], overruled


def _names_more(file: LogFile, replaced: Iterable[str]) -> bool:
    """Whether these are more than it was merged of: an older version wrote down what others had replaced as well."""
    lines = Counter[str]()
    for name in replaced:
        if match := _NAME.fullmatch(name.rpartition("/")[2]):
            lines[match["level"] or ""] += int(match["lines"])
    return any(found > file.lines for found in lines.values())


def age(file: LogFile) -> tuple[float, str]:
    """The oldest first, the same for everybody."""
    return file.entry.written, file.name


def replaced_by(files: Files, hour: Hour, file: LogFile) -> frozenset[str]:
    """Names of files that one merged file stands for, while those may be there."""
    note = file.beside(".replaces")
    with suppress(FileNotFoundError):
        return _replaced(files, note) if note in hour.entries else frozenset()
    return frozenset()


@lru_cache(maxsize=256)
def _replaced(files: Files, note: str) -> frozenset[str]:
    folder = note[: note.rfind("/") + 1]
    return frozenset(folder + name for name in files.read(note).decode().split())


def holds_batch(files: Files, hour: Hour, batch_id: str) -> bool:
    """Whether the hour has this batch, as its own file or in a merged one."""
    return any(
        file.batch == batch_id or (file.level and batch_id in batches_of(files, file.beside(".batches")))
        for file in hour.files()
    )


@lru_cache(maxsize=256)
def batches_of(files: Files, note: str) -> frozenset[str]:
    """Ids of the batches in a merged file; such a list never changes."""
    with suppress(FileNotFoundError):
        return frozenset(gzip.decompress(files.read(note)).decode().split())
    return frozenset()


def as_batches(batches: Iterable[str]) -> bytes:
    """The list of a merged file."""
    return gzip.compress("\n".join(sorted(batches)).encode())


def as_replaces(names: Iterable[str]) -> bytes:
    """The names that a merged file stands for, without their folder."""
    return "\n".join(sorted(name.rpartition("/")[2] for name in names)).encode()


def _file(folder: str, entry: Entry) -> LogFile | None:
    match = _NAME.fullmatch(entry.name.removeprefix(folder))
    if match is None:
        return None
    return LogFile(entry, int(match["lines"]), match["batch"] or "", int(match["level"] or 0))
