"""Scales of server-made charts: a value's position on the sheet, and where the ticks stand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low` … `high` to positions `begin` … `end` in user units; `log` for magnitudes apart (both ends > 0)."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The position of a value; what is outside stands at the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self, about: int) -> list[float]:
        """Round values within the scale, about so many."""
        return _magnitudes(self.low, self.high, about) if self.log else _even(self.low, self.high, about)


def linear(values: Iterable[float], begin: float, end: float) -> Scale:
    """From 0 to a round number above every value and 1."""
    top = max([1.0, *values])
    step = _step(top / 4)
    return Scale(0.0, math.ceil(top / step - 1e-9) * step, begin, end)


def logarithmic(values: Iterable[float], begin: float, end: float) -> Scale:
    """From a round number below every value to one above; at least a factor of ten."""
    known = [value for value in values if value > 0] or [10.0, 100.0]
    low, high = _floor(min(known)), _ceiling(max(known))
    return Scale(low, max(high, 10 * low), begin, end, log=True)


def _step(about: float) -> float:
    """The next round step that is not smaller."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(each * power for each in STEPS if each * power >= about * 0.999999)


def _even(low: float, high: float, about: int) -> list[float]:
    step = _step((high - low) / about)
    first = math.ceil(low / step - 1e-9)
    return [step * number for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _magnitudes(low: float, high: float, about: int) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**power for power in powers for digit in digits]
        found = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(found) <= about + 2:
            break
    return found


def _floor(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return max(digit * power for digit in (1, 2, 5) if digit * power <= value * 1.000001)


def _ceiling(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return min(digit * power for digit in (1, 2, 5, 10) if digit * power >= value * 0.999999)
