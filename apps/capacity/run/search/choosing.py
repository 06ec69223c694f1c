"""The choice of a search, pure: from a state the step to make now, or why there is none any more.

Warm up at a tenth of the guess, double until the objective breaks, bisect to 2 %, confirm with one longer step. Which
rate is meant by "highest": with constant arrivals the rate up to which the queue does not grow (c servers of s seconds:
c / s); with Poisson arrivals the rate at which just so many requests are slow as the objective allows, in the long run
– that is less, because independent callers come in bunches: there all steps together say where the border lies most
likely (fitting.border), and the time that is left goes into longer steps near it.
"""

from __future__ import annotations

from dataclasses import replace

from apps.capacity.measure.summing import Ending
from apps.capacity.run.search import lengths
from apps.capacity.run.search.estimating import fitted, hint, is_sure, likely
from apps.capacity.run.search.state import State
from apps.capacity.run.steps import Purpose, Status, StepPlan
from apps.core.written.numbers import plain


def choose(state: State) -> StepPlan | Ending:
    """The step to make now; an ending when all is known that can be known."""
    if state.ending is not None:
        return state.ending
    if state.drain:
        return _drain(state)
    step = _next(state)
    if isinstance(step, Ending):
        return step
    if step.seconds_min > state.left:
        return Ending.TIME
    return replace(step, seconds_max=min(step.seconds_max, state.left))


def _next(state: State) -> StepPlan | Ending:
    if state.confirmed is not None:
        return _closer(state) or _ending_of_confirmed(state)
    if state.usual_ms is None and not state.bad:
        return _warm_up(state)
    low = state.low
    if low is None:
        return _lower(state)
    return _narrow(state, low) if state.bad else _double(state, low)


def _drain(state: State) -> StepPlan:
    tuning = state.tuning
    rate = max(tuning.lowest_rate, min(state.warm_rate, tuning.warm_share * state.high))
    most = min(tuning.drain_s, max(1.0, state.left))
    return StepPlan(Purpose.DRAIN, 1, most, rate, note="Waiting for the queue to drain.")


def _warm_up(state: State) -> StepPlan:
    tuning, rate = state.tuning, state.warm_rate
    least, most = tuning.warm_up_s
    length = max(least, min(most, tuning.warm_up_requests / rate))
    return StepPlan(Purpose.WARM_UP, tuning.warm_up_min_s, length, rate, note=f"Warming up at {plain(rate)}/s.")


def _lower(state: State) -> StepPlan | Ending:
    """Even the warm-up was too much: half of it, until there is hardly anything left to halve."""
    tuning, rate = state.tuning, state.high * state.tuning.lower_share
    if rate < tuning.lowest_rate or state.overloaded_s > tuning.bold_until_s:
        return Ending.NOTHING
    note = f"{plain(state.high)}/s was too much; trying half of it."
    return lengths.step_at(state, Purpose.DOUBLE, rate, note)


# Up


def _double(state: State, low: float) -> StepPlan:
    if low >= state.ceiling:
        return _confirm(state, low)
    rate = min(state.ceiling, max(low * _stride_up(state), first_rate(state)))
    return lengths.step_at(state, Purpose.DOUBLE, rate, f"{plain(low)}/s met the objective; trying {plain(rate)}/s.")


def first_rate(state: State) -> float:
    """What the target surely bears, once it is known how long a request takes: one at a time, half of the time.

    A guess only makes it less: one that is far too high must not be what the search begins with.
    """
    tuning = state.tuning
    safe = tuning.half_busy * 1000 / max(1.0, state.usual_ms or tuning.unknown_latency_ms)
    return min(safe, tuning.warm_share * state.guess) if state.guess else min(safe, tuning.unguessed_rate)


def _stride_up(state: State) -> float:
    """Two while latency is as it was; less as soon as it has risen, because the knee is near."""
    tuning, objective = state.tuning, state.objective
    last = max((o for o in state.outcomes if o.step.rate == state.low), key=lambda o: o.measured.seconds)
    slow = last.measured.p95_ms if objective.percentile == 95 else last.measured.p99_ms
    if slow is None or state.usual_ms is None:
        return tuning.stride
    used = (slow - state.usual_ms) / max(1.0, objective.max_latency_ms - state.usual_ms)
    if last.measured.in_flight > 1 + tuning.queue_begun * last.step.rate * state.usual_ms / 1000:
        return tuning.stride_near
    if used < tuning.risen:
        return tuning.stride
    return tuning.stride_risen if used < tuning.near else tuning.stride_near


# Between a good rate and a bad one


def _narrow(state: State, low: float) -> StepPlan | Ending:
    tuning, high = state.tuning, state.high
    bold, close = _is_bold(state), _is_close(state, low)
    if bold and not close:
        rate = _between(state, low)
        note = f"Between {plain(low)} and {plain(high)}/s: trying {plain(rate)}/s."
        return lengths.step_at(state, Purpose.BISECT, rate, note)
    if not bold and not close and _affords_small_step(state):
        rate = min(low * tuning.careful, (low + high) / 2)
        return lengths.step_at(state, Purpose.BISECT, rate, f"Stepping up from {plain(low)}/s: trying {plain(rate)}/s.")
    if bold and _is_doubtful(state):
        note = f"Repeating {plain(high)}/s to confirm that it is too much."
        return lengths.step_at(state, Purpose.BISECT, high, note)
    if _is_over(state):
        return Ending.OVERLOAD if state.overloaded_s >= most_overloaded(state) else Ending.NOISE
    return _confirm(state, low)


def _is_bold(state: State) -> bool:
    """Whether there is time for a step that may turn out bad, and as dear as the last one it is not too much."""
    tuning, cost = state.tuning, state.costs.get(state.high, 0)
    afforded = state.overloaded_s + cost <= tuning.overload_s - tuning.overload_reserve_s
    return state.overloaded_s < tuning.bold_until_s and afforded and lengths.affords_step(state)


def _affords_small_step(state: State) -> bool:
    """Whether one small step too far, which is ended at once, would still be borne; good steps cost nothing.

    Only even arrivals end it so soon.
    """
    tuning = state.tuning
    borne = state.overloaded_s + tuning.step_overload_s <= tuning.overload_s - tuning.overload_reserve_s
    return state.constant and borne and lengths.affords_step(state)


def _is_close(state: State, low: float) -> bool:
    """Whether the border is known well enough: by the bracket, or by the line through the shares."""
    tuning, fit = state.tuning, fitted(state)
    known = fit is not None and fit.high - fit.low <= 2 * tuning.fit_precision * fit.rate
    near = fit is not None and fit.rate * (1 - tuning.fit_precision) < low
    return (state.high - low) / low <= tuning.precision or (known and near)


def _is_doubtful(state: State) -> bool:
    """Whether a pause of the target may have been what made a rate bad: it is tried once more."""
    unsure = state.high not in state.seen_twice and fitted(state) is None and not _is_steep(state)
    return unsure and state.overloaded_s < state.tuning.bold_until_s / 2


def _is_steep(state: State) -> bool:
    """Whether a rate was refused beyond doubt: the queue grew, or most were slow or failed longer than a pause."""
    tuning, rate = state.tuning, state.high
    last = [outcome for outcome in state.outcomes if outcome.step.rate == rate][-1]
    most = max(last.measured.slow_share, last.measured.error_rate) > tuning.beyond_doubt
    return "grows" in last.verdict.message or (most and state.overloaded_at.get(rate, 0) > tuning.pause_s)


def _is_over(state: State) -> bool:
    """Whether no confirmation is tried any more: enough have failed, or one would overload the target too long."""
    tuning = state.tuning
    spent = state.overloaded_s > tuning.overload_s - tuning.confirm_reserve_s
    return state.confirmations >= tuning.confirmations or spent


def _between(state: State, low: float) -> float:
    """Where the border may be: as the shares of slow requests say, or what a saturated target answered.

    Close to the border on either side the steps grow from 2 % on, so that a wrong hint costs little; without a
    hint it is the middle.
    """
    tuning, high = state.tuning, state.high
    middle, found = (low + high) / 2, hint(state)
    if found is None:
        return middle
    if found <= low * (1 + tuning.hint_margin):
        return min(middle, low * (1 + tuning.precision * _stride(state, Status.GOOD)))
    if found >= high * (1 - tuning.hint_margin):
        return max(middle, high * (1 - tuning.precision * _stride(state, Status.BAD)))
    return found


def _stride(state: State, status: Status) -> float:
    """Twice as long with each of the last steps that ended so."""
    found = 0
    for outcome in reversed(state.outcomes):
        if outcome.verdict.status is not status or outcome.step.purpose not in {Purpose.BISECT, Purpose.CONFIRM}:
            break
        found += 1
    return state.tuning.stride ** max(0, found - 1)


def most_overloaded(state: State) -> float:
    """Seconds of overload after which steps end for that: what waits then comes on top, longer at slow targets."""
    least, most = state.tuning.cut_reserve_s
    return state.tuning.overload_s - min(most, max(least, state.objective.max_latency_ms / 1000))


# The confirmation


def _confirm(state: State, low: float) -> StepPlan:
    rate = _below(state, low) if state.bad else low
    left = max(lengths.shortest(state), state.left - state.tuning.confirm_spare_s)
    length = min(lengths.confirmation(state), left)
    return StepPlan(Purpose.CONFIRM, length, length, rate, note=f"Confirming {plain(rate)}/s for {length:.0f} s.")


def _below(state: State, low: float) -> float:
    """Just below the border, and after each confirmation that failed further below."""
    tuning, fit = state.tuning, fitted(state)
    spent = state.overloaded_s >= most_overloaded(state)
    shares = tuning.further_below
    further = state.high * (1 - shares[-2 if spent else min(state.confirmations, len(shares) - 1)])
    sure = fit is not None and is_sure(state, fit)
    if state.confirmations and (spent or not sure):
        return further
    if fit is not None and sure:
        return min(further, max(low * tuning.fit_floor, fit.rate * tuning.below_fit))
    return min(further, max(low * tuning.just_below, (hint(state) or 0.0) * tuning.below_fit))


def _closer(state: State) -> StepPlan | None:
    """One more long step near the border while independent callers leave it uncertain; None when that is enough."""
    tuning, found = state.tuning, likely(state)
    spent = state.overloaded_s >= tuning.bold_until_s or state.left < tuning.closer_s + tuning.spare_s
    if found is None or spent or found.high - found.low <= 2 * tuning.close * found.rate:
        return None
    length = min(tuning.closer_most_s, state.left - tuning.spare_s)
    # One bad step by chance at the highest allowed rate is enough for a likely border above it.
    rate = min(state.ceiling, found.rate * tuning.below_fit)
    return StepPlan(Purpose.CONFIRM, length, length, rate, note=f"Looking closer at {plain(rate)}/s.")


def _ending_of_confirmed(state: State) -> Ending:
    """The border was found, or what kept the search from coming closer to it."""
    if not state.bad:
        return Ending.GENERATOR if state.ceiling < state.max_rate else Ending.MAX_RATE
    tuning, low, fit = state.tuning, state.confirmed or 0.0, fitted(state)
    sure = fit is not None and is_sure(state, fit) and abs(fit.rate - low) <= tuning.sure * low
    if sure or (state.high - low) / low <= tuning.sure:
        return Ending.OBJECTIVE
    return Ending.OVERLOAD if state.overloaded_s >= tuning.bold_until_s else Ending.TIME
