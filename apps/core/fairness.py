"""Kernel: work that waits for others (receivers, name servers, clouds, load) shares a process's threads fairly.

A kind of work has so many seats in a process, an owner a part of them, so that neither one kind nor one owner ever has
all threads. Who finds no seat leaves: the database knows the work, and whoever gets up takes what is due next.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from django.conf import settings

Work = TypeVar("Work")
Owners = frozenset[Any]  # hashable; what they are, the chooser knows
# Chooses work of an owner that is none of these; None when there is none.
Choose = Callable[[Owners], tuple[Hashable, Work] | None]
# Kinds that wait in the courier, and threads of it that are left for what does not wait.
KINDS, LEFT = 5, 2
TURN_S = 20.0


def of_one(shared: int) -> int:
    """How much of what is shared one owner may have: less than half of it, at least one."""
    return max(1, (shared - 1) // 2)


def courier_seats() -> int:
    """Seats of each kind of work in the courier."""
    return max(1, (settings.COURIER_THREADS - LEFT) // KINDS)


class Seats(Generic[Work]):
    """The seats of one kind of work in this process; of `count`, an owner may have `each(count)`."""

    def __init__(self, count: Callable[[], int] = courier_seats, each: Callable[[int], int] = of_one) -> None:
        self._count, self._each = count, each
        self._lock = threading.Lock()
        self._sitting: Counter[Hashable] = Counter()

    @contextmanager
    def seat(self, choose: Choose[Work]) -> Iterator[Work | None]:
        """A seat for work of whoever has none yet, else of one with seats left; None without seat or work."""
        with self._lock:
            chosen = self._chosen(choose)
            if chosen is not None:
                self._sitting[chosen[0]] += 1
        try:
            yield chosen[1] if chosen is not None else None
        finally:
            if chosen is not None:
                with self._lock:
                    self._sitting[chosen[0]] -= 1

    def _chosen(self, choose: Choose[Work]) -> tuple[Hashable, Work] | None:
        count = self._count()
        if self._sitting.total() >= count:
            return None
        sitting = frozenset(+self._sitting)
        full = frozenset(owner for owner, seats in self._sitting.items() if seats >= self._each(count))
        found = choose(sitting)
        return choose(full) if found is None and full != sitting else found


def in_turns(
    seats: Seats[Work],
    choose: Callable[[Owners, frozenset[Work]], tuple[Hashable, Work] | None],
    do: Callable[[Work], object],
) -> int:
    """Do what is due, owner by owner, each at most once, until nothing is left or the turn is over; how much it was."""
    ends, done = time.monotonic() + TURN_S, set[Work]()
    while time.monotonic() < ends:
        with seats.seat(lambda owners: choose(owners, frozenset(done))) as work:
            if work is None:
                break
            done.add(work)
            do(work)
    return len(done)
