"""What the seconds of a step amount to: rates, shares of slow and failed requests, percentiles; pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from math import ceil

from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from apps.drivers.load.contract import Second
from apps.drivers.load.histogram import Histogram, merged, middle_of

TOO_MANY_REQUESTS = 429
TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Latencies:
    """How often which latency occurred: microseconds rising, counts summed up to each of them."""

    values: tuple[float, ...] = ()
    sums: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """How many answers there were."""
        return self.sums[-1] if self.sums else 0

    def above(self, ms: float) -> int:
        """How many answers took longer than `ms`."""
        position = bisect_right(self.values, ms * 1000)
        return self.total - (self.sums[position - 1] if position else 0)

    def percentile_ms(self, percentile: float) -> float | None:
        """The latency (ms) that so many percent of the answers did not exceed; None without an answer."""
        if not self.total:
            return None
        rank = max(1, ceil(self.total * percentile / 100))
        return self.values[bisect_right(self.sums, rank - 1)] / 1000


@lru_cache(maxsize=2048)
def latencies_of(histogram: str) -> Latencies:
    """Read an HDR histogram (base64, microseconds); an empty text has no answers."""
    return _latencies(Histogram.decode(histogram))


def _latencies(histogram: Histogram) -> Latencies:
    indexes = sorted(histogram.counts)
    sums = accumulate(histogram.counts[index] for index in indexes)
    return Latencies(tuple(middle_of(index) for index in indexes), tuple(sums))


@dataclass(frozen=True, slots=True)
class Tally:
    """Of one second, or of several: how many requests ended, how many of them too slowly, how many failed.

    A request that timed out is slow and failed; one that was refused or answered with 429 or 5xx failed.
    """

    ended: int
    slow: int
    failed: int


def failed_of(second: Second) -> int:
    """Requests of the second that came to nothing: errors of any kind, answers with 429 or 5xx."""
    bad = sum(count for status, count in second.statuses.items() if status >= 500 or status == TOO_MANY_REQUESTS)
    return bad + sum(second.errors.values())


def tally(second: Second, objective: ObjectiveSpec) -> Tally:
    """Count one second against an objective."""
    slow = latencies_of(second.histogram).above(objective.max_latency_ms) + second.errors.get(TIMEOUT, 0)
    return Tally(second.answered + sum(second.errors.values()), slow, failed_of(second))


def tally_all(seconds: Iterable[Second], objective: ObjectiveSpec) -> Tally:
    """Count several seconds against an objective."""
    each = [tally(second, objective) for second in seconds]
    return Tally(sum(t.ended for t in each), sum(t.slow for t in each), sum(t.failed for t in each))


@dataclass(frozen=True, slots=True)
class Measured:
    """What a step measured; rates in requests/s, latencies in ms (None without an answer), shares 0–1."""

    seconds: float = 0.0
    offered: float = 0.0
    answered: float = 0.0
    in_flight: float = 0.0
    slow_share: float = 0.0
    error_rate: float = 0.0
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    histogram: str = ""


def measure(seconds: Sequence[Second], objective: ObjectiveSpec) -> Measured:
    """Sum up the seconds of a step; each of them is one second long."""
    if not seconds:
        return Measured()
    length = len(seconds)
    counted = tally_all(seconds, objective)
    whole = merged(second.histogram for second in seconds)
    all_of_them = _latencies(whole)
    ended = max(1, counted.ended)
    return Measured(
        seconds=float(length),
        offered=sum(second.offered for second in seconds) / length,
        answered=sum(second.answered for second in seconds) / length,
        in_flight=sum(second.in_flight for second in seconds) / length,
        slow_share=counted.slow / ended,
        error_rate=counted.failed / ended,
        p50_ms=all_of_them.percentile_ms(50),
        p95_ms=all_of_them.percentile_ms(95),
        p99_ms=all_of_them.percentile_ms(99),
        max_ms=all_of_them.percentile_ms(100),
        errors=_errors(seconds),
        histogram=whole.encode(),
    )


def _errors(seconds: Iterable[Second]) -> dict[str, int]:
    """Errors by kind; answers with 429 and 5xx under their status."""
    found: Counter[str] = Counter()
    for second in seconds:
        found.update(second.errors)
        bad = {s: n for s, n in second.statuses.items() if s >= 500 or s == TOO_MANY_REQUESTS}
        found.update({str(status): count for status, count in bad.items()})
    return dict(found)
