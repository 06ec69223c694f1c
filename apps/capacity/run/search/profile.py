"""The search as the load profile of a run: its state, asked for steps and told what came of them; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from apps.capacity.measure.evaluation import RAMP_SECONDS, Known, evaluate_drain, evaluate_step, overloaded, owed
from apps.capacity.measure.measuring import measure
from apps.capacity.measure.results import Result
from apps.capacity.measure.summing import Ending, result_of_search
from apps.capacity.run.search.choosing import choose, most_overloaded
from apps.capacity.run.search.estimating import capacity, estimate
from apps.capacity.run.search.learning import learned
from apps.capacity.run.search.state import State, first_state
from apps.capacity.run.steps import Outcome, Purpose, Status, StepPlan, Verdict
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from apps.drivers.load.contract import Arrivals, Second


class Search:
    """One search. `start_rate` is a guess (0: none), `max_rate` is never exceeded, all ends within `seconds`."""

    def __init__(
        self,
        *,
        objective: ObjectiveSpec,
        start_rate: float = 0.0,
        max_rate: float,
        arrivals: str = Arrivals.POISSON,
        seconds: float = 300.0,
    ) -> None:
        self.state = first_state(
            objective, guess=start_rate, max_rate=float(max_rate), arrivals=arrivals, seconds=seconds
        )

    def next_step(self) -> StepPlan | None:
        """The step to make now; None when all is known that can be known."""
        chosen = choose(self.state)
        if isinstance(chosen, StepPlan):
            return chosen
        self.state = replace(self.state, ending=chosen)
        return None

    def evaluate(self, step: StepPlan, seconds: Sequence[Second]) -> Verdict:
        """What the seconds of the step so far say; decided at the latest after `seconds_max`."""
        state, objective = self.state, self.state.objective
        if step.purpose is Purpose.DRAIN:
            return evaluate_drain(step, seconds, state.usual_ms or float(objective.max_latency_ms))
        known = Known(state.usual_ms, state.low or 0.0)
        verdict = evaluate_step(step, seconds, objective, constant=state.constant, known=known)
        return verdict if verdict.decided else _spared(state, step, seconds, known)

    def record(self, step: StepPlan, seconds: Sequence[Second], verdict: Verdict) -> Outcome:
        """Take note of a step that is over."""
        evaluated = seconds[RAMP_SECONDS:] if len(seconds) > RAMP_SECONDS else seconds
        outcome = Outcome(step, measure(evaluated, self.state.objective), verdict)
        self.state = learned(self.state, outcome, seconds)
        return outcome

    def result(self) -> Result:
        """What is known by now."""
        state = self.state
        return result_of_search(
            objective=state.objective,
            outcomes=state.outcomes,
            bounds=(capacity(state), state.low, state.high),
            likely=None if state.ending is Ending.NOTHING else estimate(state),
            confirmed=state.confirmed is not None,
            ending=state.ending or Ending.STOPPED,
            overloaded_s=state.overloaded_s,
            seconds=state.elapsed,
        )


def _spared(state: State, step: StepPlan, seconds: Sequence[Second], known: Known) -> Verdict:
    """A step ends before the target is overloaded for longer than it ever should be."""
    spent = state.overloaded_s + sum(overloaded(second, state.objective) for second in seconds)
    owing = owed(seconds, step.rate, state.objective, known, constant=state.constant)
    if owing and spent + owing > most_overloaded(state):
        return Verdict(Status.BAD, f"Stopped: the target was overloaded for {spent:.0f} s.")
    if owing > state.tuning.step_overload_s:
        return Verdict(Status.BAD, f"Queued requests would keep responses slow for another {owing:.0f} s.")
    return Verdict(Status.UNDECIDED)
