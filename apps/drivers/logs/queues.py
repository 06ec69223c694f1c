"""Lines that wait to be forwarded: for each log forward a folder of files that only grow, in order of arrival.

    forward/17/202611230830.lines     what arrived in these ten minutes for log forward 17

A file is a row of frames: 16 bytes (mark, length, number of lines, checksum) and so many bytes, JSON lines in gzip.
Who appends holds a lock; who reads knows how far it is in each file. What a killed process left unfinished is
passed over: its lines were not acknowledged, and come again.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from apps.drivers.logs.contract import Record, Unavailable
from apps.drivers.logs.files.columns import record_of, row_of

MARK = b"\x93SPL"
HEAD = struct.Struct(">4sIII")
LINES_OF_A_FRAME = 1000
MOST_OF_A_FRAME = 64 * 2**20
STEP = timedelta(minutes=10)
# A file of the past is deleted when nobody can be about to append to it any more.
LATE = timedelta(minutes=5)
ENDING = ".lines"


# How far a log forward is: for each file that it began, the offset behind what is sent.
Positions = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Frame:
    """Some lines, the file that they are in and the offset behind them."""

    records: tuple[Record, ...]
    file: str
    behind: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a log forward still has to be sent; `since` is when the oldest of it came, None when nothing waits."""

    bytes: int
    since: datetime | None


class Queues:
    """The folders of all log forwards; any number of processes may have them open."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def append(self, forward: int, records: Sequence[Record], moment: datetime) -> None:
        """Keep lines for a log forward; when this returns they survive a crash of the machine. Raises Unavailable."""
        frames = b"".join(
            _frame(records[start : start + LINES_OF_A_FRAME]) for start in range(0, len(records), LINES_OF_A_FRAME)
        )
        path = self._folder(forward) / _name(moment)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(path) as opened:
                before = os.fstat(opened.fileno()).st_size
                try:
                    opened.write(frames)
                    opened.flush()
                    os.fsync(opened.fileno())
                except OSError:
                    opened.truncate(before)
                    raise
        except OSError as error:
            raise Unavailable(f"The log store cannot keep lines to forward: {error}") from error

    def read(self, forward: int, positions: Positions, most: int) -> list[Frame]:
        """The next frames, at most so many. Each file is looked into: clocks differ, and an older one may grow."""
        found: list[Frame] = []
        for path, offset in self._left(forward, positions):
            with suppress(FileNotFoundError), path.open("rb") as opened:
                opened.seek(offset)
                for lines, content in _frames(opened, want=True):
                    records = _records(content)
                    if records is not None and len(records) == lines:
                        found.append(Frame(records, path.name, opened.tell()))
                    if len(found) >= most:
                        return found
        return found

    def moved(self, forward: int, positions: Positions, frames: Sequence[Frame]) -> dict[str, int]:
        """Positions behind these frames; of files that are there."""
        present = {path.name for path in self._files(forward)}
        after = {**positions, **{each.file: each.behind for each in frames}}
        return {name: offset for name, offset in after.items() if name in present}

    def waiting(self, forward: int, positions: Positions) -> Waiting:
        """What is not sent yet, by the sizes of files."""
        left = self._left(forward, positions)
        size = sum(_size(path) - offset for path, offset in left)
        return Waiting(size, _time(left[0][0].name) if left else None)

    def lines(self, forward: int, positions: Positions) -> int:
        """How many lines are not sent yet, by the heads of their frames."""
        return sum(_count(path, offset, _size(path)) for path, offset in self._left(forward, positions))

    def tidy(
        self, forward: int, positions: Positions, moment: datetime, before: datetime, most_bytes: int = 2**62
    ) -> int:
        """Delete files that are sent, that came before `before`, and the oldest of too many; lines nobody was sent."""
        left = dict(self._left(forward, positions))
        for path in self._files(forward):
            if _time(path.name) + STEP + LATE < moment and (path not in left or not _has_frames(path, left[path])):
                _delete(path, left.pop(path, positions.get(path.name, 0)))
        skipped = 0
        size = sum(_size(path) - offset for path, offset in left.items())
        for number, (path, offset) in enumerate(left.items(), start=1):
            too_many = size > most_bytes and number < len(left)
            if _time(path.name) + STEP > before and not too_many:
                break
            size -= _size(path) - offset
            with path.open("rb") as opened:
                opened.seek(offset)
                skipped += sum(lines for lines, _ in _frames(opened, want=False))
            path.unlink(missing_ok=True)
        return skipped

    def drop(self, forward: int) -> None:
        """Forget everything of a log forward."""
        shutil.rmtree(self._folder(forward), ignore_errors=True)

    def known(self) -> list[int]:
        """Everybody who has a folder."""
        with suppress(FileNotFoundError):
            return sorted(int(path.name) for path in self._root.iterdir() if path.name.isdigit())
        return []

    def _folder(self, forward: int) -> Path:
        return self._root / str(int(forward))

    def _files(self, forward: int) -> list[Path]:
        with suppress(FileNotFoundError):
            return sorted(path for path in self._folder(forward).iterdir() if path.suffix == ENDING)
        return []

    def _left(self, forward: int, positions: Positions) -> list[tuple[Path, int]]:
        """Files with something to send, oldest first, and where it begins."""
        found = []
        for path in self._files(forward):
            offset, size = positions.get(path.name, 0), _size(path)
            if offset > size:  # another file of this name, after the first was sent and deleted
                offset = 0
            if size > offset:
                found.append((path, offset))
        return found


def _has_frames(path: Path, offset: int) -> bool:
    """Whether more is left of a file than what a killed process did not finish."""
    with suppress(FileNotFoundError), path.open("rb") as opened:
        opened.seek(offset)
        return any(True for _ in _frames(opened, want=False))
    return False


@lru_cache(maxsize=4096)
def _count(path: Path, offset: int, size: int) -> int:
    """The lines of a file from here on; what nobody reads and nobody writes is counted once."""
    found = 0
    with suppress(FileNotFoundError), path.open("rb") as opened:
        opened.seek(offset)
        while opened.tell() < size and len(head := opened.read(HEAD.size)) == HEAD.size:
            mark, length, lines, _ = HEAD.unpack(head)
            if mark != MARK:  # damaged: what is behind it is looked for, as who sends does
                opened.seek(-HEAD.size, os.SEEK_CUR)
                return found + sum(each for each, _ in _frames(opened, want=False))
            found += lines
            opened.seek(length, os.SEEK_CUR)
    return found


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _frame(records: Sequence[Record]) -> bytes:
    rows = [{"account": each.account, **row_of(each)} for each in records]
    content = gzip.compress(
        b"\n".join(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") for row in rows), 1, mtime=0
    )
    return HEAD.pack(MARK, len(content), len(rows), zlib.crc32(content)) + content


def _frames(opened: BinaryIO, *, want: bool) -> Iterator[tuple[int, bytes]]:
    """Whole frames from here on: number of lines and bytes, which are empty unless wanted; damage is passed over."""
    while len(head := opened.read(HEAD.size)) == HEAD.size:
        at = opened.tell() - HEAD.size
        mark, length, lines, checksum = HEAD.unpack(head)
        content = opened.read(length) if mark == MARK and length <= MOST_OF_A_FRAME else b""
        if len(content) == length and zlib.crc32(content) == checksum and mark == MARK:
            yield lines, content if want else b""
        elif not _find_mark(opened, at + 1):
            return


def _find_mark(opened: BinaryIO, start: int) -> bool:
    """Go to the next mark from here on, if there is one."""
    opened.seek(start)
    rest = opened.read(MOST_OF_A_FRAME)
    found = rest.find(MARK)
    opened.seek(start + found if found >= 0 else start + len(rest))
    return found >= 0


def _records(content: bytes) -> tuple[Record, ...] | None:
    try:
        rows: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(content).splitlines()]
        return tuple(record_of(row.pop("account"), row) for row in rows)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _name(moment: datetime) -> str:
    utc = moment.astimezone(UTC)
    return f"{utc:%Y%m%d%H}{utc.minute // 10}0{ENDING}"


def _time(name: str) -> datetime:
    try:
        return datetime.strptime(name.removesuffix(ENDING), "%Y%m%d%H%M").replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


class _locked:  # noqa: N801 - reads as a statement
    """The file, opened to append by nobody else; anew where it was deleted before the lock was had."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> BinaryIO:
        while True:
            opened = self._path.open("ab")
            fcntl.flock(opened, fcntl.LOCK_EX)
            if os.fstat(opened.fileno()).st_nlink:
                self._opened = opened
                return opened
            opened.close()

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _delete(path: Path, offset: int) -> None:
    """Delete a file unless it has grown meanwhile."""
    with suppress(FileNotFoundError), path.open("rb") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        if not _has_frames(path, offset):
            path.unlink()
