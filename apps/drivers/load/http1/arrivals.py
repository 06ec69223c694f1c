"""The timetable of an open loop: the instants at which requests are due while the rate changes; pure.

The rate is a function of time that is constant but for linear ramps. Its integral since the last arrival grows until
it reaches a draw: 1 for even arrivals, exponentially distributed with mean 1 for independent callers. So both kinds
are exact at every rate and on every ramp, and a change of the rate neither loses nor doubles an arrival.
"""

from __future__ import annotations

import math
import random

from apps.drivers.load.contract import Arrivals

NEVER = math.inf


class Timetable:
    """When requests are due; instants in seconds of any steady clock, rates per second.

    `phase` (above 0, at most 1) is the first draw of even arrivals: k processes with phases 1/k … k/k and a k-th of
    the rate together keep the pace of one.
    """

    __slots__ = ("_draw", "_even", "_from", "_last", "_rate", "_ready_at", "_seeded", "_turned_at", "next")

    def __init__(self, arrivals: Arrivals, starts_at: float, seed: int = 0, phase: float = 1.0) -> None:
        self._even = arrivals is Arrivals.CONSTANT
        self._seeded = random.Random(seed)  # noqa: S311  # the same seed gives the same load
        self._from = self._rate = 0.0
        self._turned_at = self._ready_at = self._last = starts_at
        self._draw = phase if self._even else self._seeded.expovariate(1.0)
        self.next = NEVER

    @property
    def rate(self) -> float:
        """The rate that was asked for last."""
        return self._rate

    def take(self) -> float:
        """The next instant; the one after it becomes `next`."""
        due = self._last = self.next
        self._draw = draw = 1.0 if self._even else self._seeded.expovariate(1.0)
        self.next = due + draw / self._rate if due >= self._ready_at and self._rate else self._solve()
        return due

    def change(self, now: float, rate: float, ramp_s: float = 0.0) -> None:
        """From `now` on go to this rate, evenly over `ramp_s`; take what is due before: at most one stays due."""
        if now > self._last:
            self._draw = max(0.0, self._draw - self.expected(self._last, now))
            self._last = now
        self._from = self.rate_at(now)
        self._turned_at, self._ready_at, self._rate = now, now + ramp_s, rate
        self.next = self._solve()

    def rate_at(self, instant: float) -> float:
        """The rate at an instant after the last change."""
        if instant >= self._ready_at:
            return self._rate
        done = max(0.0, instant - self._turned_at) / (self._ready_at - self._turned_at)
        return self._from + (self._rate - self._from) * done

    def expected(self, begin: float, end: float) -> float:
        """How many arrivals the rate amounts to between two instants after the last change."""
        bend = min(max(begin, self._ready_at), end)
        ramp = (self.rate_at(begin) + self.rate_at(bend)) / 2 * (bend - begin)
        return ramp + self._rate * (end - bend)

    def _solve(self) -> float:
        """The instant at which the rate since the last one amounts to the draw."""
        begin, draw = self._last, self._draw
        if draw <= 0:
            return begin
        if begin < self._ready_at:
            on_ramp = self.expected(begin, self._ready_at)
            if draw < on_ramp:
                return begin + self._within_ramp(self.rate_at(begin), draw)
            begin, draw = self._ready_at, draw - on_ramp
        return begin + draw / self._rate if self._rate > 0 else NEVER

    def _within_ramp(self, rate: float, draw: float) -> float:
        """Solves rate·x + slope·x²/2 = draw, in the form that does not cancel."""
        slope = (self._rate - self._from) / (self._ready_at - self._turned_at)
        root = math.sqrt(max(0.0, rate * rate + 2 * slope * draw))
        return 2 * draw / (rate + root)
