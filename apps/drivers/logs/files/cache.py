"""Copies of files that lie in a bucket, on this machine: never more than a ceiling of bytes, whoever asks at once.

    cache/<bucket>/account=17/day=…/…      a copy, whole; how long ago it was used is its time of change
    cache/<bucket>/account=17/day=…/….part a copy on its way, as large as it will be from its first moment
    pins/<id>                              names that one question reads, locked while it lives

What is pinned stays. Processes share it; whatever one that was killed had pinned or begun is anybody's again.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from apps.drivers.logs.contract import Busy, TooLarge
from apps.drivers.logs.files.port import Entry

AT_ONCE = 8
# So many are reserved in one step: each has an open file while it comes.
STEP = 64
WAIT_S, PATIENCE_S = 0.05, 5.0
# Lines that were deleted, and what nobody asks for, do not stay because there is room.
UNUSED_S = 86_400.0
PART = ".part"

Fetch = Callable[[Entry, BinaryIO], None]


class Cache:
    """A folder of copies; `fetch` writes the bytes of a file into another."""

    def __init__(self, folder: Path, name: str, ceiling: int, fetch: Fetch) -> None:
        self._all = folder / "cache"
        self._own = self._all / name
        self._pins = folder / "pins"
        self._ceiling = ceiling
        self._fetch = fetch

    @contextmanager
    def hold(self, entries: Sequence[Entry], seconds: float) -> Iterator[list[Path]]:
        """Copies of all of these, which stay until the context ends. Raises LogStoreError, FileNotFoundError."""
        total = sum(entry.size for entry in entries)
        if total > self._ceiling:
            raise TooLarge(
                f"The question reads {_megabytes(total)} of the bucket, more than the cache of this machine holds "
                f"({_megabytes(self._ceiling)}): take a shorter time."
            )
        until = time.monotonic() + seconds
        with self._pinned(entries):
            for start in range(0, len(entries), STEP):
                self._have(entries[start : start + STEP], until)
            yield [self._own / entry.name for entry in entries]

    def forget(self, names: Sequence[str]) -> None:
        """Delete copies of what was deleted."""
        for name in names:
            with suppress(FileNotFoundError):
                (self._own / name).unlink()

    @contextmanager
    def _pinned(self, entries: Sequence[Entry]) -> Iterator[None]:
        """No other question removes these, and none that wants room misses that they are there."""
        paths = [str(self._own / entry.name) for entry in entries]
        with self._locked():
            self._pins.mkdir(exist_ok=True)
            path = self._pins / uuid.uuid4().hex
            pin = path.open("w")
            fcntl.flock(pin, fcntl.LOCK_EX)
            json.dump(paths, pin)
            pin.flush()
            for each in paths:
                with suppress(FileNotFoundError):
                    os.utime(each)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            pin.close()

    def _have(self, entries: Sequence[Entry], until: float) -> None:
        """Fetch what is missing; room, and what another question fetches now, are waited for."""
        patience = min(until, time.monotonic() + PATIENCE_S)
        while True:
            with ExitStack() as opened:
                mine, theirs, full = self._reserve(entries, opened)
                with ThreadPoolExecutor(AT_ONCE) as pool:
                    list(pool.map(partial(self._bring, until), mine))
            if not mine and not theirs and not full:
                return
            if full and time.monotonic() > patience:
                raise Busy(
                    f"The cache of the log store ({_megabytes(self._ceiling)}) is full of what questions read now: "
                    "take a shorter time, or ask again in a moment."
                )
            if theirs and time.monotonic() > until:
                raise Busy("Another question still fetches what this one needs: ask again in a moment.")
            if theirs or full:
                time.sleep(WAIT_S)

    def _reserve(self, entries: Sequence[Entry], opened: ExitStack) -> tuple[list[Entry], int, bool]:
        """What is missing and has its room; how many are on their way for others; and whether there is no room."""
        missing = [entry for entry in entries if not self._is_here(entry)]
        if not missing:
            return [], 0, False
        with self._locked():
            mine: list[Entry] = []
            for entry in missing:
                part = opened.enter_context(self._part(entry).open("ab"))
                with suppress(BlockingIOError):
                    fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if not self._is_here(entry):  # came between the look and the lock
                        part.truncate(0)  # of a process that ended
                        mine.append(entry)
            if not self._make_room(sum(entry.size for entry in mine)):
                return [], 0, True
            for entry in mine:
                os.truncate(self._part(entry), entry.size)
        return mine, len(missing) - len(mine), False

    def _is_here(self, entry: Entry) -> bool:
        with suppress(FileNotFoundError):
            return (self._own / entry.name).stat().st_size == entry.size
        return False

    def _part(self, entry: Entry) -> Path:
        path = self._own / (entry.name + PART)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _bring(self, until: float, entry: Entry) -> None:
        path = self._part(entry)
        try:
            if time.monotonic() > until:
                raise TooLarge("Fetching what the question reads took too long: take a shorter time, or ask again.")
            with path.open("r+b") as target:
                self._fetch(entry, target)
                os.fsync(target.fileno())
            with self._locked():  # who adds up what is there meanwhile would miss it under either name
                path.rename(self._own / entry.name)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def _make_room(self, wanted: int) -> bool:
        """Remove the least recently used, and what nobody used for long; whether there is room now."""
        pinned = self._all_pinned()
        copies = sorted(
            (status.st_mtime, status.st_size, path)
            for path in self._all.rglob("*")
            if path.is_file() and (status := path.stat())
        )
        used = sum(size for _, size, _ in copies)
        for at, size, path in copies:
            unused = str(path).removesuffix(PART) not in pinned
            if unused and (used + wanted > self._ceiling or time.time() - at > UNUSED_S):
                path.unlink()
                used -= size
        return used + wanted <= self._ceiling

    def _all_pinned(self) -> set[str]:
        found: set[str] = set()
        for path in self._pins.iterdir():
            with suppress(FileNotFoundError), path.open() as pin:
                try:
                    fcntl.flock(pin, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    path.unlink()  # of a process that ended
                except BlockingIOError:
                    found.update(json.load(pin))
        return found

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time changes what there is."""
        self._all.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._all.parent / "cache.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _megabytes(size: int) -> str:
    return f"{max(1, round(size / 1e6)):,} MB".replace(",", " ")
