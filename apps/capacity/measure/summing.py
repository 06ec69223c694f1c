"""The steps of a run summed up as its result, in numbers and in a sentence; pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import ceil

from apps.capacity.measure.fitting import Crossing, crossing
from apps.capacity.measure.measuring import Measured
from apps.capacity.measure.results import Point, Result, requests_per_second
from apps.capacity.run.steps import Outcome, Purpose, Status
from apps.core.written.numbers import plain
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec

NEAR = 0.08
# Nobody measures a rate more sharply than this: an interval is at least so wide, as a part of the rate.
RESOLUTION = 0.02


class Ending(StrEnum):
    """What ended a search: `Result.limited_by`."""

    OBJECTIVE = "objective"
    MAX_RATE = "max_rate"
    GENERATOR = "generator"
    TIME = "time"
    NOTHING = "nothing"
    NO_RECOVERY = "no_recovery"
    NOISE = "noise"
    OVERLOAD = "overload"
    STOPPED = "stopped"


def point_of(outcome: Outcome) -> Point:
    """One step as a point of the curve."""
    measured: Measured = outcome.measured
    return Point(
        rate=outcome.step.rate or measured.offered,
        answered=measured.answered,
        p50_ms=measured.p50_ms,
        p95_ms=measured.p95_ms,
        p99_ms=measured.p99_ms,
        error_rate=measured.error_rate,
        in_flight=measured.in_flight,
        status=outcome.verdict.status.value,
        users=outcome.step.users,
    )


def curve_of(outcomes: Sequence[Outcome]) -> tuple[Point, ...]:
    """The curve by rate; steps that decide nothing (void, broken off) are not on it."""
    kept = [outcome for outcome in outcomes if outcome.verdict.status in {Status.GOOD, Status.BAD}]
    return tuple(sorted((point_of(outcome) for outcome in kept), key=lambda point: (point.users, point.rate)))


def result_of_search(
    *,
    objective: ObjectiveSpec,
    outcomes: Sequence[Outcome],
    bounds: tuple[float | None, float | None, float],
    likely: Crossing | None = None,
    confirmed: bool,
    ending: Ending,
    overloaded_s: float,
    seconds: float,
) -> Result:
    """The result of a search; `bounds` are the capacity, the highest good and the lowest bad rate (infinite: none).

    `likely` is where the border lies most likely, with its interval, where one was estimated from all steps together.
    """
    capacity, low, high = bounds
    fit = likely or crossing(outcomes, objective)
    bottom, top = capacity, None if high == float("inf") else high
    if likely is not None:
        bottom, top = likely.low, likely.high
    elif fit is not None and capacity is not None and top is not None:
        bottom, top = max(0.0, min(capacity, fit.low)), max(capacity, min(fit.high, top * 1.1), low or 0.0)
    if capacity is None:
        bottom, top = (None, None) if ending is Ending.NOTHING else _bracket(outcomes)
    elif bottom is not None and top is not None:
        bottom, top = _with_width(capacity, bottom, top)
    knee = _knee(outcomes, capacity)
    return Result(
        kind="search",
        message=_sentence(objective, capacity, (bottom, top), ending, confirmed=confirmed),
        limited_by=ending.value,
        capacity=capacity,
        low=bottom,
        high=top,
        confirmed=confirmed,
        knee=knee,
        curve=curve_of(outcomes),
        in_flight_limit=_in_flight(knee),
        overloaded_s=overloaded_s,
        seconds=seconds,
        met=True if capacity is not None else None if bottom is not None else False,
    )


def _bracket(outcomes: Sequence[Outcome]) -> tuple[float | None, float | None]:
    """What is known where no capacity was confirmed: the highest rate that held, and the lowest above it that did not.

    A confirmation that failed says that the number is not sure; it is told beside the bracket, and is no edge of it.
    """
    evaluated = [outcome for outcome in outcomes if outcome.step.purpose is not Purpose.CONFIRM]
    top = min((each.step.rate for each in evaluated if each.verdict.status is Status.BAD), default=None)
    good = (each.step.rate for each in outcomes if each.verdict.status is Status.GOOD)
    return max((rate for rate in good if top is None or rate < top), default=None), top


def _with_width(capacity: float, bottom: float, top: float) -> tuple[float, float]:
    """The interval, not narrower than what steps can tell apart."""
    if top - bottom >= RESOLUTION * capacity:
        return bottom, top
    half = RESOLUTION * capacity / 2
    return min(bottom, capacity - half), max(top, capacity + half)


def _knee(outcomes: Sequence[Outcome], capacity: float | None) -> Point | None:
    """The point at the capacity: the longest good step at that rate, or just below where it was estimated."""
    good = [o for o in outcomes if capacity is not None and o.verdict.status is Status.GOOD]
    here = [o for o in good if o.step.rate == capacity]
    here = here or [o for o in good if capacity and (1 - NEAR) * capacity <= o.step.rate <= capacity]
    return point_of(max(here, key=lambda outcome: outcome.measured.seconds)) if here else None


def _in_flight(knee: Point | None) -> int | None:
    """The limit in flight that goes with the rate (Little): what is open when 95 % are answered in time."""
    if knee is None or knee.p95_ms is None:
        return None
    return max(1, ceil(knee.rate * knee.p95_ms / 1000))


def objective_sentence(objective: ObjectiveSpec) -> str:
    """`p95 below 600 ms and errors below 1 %`."""
    errors = f"errors below {objective.max_error_rate * 100:g} %"
    return f"p{objective.percentile} below {objective.max_latency_ms} ms and {errors}"


REASONS = {
    Ending.OBJECTIVE: "",
    Ending.MAX_RATE: " This is the highest rate that the test allows; the capacity may be higher.",
    Ending.GENERATOR: " The load generator reached its own limit; the capacity may be higher.",
    Ending.TIME: " The run was too short for a more precise result.",
    Ending.NO_RECOVERY: " The search ended because latency did not return to normal after a step.",
    Ending.NOISE: " Results were too noisy for a more precise result.",
    Ending.OVERLOAD: " The search stopped because the target had been overloaded for the "
    "maximum time. The next run may get closer.",
    Ending.STOPPED: " The search was stopped early.",
}


def _sentence(
    objective: ObjectiveSpec,
    capacity: float | None,
    bounds: tuple[float | None, float | None],
    ending: Ending,
    *,
    confirmed: bool,
) -> str:
    asked = objective_sentence(objective)
    low, high = bounds
    if capacity is None and low is not None:
        below = "" if high is None else f", below {requests_per_second(high)}"
        least = requests_per_second(low)
        return f"At least {least}{below}, not confirmed, with {asked}.{REASONS.get(ending, '')}"
    if capacity is None:
        return f"No rate met {asked}.{REASONS.get(ending, '')}"
    between = f" (95 %: between {plain(low)} and {plain(high)})" if low is not None and high is not None else ""
    least = "At least " if high is None else ""
    number = f"{least}{requests_per_second(capacity)}{between} with {asked}"
    return f"{number}{', confirmed' if confirmed else ', not confirmed'}.{REASONS[ending]}"
