"""Files in a folder: written aside, synced and renamed, so that they appear whole and survive a crash."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from apps.drivers.logs.contract import Unavailable
from apps.drivers.logs.files.port import LONGEST_S, Entry


class FolderFiles:
    """Files below one folder; any number of processes may have it open."""

    at_once = 1
    pause_s = 0.0

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def working(self) -> Path:
        """Beside the files, so that renaming is enough. Raises Unavailable."""
        return working_folder(self.root)

    def folders(self) -> list[str]:
        """By their names; files at the top are none of ours."""
        return [name for name in _names(self.root) if "=" in name]

    def entries(self, under: str, start: str = "", end: str = "") -> list[Entry]:
        """Looked up twice: a folder that changes meanwhile may show what came late and not what came before it.

        Files are those of the first look, their notes those of the second.
        """
        first = {each.name for each in self._entries(under, start, end) if each.name.endswith(".parquet")}
        second = self._entries(under, start, end)
        return sorted(
            (each for each in second if each.name in first or not each.name.endswith(".parquet")),
            key=lambda each: each.name,
        )

    def read(self, name: str) -> bytes:
        """As it is."""
        return (self.root / name).read_bytes()

    @contextmanager
    def local(self, entries: Sequence[Entry], seconds: float = LONGEST_S) -> Iterator[list[Path]]:  # noqa: ARG002 - the port
        """Where they are."""
        yield [self.root / each.name for each in entries]

    def make_folder(self, folder: str) -> None:
        """Its name and those above survive a crash."""
        wanted = self.root / folder
        if wanted.is_dir():
            return
        wanted.mkdir(parents=True, exist_ok=True)
        for each in (wanted, *wanted.parents):
            if each == self.root.parent:
                break
            sync_folder(each)

    def put(self, waiting: Path, name: str) -> None:
        """Both the bytes and the name survive a crash; a folder that was removed meanwhile is not made again."""
        path = self.root / name
        with waiting.open("rb") as opened:
            os.fsync(opened.fileno())
        waiting.rename(path)
        sync_folder(path.parent)

    def delete(self, names: Sequence[str]) -> None:
        """One after the other."""
        for name in names:
            with suppress(FileNotFoundError):
                (self.root / name).unlink()
        for folder in {(self.root / name).parent for name in names}:
            with suppress(FileNotFoundError):
                sync_folder(folder)

    def remove(self, folder: str, groups: Sequence[Sequence[str]]) -> None:  # noqa: ARG002 - the port
        """Taken away at once, then deleted: no reader sees half of an hour. Folders above that are empty go as well."""
        path = self.root / folder
        doomed = self.working / f"doomed-{uuid.uuid4().hex}"
        with suppress(FileNotFoundError):
            path.rename(doomed)
            sync_folder(path.parent)
        shutil.rmtree(doomed, ignore_errors=True)
        for each in path.parents:
            if each == self.root:
                break
            with suppress(OSError):
                each.rmdir()

    @contextmanager
    def only_one(self) -> Iterator[bool]:
        """By a lock that ends with the process."""
        self.root.mkdir(parents=True, exist_ok=True)
        with locked_by_one(self.root / "tidying.lock") as mine:
            yield mine

    def _entries(self, under: str, start: str, end: str) -> list[Entry]:
        found: list[Entry] = []
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.root / under) as scanned:
            for each in scanned:
                name = under + each.name
                if each.name.startswith(".") or (end and name >= end):
                    continue
                if each.is_dir():
                    inside = name + "/"
                    if inside >= start or start.startswith(inside):
                        found += self._entries(inside, start, end)
                elif name >= start:
                    with suppress(FileNotFoundError):
                        status = each.stat()
                        found.append(Entry(name, status.st_size, status.st_mtime))
        return found


def working_folder(root: Path) -> Path:
    """Where files are written before they have a name; what lies here is worth nothing after a crash."""
    folder = root / "working"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"The log store cannot be written: {error}") from error
    return folder


def sync_folder(folder: Path) -> None:
    """Make the names of a folder survive a crash."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def locked_by_one(path: Path) -> Iterator[bool]:
    """True for who has the lock of this file, False at once for others."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
