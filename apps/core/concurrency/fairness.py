"""Work that waits for others (receivers, name servers, clouds, load) shares a process's threads fairly.

A kind of work has so many seats in a process, an owner a part of them, so that neither one kind nor one owner ever has
all threads. Owners whose work was slow lately, or is now, have half of the seats together, so that however many they
are, the others find a seat. Who finds none leaves: the database knows the work, and whoever gets up takes what is due.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from django.conf import settings

logger = logging.getLogger(__name__)
Work = TypeVar("Work")
Owners = frozenset[Any]  # hashable; what they are, the chooser knows
# Chooses work of an owner that is none of these; None when there is none.
Choose = Callable[[Owners], tuple[Hashable, Work] | None]
# Kinds that wait in the webhook worker, and threads of it that are left for what does not wait.
KINDS, LEFT = 5, 2
TURN_S = 20.0
# Whose work kept a seat for so long is slow, until a quick one or until it is forgotten.
SLOW_S, FORGOTTEN_S, MOST_KNOWN = 2.0, 600.0, 1000


def of_one(shared: int) -> int:
    """How much of what is shared one owner may have: less than half of it, at least one."""
    return max(1, (shared - 1) // 2)


def of_slow(shared: int) -> int:
    """How much of what is shared all slow owners may have together."""
    return max(1, shared // 2)


def webhook_worker_seats() -> int:
    """Seats of each kind of work in the webhook worker."""
    return max(1, (settings.WEBHOOK_WORKER_THREADS - LEFT) // KINDS)


class Seats(Generic[Work]):
    """The seats of one kind of work in this process; of `count`, an owner may have `each(count)`.

    Work that takes longer than `slow_s` is slow.
    """

    def __init__(
        self,
        count: Callable[[], int] = webhook_worker_seats,
        each: Callable[[int], int] = of_one,
        slow_s: float = SLOW_S,
    ) -> None:
        self._count, self._each, self._slow_s = count, each, slow_s
        self._lock = threading.Lock()
        self._sitting: dict[object, tuple[Hashable, float]] = {}
        self._slow_until: OrderedDict[Hashable, float] = OrderedDict()

    @contextmanager
    def seat(self, choose: Choose[Work]) -> Iterator[Work | None]:
        """A seat for work of whoever has none yet, else of one with seats left; None without seat or work."""
        seat, began = object(), time.monotonic()
        with self._lock:
            chosen = self._chosen(choose)
            if chosen is not None:
                self._sitting[seat] = chosen[0], began
        try:
            yield chosen[1] if chosen is not None else None
        finally:
            if chosen is not None:
                with self._lock:
                    del self._sitting[seat]
                self.remember(chosen[0], time.monotonic() - began)

    def remember(self, owner: Hashable, seconds: float) -> None:
        """So long the owner's last work kept others waiting."""
        with self._lock:
            self._slow_until.pop(owner, None)
            if seconds >= self._slow_s:
                self._slow_until[owner] = time.monotonic() + FORGOTTEN_S
                if len(self._slow_until) > MOST_KNOWN:
                    self._slow_until.popitem(last=False)

    def _chosen(self, choose: Choose[Work]) -> tuple[Hashable, Work] | None:
        count = self._count()
        if len(self._sitting) >= count:
            return None
        having = Counter(owner for owner, _ in self._sitting.values())
        barred = self._barred(count)
        none_yet = barred.union(having)
        not_full = barred.union(owner for owner, seats in having.items() if seats >= self._each(count))
        found = choose(none_yet)
        return choose(not_full) if found is None and not_full != none_yet else found

    def _barred(self, count: int) -> Owners:
        """Slow owners, while they have all the seats that they may have together."""
        instant = time.monotonic()
        slow = {owner for owner, until in self._slow_until.items() if until > instant}
        slow |= {owner for owner, since in self._sitting.values() if instant - since >= self._slow_s}
        taken = sum(owner in slow for owner, _ in self._sitting.values())
        return frozenset(slow if taken >= of_slow(count) else ())


def in_turns(
    seats: Seats[Work],
    choose: Callable[[Owners, frozenset[Work]], tuple[Hashable, Work] | None],
    do: Callable[[Work], object],
) -> int:
    """Do what is due, owner by owner, each at most once, until nothing is left or the turn is over; how much it was.

    Work that fails in a way that nobody foresaw is logged and keeps nobody else's waiting.
    What `do` answers as a float is how long one piece of the work took at most, where it did many.
    """
    ends, done = time.monotonic() + TURN_S, set[Work]()
    owner: Hashable = None

    def noted(owners: Owners) -> tuple[Hashable, Work] | None:
        nonlocal owner
        found = choose(owners, frozenset(done))
        owner = found[0] if found else owner
        return found

    while time.monotonic() < ends:
        with seats.seat(noted) as work:
            if work is None:
                break
            done.add(work)
            longest = _done(do, work)
        if isinstance(longest, float):
            seats.remember(owner, longest)
    return len(done)


def _done(do: Callable[[Work], object], work: Work) -> object:
    try:
        return do(work)
    except Exception:
        logger.exception("work on %r failed", work)
        return None
