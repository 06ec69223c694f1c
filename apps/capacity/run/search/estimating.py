"""Where the border lies, by all steps of a search so far."""

from __future__ import annotations

from math import log
from statistics import fmean

from apps.capacity.measure.evaluation import allowed_slow
from apps.capacity.measure.fitting import LEAST_SHARE, Crossing, border, crossing
from apps.capacity.measure.summing import Ending
from apps.capacity.run.search.state import State
from apps.capacity.run.steps import Status


def fitted(state: State) -> Crossing | None:
    """The line through the shares; even arrivals need a good step with slow requests, else it is a cliff."""
    soft = (o.measured.slow_share > LEAST_SHARE for o in state.outcomes if o.verdict.status is Status.GOOD)
    if state.constant and not any(soft):
        return None
    rates = [fmean(found) for found in state.full.values() if sum(found) >= state.tuning.many_answers]
    full = [rate for rate in rates if rate > (state.low or 0.0)]
    return crossing(state.outcomes, state.objective, saturated=max(full, default=None))


def is_sure(state: State, fit: Crossing) -> bool:
    """Whether an interval is so narrow that the number may be called sure."""
    return fit.high - fit.low <= 2 * state.tuning.sure * fit.rate


def likely(state: State) -> Crossing | None:
    """The most likely border for independent callers; even arrivals have a sharp one, which bisection finds."""
    return border(state.outcomes, state.objective) if not state.constant and state.bad else None


def estimate(state: State) -> Crossing | None:
    """The same within what was found: hardly below what was confirmed, which may be luck, nor above `high`."""
    found, held = likely(state), state.confirmed or 0.0
    if found is None:
        return None
    lowest, highest = held * (1 - state.tuning.luck), max(state.high, held)
    rate, low, high = (min(max(each, lowest), highest) for each in (found.rate, found.low, found.high))
    return Crossing(rate, low, high)


def hint(state: State) -> float | None:
    """The best guess at the border.

    Of a saturated target c requests/s are answered. With independent callers the share of requests that wait
    longer than x is about exp(−(c − rate) x) or less, so the rate that meets the objective is about
    c − ln(1 / allowed) / x, or more.
    """
    fit = fitted(state)
    if fit is not None:
        return fit.rate
    needed = state.tuning.few_answers if state.constant else state.tuning.many_answers
    if sum(state.full.get(state.high, ())) < needed:
        return None
    full = fmean(state.full[state.high])
    if state.constant:
        return full * state.tuning.below_saturation
    return full + log(allowed_slow(state.objective)) / (state.objective.max_latency_ms / 1000)


def capacity(state: State) -> float | None:
    """The most likely border, else what was confirmed; before a confirmation failed, the highest good rate."""
    if state.ending is Ending.NOTHING:
        return None
    found = estimate(state)
    if found is not None:
        return found.rate
    doubted = state.confirmations and state.ending is not Ending.OVERLOAD
    return state.confirmed if state.confirmed is not None or doubted else state.low
