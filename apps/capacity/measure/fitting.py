"""Curves through what was measured: where slow requests become too many, and how capacity grows with servers; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

from apps.capacity.run.steps import Outcome, Status
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec

LEAST_SHARE, MOST_SHARE = 0.002, 0.6
BUNCH = 5
LEAST_WEIGHT = 3
SATURATED_WEIGHT = 20
BEHIND, KEEPS_UP, LONG_S = 0.9, 0.97, 10
GRID = 360
SPREAD = 0.5
STEEPNESSES = tuple(-2 + at * 0.5 for at in range(13))


@dataclass(frozen=True, slots=True)
class Crossing:
    """The rate (requests/s) at which just so many requests are slow as allowed, between `low` and `high` (95 %)."""

    rate: float
    low: float
    high: float


def crossing(
    outcomes: Sequence[Outcome], objective: ObjectiveSpec, *, saturated: float | None = None
) -> Crossing | None:
    """Where the share of slow requests crosses what is allowed, from all steps with some slow requests.

    The tail of a queue's waiting time is exponential and its logarithm nearly linear in the rate, so a weighted line
    through the logarithms of the shares finds the knee better than any single step. At the rate that a saturated
    target answers (`saturated`), all requests are slow: one more point. None with too few steps that had some but not
    only slow requests, as at a cliff, or where the line does not rise.
    """
    points = [
        (outcome.step.rate, log(outcome.measured.slow_share), _weight(outcome))
        for outcome in outcomes
        if outcome.verdict.status in {Status.GOOD, Status.BAD}
        and LEAST_SHARE < outcome.measured.slow_share < MOST_SHARE
        if saturated is None or outcome.step.rate < saturated
    ]
    if saturated is not None and any(w > LEAST_WEIGHT for _, _, w in points):
        points.append((saturated, 0.0, SATURATED_WEIGHT))
    if len({rate for rate, _, _ in points}) < (3 if saturated is None else 2):
        return None
    line = _line(points)
    if line is None:
        return None
    slope, intercept, scatter, middle, spread = line
    rate = (log(1 - objective.percentile / 100) - intercept) / slope
    error = 1.96 * scatter * sqrt(1 / sum(w for _, _, w in points) + (rate - middle) ** 2 / spread) / slope
    return Crossing(rate, rate - error, rate + error)


def _weight(outcome: Outcome) -> float:
    """The variance of a share's logarithm is one over the number of independent slow requests; they come in bunches."""
    measured = outcome.measured
    return max(0.1, measured.slow_share * measured.answered * measured.seconds / BUNCH)


def _line(points: Sequence[tuple[float, float, float]]) -> tuple[float, float, float, float, float] | None:
    """Slope, intercept, scatter, middle and spread of the weighted line; None where it does not rise."""
    whole = sum(w for _, _, w in points)
    middle = sum(w * x for x, _, w in points) / whole
    height = sum(w * y for _, y, w in points) / whole
    spread = sum(w * (x - middle) ** 2 for x, _, w in points)
    slope = sum(w * (x - middle) * (y - height) for x, y, w in points) / spread if spread else 0.0
    if slope <= 0:
        return None
    intercept = height - slope * middle
    squares = sum(w * (y - intercept - slope * x) ** 2 for x, y, w in points)
    return slope, intercept, sqrt(max(1.0, squares / max(1, len(points) - 2))), middle, spread


def border(outcomes: Sequence[Outcome], objective: ObjectiveSpec) -> Crossing | None:
    """Where just so many requests are slow as allowed, for independent callers: the most likely rate, and 95 % of it.

    1. With rate r the share of requests slower than x is allowed · exp(b (r − r*)): the tail of a queue's waiting time.
       How steep it is (b) lies between x / 2 and 5 x (M/M/1: x; M/D/1: about 2 x; more servers: more), mostly near
       1.6 x: that is known before anything is measured.
    2. Every step counts, those without any slow request too, at the rate that was really offered in it.
    3. Slow requests come in bunches about as long as x: so many count as one.
    4. What is likely is summed up over all steepnesses; the answer is its mean with the middle 95 %.

    None before any step had some, but not only slow requests, as at a cliff.
    """
    x = objective.max_latency_ms / 1000
    allowed = 1 - objective.percentile / 100
    steps = [o for o in outcomes if o.verdict.status in {Status.GOOD, Status.BAD} and o.measured.answered > 0]
    if not any(LEAST_SHARE < o.measured.slow_share < MOST_SHARE and not _falls_behind(o) for o in steps):
        return None
    highest = max(o.measured.offered or o.step.rate for o in steps)
    rates = [highest * (0.4 + 0.9 * at / GRID) for at in range(GRID + 1)]
    counted = [_evidence(o, x) for o in steps]
    likely = [0.0] * len(rates)
    logs: list[tuple[int, float]] = []
    for steep, prior in ((x * 1.6 * exp(SPREAD * z), -z * z / 2) for z in STEEPNESSES):
        for at, rate in enumerate(rates):
            logs.append((at, prior + _likelihood(counted, rate, steep, allowed)))
    best = max(value for _, value in logs)
    for at, value in logs:
        likely[at] += exp(value - best)
    return _middle(rates, likely)


def _evidence(outcome: Outcome, x: float) -> tuple[float, float, float]:
    """Offered rate, bunches of slow requests, bunches in all."""
    measured = outcome.measured
    rate = measured.offered or outcome.step.rate
    bunch = max(2.0, 1.5 * rate * x)
    whole = measured.answered * measured.seconds / bunch
    share = max(measured.slow_share, BEHIND) if _falls_behind(outcome) else measured.slow_share
    return rate, share * whole, whole


def _falls_behind(outcome: Outcome) -> bool:
    """Whether a step was ended while its queue still grew: in the long run all of its requests would be slow."""
    measured = outcome.measured
    growing = measured.answered < KEEPS_UP * (measured.offered or outcome.step.rate)
    return outcome.verdict.status is Status.BAD and growing and measured.seconds < LONG_S


def _likelihood(counted: Sequence[tuple[float, float, float]], border_at: float, steep: float, allowed: float) -> float:
    """The logarithm of how likely all that was counted is; asked thousands of times, so without min and max."""
    found = 0.0
    for rate, slow, whole in counted:
        power = steep * (rate - border_at)
        share = allowed * exp(power if power < 20.0 else 20.0)  # noqa: FURB136
        share = share if share < 0.98 else 0.98  # noqa: FURB136
        of_slow = slow * log(share if share > 1e-9 else 1e-9)  # noqa: FURB136
        found += of_slow + (whole - slow) * log(1 - share)
    return found


def _middle(rates: Sequence[float], likely: Sequence[float]) -> Crossing:
    whole = sum(likely)
    mean = sum(rate * weight for rate, weight in zip(rates, likely, strict=True)) / whole
    low, high, seen = rates[0], rates[-1], 0.0
    for rate, weight in zip(rates, likely, strict=True):
        if seen < 0.025 * whole:
            low = rate
        if seen < 0.975 * whole:
            high = rate
        seen += weight
    return Crossing(mean, low, high)


@dataclass(frozen=True, slots=True)
class Scalability:
    """The Universal Scalability Law: n servers take `one` · n / (1 + contention (n − 1) + crosstalk n (n − 1))."""

    one: float
    contention: float
    crosstalk: float

    def capacity(self, servers: int) -> float:
        """Requests/s that so many servers take together."""
        waste = 1 + self.contention * (servers - 1) + self.crosstalk * servers * (servers - 1)
        return self.one * servers / waste


def scalability(sizes: Sequence[tuple[int, float]]) -> Scalability | None:
    """The law through measured (servers, requests/s); None with fewer than three different sizes.

    Least squares of n / capacity, which is a parabola in n; contention and crosstalk are never below 0.
    """
    usable = [(n, rate) for n, rate in sizes if n > 0 and rate > 0]
    if len({n for n, _ in usable}) < 3:
        return None
    best: tuple[float, Scalability] | None = None
    for contention in [0.0, *(exp(k / 4) / 1000 for k in range(28))]:
        for crosstalk in [0.0, *(exp(k / 4) / 100_000 for k in range(32))]:
            shape = Scalability(1.0, contention, crosstalk)
            one = sum(rate * shape.capacity(n) for n, rate in usable) / sum(shape.capacity(n) ** 2 for n, _ in usable)
            law = Scalability(one, contention, crosstalk)
            error = sum((rate - law.capacity(n)) ** 2 for n, rate in usable)
            if best is None or error < best[0] - 1e-12:
                best = (error, law)
    return best[1] if best else None
