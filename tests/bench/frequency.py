"""HAProxy's sliding counters as pure arithmetic, to try windows in seconds instead of hours.

HAProxy estimates the events of the last period as those of the current period plus what the previous period still
contributes, in milliseconds. `overflow_windows` compares this with real nodes on equal arrivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Frequency:
    """Events of the last `period` ms."""

    period: int
    tick: int = -1_000_000_000
    now: int = 0
    before: int = 0

    def count(self, at: int) -> None:
        """One event at `at` ms."""
        if at - self.tick < self.period:
            self.now += 1
            return
        self.before, self.now = self.now, 1
        self.tick += self.period
        if at - self.tick >= self.period:
            self.before, self.tick = 0, at

    def rate(self, at: int) -> int:
        """The estimate at `at` ms, rounded down."""
        left = self.tick + self.period - at
        if left >= 0:
            before, now = self.before, self.now
        elif left + self.period >= 0:
            before, now, left = self.now, 0, left + self.period
        else:
            return 0
        if before <= 1 and not now:
            return before
        return now + before * left // self.period


def admitted(times: Sequence[float], long: int | None, short: int | None) -> list[bool]:
    """For each arrival (s, ascending) whether both windows have room; None is no bound. 10 s and 1 s windows."""
    ten, one = Frequency(10_000), Frequency(1_000)
    found = []
    for time in times:
        at = int(time * 1000)
        room = (long is None or ten.rate(at) < long) and (short is None or one.rate(at) < short)
        if room:
            ten.count(at)
            one.count(at)
        found.append(room)
    return found
