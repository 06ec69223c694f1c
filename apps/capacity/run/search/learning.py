"""What a step that is over teaches a search: from one state to the next; nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from apps.capacity.measure.evaluation import RAMP_SECONDS, Known, behind, overloaded, usual_latency
from apps.capacity.measure.summing import Ending
from apps.capacity.run.search.choosing import first_rate
from apps.capacity.run.search.state import State
from apps.capacity.run.steps import Outcome, Purpose, Status, StepPlan
from apps.drivers.load.contract import Second


def learned(state: State, outcome: Outcome, seconds: Sequence[Second]) -> State:
    """The state after a step."""
    step, status = outcome.step, outcome.verdict.status
    state = replace(state, elapsed=state.elapsed + len(seconds))
    if status is Status.BAD or step.purpose is Purpose.DRAIN:
        state = _with_overload(state, step, seconds)
    state = replace(state, full=_full(state, step, seconds))
    if step.purpose is Purpose.DRAIN:
        return replace(state, drain=False, ending=Ending.NO_RECOVERY if status is Status.BAD else state.ending)
    state = replace(state, outcomes=(*state.outcomes, outcome))
    if step.purpose is Purpose.BISECT and step.rate == state.high:
        state = replace(state, seen_twice=state.seen_twice | {step.rate})
    if status is Status.VOID:
        return _after_void(state)
    state = replace(state, voids=0)
    if status is Status.GOOD:
        return _after_good(state, step, seconds)
    return _after_bad(state, outcome) if status is Status.BAD else state


def _with_overload(state: State, step: StepPlan, seconds: Sequence[Second]) -> State:
    """A bad step begins the cost of its rate anew, its drain adds to it."""
    spent = sum(overloaded(second, state.objective) for second in seconds)
    drains = step.purpose is Purpose.DRAIN
    rate = state.high if drains else step.rate
    before = state.costs.get(rate, 0) if rate != step.rate else 0
    return replace(
        state,
        overloaded_s=state.overloaded_s + spent,
        overloaded_at={**state.overloaded_at, step.rate: spent},
        costs={**state.costs, rate: before + spent},
    )


def _after_good(state: State, step: StepPlan, seconds: Sequence[Second]) -> State:
    return replace(
        state,
        usual_ms=usual_latency(seconds) if state.usual_ms is None else state.usual_ms,
        good=(*state.good, step.rate),
        bad=tuple(rate for rate in state.bad if rate > step.rate),
        confirmed=step.rate if step.purpose is Purpose.CONFIRM else state.confirmed,
    )


def _after_bad(state: State, outcome: Outcome) -> State:
    step, tuning = outcome.step, state.tuning
    good = tuple(rate for rate in state.good if rate < step.rate)
    state = replace(state, drain=True, bad=(*state.bad, step.rate), good=good)
    if step.purpose is Purpose.CONFIRM:
        below = step.rate * (1 - tuning.precision / 2)
        good = tuple(rate for rate in good if rate < below)
        state = replace(state, confirmations=state.confirmations + 1, good=good)
    failed = outcome.measured.error_rate >= tuning.failing * state.objective.max_error_rate
    # What fails where one server has half of its time is no matter of load.
    return replace(state, ending=Ending.NOTHING) if failed and step.rate <= first_rate(state) else state


def _after_void(state: State) -> State:
    """Once or twice it may be a busy machine, three times in a row it is what the generator can do."""
    state = replace(state, voids=state.voids + 1)
    if state.voids < state.tuning.voids:
        return state
    if state.low is None:
        return replace(state, ending=Ending.GENERATOR)
    ending = Ending.GENERATOR if state.bad else state.ending
    return replace(state, ceiling=min(state.ceiling, state.low), ending=ending)


def _full(state: State, step: StepPlan, seconds: Sequence[Second]) -> dict[float, tuple[int, ...]]:
    """What a target answers that never waits for work: while more is open than at one that keeps up."""
    if step.purpose is Purpose.DRAIN:
        rate, most = state.high, state.tuning.still_full
        slow = [second for second in seconds if overloaded(second, state.objective)]
        found = [second.answered for second in slow if second.in_flight > 1 + second.answered * most]
    else:
        rate, known = step.rate, Known(state.usual_ms)
        full = [behind(second, step.rate, state.objective, known, constant=state.constant) for second in seconds]
        found = [seconds[at].answered for at in range(1, len(seconds)) if full[at - 1] and full[at]]
        # An overload that was cut off at once has no such second; its last one answered hardly less.
        found = found or [second.answered for second in seconds[RAMP_SECONDS:][-1:] if full[-1]]
    return {**state.full, rate: (*state.full.get(rate, ()), *found)}
