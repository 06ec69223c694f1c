"""What one question may take, how many may be asked at once, and how much an archive may hold, for every store."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from apps.drivers.logs.contract import Busy, TooLarge, Whose, each_of

BUSY = "Too many questions are asked of the request log now: ask again in a moment."
# For so long a place is kept for who was refused because others had them all.
KEPT_SECONDS = 5.0
# The most that is read of one answer.
MOST_BYTES = 32 * 2**20
# What can be written before whoever waits for it gives up; JSON takes six times as long.
MOST_EXPORTED = {"parquet": 5_000_000, "jsonl.gz": 1_000_000}


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What one question may take, and how many may be asked at once by all and by one account."""

    seconds: float = 20.0
    export_seconds: float = 50.0
    memory_mb: int = 1024
    threads: int = 2
    rows: int = 10_000
    at_once: int = 4
    at_once_each: int = 2
    exports_at_once: int = 2
    # How many of one account wait for their turn; as many as come, where threads are not few.
    waiting_each: int | None = None
    # How many of all are asked or wait; as many as come, where threads are not few.
    held: int | None = None
    wait_seconds: float = 5.0


def check_exported(lines: int, kind: str) -> None:
    """Raise TooLarge for an archive of more lines than one may have."""
    if lines > MOST_EXPORTED[kind]:
        most = f"{MOST_EXPORTED[kind]:,}".replace(",", " ")
        raise TooLarge(f"This archive has more than {most} lines: take a shorter time.")


class Turns:
    """The questions that are asked at once by this process; threads may share it, forks count their own."""

    def __init__(self, ceilings: Ceilings) -> None:
        self._ceilings = ceilings
        self._turn = threading.Condition()
        self._asking: Counter[int] = Counter()
        self._waiting: Counter[int] = Counter()
        self._exporting: set[int] = set()
        self._refused = (0, 0.0)  # the last account that found no thread, and until when a place is kept for it
        self._process = os.getpid()

    @contextmanager
    def taken(self, account: Whose, *, exports: bool = False) -> Iterator[None]:
        """One of them, for as long as it is asked. Raises Busy.

        Questions about several accounts are counted as those of one that is called 0.
        """
        accounts = each_of(account)
        asking = accounts[0] if len(accounts) == 1 else 0
        self.enter(asking, exports=exports)
        try:
            yield
        finally:
            self.leave(asking, exports=exports)

    def enter(self, account: int, *, exports: bool) -> None:
        """Wait for a place. Raises Busy."""
        with self._turn:
            if self._process != os.getpid():
                self._asking, self._waiting, self._exporting = Counter(), Counter(), set()
                self._process = os.getpid()
            self._may_export(account, exports=exports)
            self._may_hold(account)
            self._wait_for_room(account)
            self._may_export(account, exports=exports)  # another one may have begun meanwhile
            self._asking[account] += 1
            if exports:
                self._exporting.add(account)

    def leave(self, account: int, *, exports: bool) -> None:
        """Give the place back."""
        with self._turn:
            if exports:
                self._exporting.discard(account)
            self._asking[account] -= 1
            self._asking += Counter()
            self._turn.notify_all()

    def _may_export(self, account: int, *, exports: bool) -> None:
        """Archives take long: searches always find a place beside them. Raises Busy."""
        if exports and (account in self._exporting or len(self._exporting) >= self._ceilings.exports_at_once):
            raise Busy("Archives are being written now, one for each account: ask again when they are done.")

    def _may_hold(self, account: int) -> None:
        """Whether one more thread may be held: what is not of the request log needs the others. Raises Busy."""
        if self._ceilings.held is None:
            return
        left = self._ceilings.held - self._asking.total() - self._waiting.total()
        kept_for, until = self._refused
        is_first = not self._asking[account] and not self._waiting[account]
        if left <= 0 and is_first:
            self._refused = (account, time.monotonic() + KEPT_SECONDS)
        if left <= 0 or (left == 1 and not is_first and kept_for != account and time.monotonic() < until):
            raise Busy(BUSY)
        if account == kept_for:
            self._refused = (0, 0.0)

    def _wait_for_room(self, account: int) -> None:
        if self._is_room(account):
            return
        most = self._ceilings.waiting_each
        seconds = self._ceilings.wait_seconds if most is None or self._waiting[account] < most else 0.0
        self._waiting[account] += 1
        try:
            if not self._turn.wait_for(lambda: self._is_room(account), seconds):
                raise Busy(BUSY)
        finally:
            self._waiting[account] -= 1
            self._waiting += Counter()

    def _is_room(self, account: int) -> bool:
        return self._asking.total() < self._ceilings.at_once and self._asking[account] < self._ceilings.at_once_each
