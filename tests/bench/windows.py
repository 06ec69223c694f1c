"""Which windows hold a rate limit best, tried on simulated counters; pure.

A rule says how many requests may be admitted in 10 s and in 1 s. A short window refuses the bursts of ordinary traffic,
a long one lets a quiet time be made up for at once; the question is which short bound goes with the long window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt

from apps.compiler.limits import LONG_WINDOW_S, short_bound
from tests.bench.frequency import admitted
from tests.bench.open_loop import CONSTANT, POISSON, arrivals, most_in_one_second

LIMITS = (10, 100, 1000, 5000)
COMPILED = "10 s and 1 s as compiled"
BURST_AT_S = 30.0
BURST_S = 0.1
QUICK_S = 5.0


@dataclass(frozen=True, slots=True)
class Rule:
    """Two windows for a limit: most in 10 s and most in 1 s; None is no such window."""

    name: str
    long: Callable[[int], int | None]
    short: Callable[[int], int | None]

    def word(self, limit: int) -> str:
        """The bounds as in `maps/limits.map`."""
        bounds = (self.long(limit), self.short(limit))
        return "|".join("" if each is None else str(each) for each in bounds) + "|"


def _ten(limit: int) -> int:
    return LONG_WINDOW_S * limit


def _times(factor: float) -> Rule:
    return Rule(f"10 s and 1 s × {factor}", _ten, lambda limit: ceil(round(limit * factor, 6)))


def _deviations(count: int) -> Rule:
    return Rule(f"10 s and L + {count} √L", _ten, lambda limit: ceil(limit + count * sqrt(limit)))


RULES = (
    Rule("1 s alone", lambda _: None, lambda limit: limit),
    Rule("10 s alone", _ten, lambda _: None),
    _times(1.1),
    _times(1.2),
    _times(1.5),
    _deviations(2),
    _deviations(3),
    _deviations(4),
    Rule(COMPILED, _ten, short_bound),
)


@dataclass(frozen=True, slots=True)
class Tried:
    """What a rule does to a limit; shares as parts of one, the rest as multiples of the limit."""

    limit: int
    rule: str
    bounds: str
    spilled_80_poisson: float
    spilled_100_constant: float
    spilled_100_poisson: float
    error_200: float
    worst_second: float
    first_seconds: float
    burst: float


def spilled(times: list[float], rule: Rule, limit: int) -> float:
    """Share of the arrivals that the rule sends away."""
    found = admitted(times, rule.long(limit), rule.short(limit))
    return 1 - sum(found) / len(found)


def kept(times: list[float], rule: Rule, limit: int) -> list[float]:
    """The arrivals that stay."""
    found = admitted(times, rule.long(limit), rule.short(limit))
    return [at for at, room in zip(times, found, strict=True) if room]


def burst_times(limit: int, seed: int = 5) -> tuple[list[float], list[float]]:
    """Half the limit as Poisson, and the limit's worth of one second within 100 ms upon it: (all, the burst)."""
    extra = [BURST_AT_S + number * BURST_S / limit for number in range(limit)]
    return sorted(arrivals(POISSON, limit / 2, BURST_AT_S + 1, seed) + extra), extra


def burst_admitted(rule: Rule, limit: int) -> float:
    """Share of that burst that stays."""
    times, extra = burst_times(limit)
    wanted = set(extra)
    return sum(at in wanted for at in kept(times, rule, limit)) / len(extra)


def try_rule(rule: Rule, limit: int, seconds: float) -> Tried:
    """All the questions for one rule and one limit."""
    double = arrivals(POISSON, 2 * limit, seconds, seed=3)
    stayed = kept(double, rule, limit)
    settled = [at for at in stayed if at >= LONG_WINDOW_S]
    return Tried(
        limit=limit,
        rule=rule.name,
        bounds=rule.word(limit).rstrip("|"),
        spilled_80_poisson=spilled(arrivals(POISSON, 0.8 * limit, seconds, seed=1), rule, limit),
        spilled_100_constant=spilled(arrivals(CONSTANT, limit, seconds), rule, limit),
        spilled_100_poisson=spilled(arrivals(POISSON, limit, seconds, seed=2), rule, limit),
        error_200=len(settled) / (limit * (seconds - LONG_WINDOW_S)) - 1,
        worst_second=most_in_one_second(settled) / limit,
        first_seconds=sum(at < QUICK_S for at in stayed) / (limit * QUICK_S),
        burst=burst_admitted(rule, limit),
    )
