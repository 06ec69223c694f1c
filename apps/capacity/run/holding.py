"""The courses besides the search: a rate or users that are held, a ramp in steps; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor

from apps.capacity.measure.evaluation import RAMP_SECONDS, evaluate_step, overloaded
from apps.capacity.measure.measuring import measure
from apps.capacity.measure.results import Point, Result, requests_per_second
from apps.capacity.measure.summing import curve_of, objective_sentence, point_of
from apps.capacity.run.steps import Outcome, Purpose, Status, StepPlan, Verdict
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from apps.drivers.load.contract import Arrivals, Second

WARM_UP_S = 5.0
SOAK_WINDOW_S = 60.0


def held_steps(*, rate: float = 0.0, users: int = 0, seconds: float, window_s: float) -> list[StepPlan]:
    """A warm-up at a tenth, then the rate (requests/s) or users for `seconds`, in windows that are judged each."""
    load = requests_per_second(rate) if rate else f"{users} users"
    warm = StepPlan(
        Purpose.WARM_UP, WARM_UP_S, WARM_UP_S, rate / 10, max(1, users // 10) if users else 0, f"Warms up to {load}."
    )
    lengths = _windows(seconds, window_s)
    return [warm, *(StepPlan(Purpose.HOLD, each, each, rate, users, f"Holds {load}.") for each in lengths)]


def _windows(seconds: float, window_s: float) -> Iterator[float]:
    """Whole windows; what is left over makes the last one longer."""
    count = max(1, floor(seconds / window_s))
    yield from [window_s] * (count - 1)
    yield seconds - window_s * (count - 1)


def ramp_steps(*, rate: float, to_rate: float, step: float, seconds: float, max_rate: float) -> list[StepPlan]:
    """From one rate to another (requests/s) by `step`, each for `seconds`; never above `max_rate`."""
    rates = []
    while rate < min(to_rate, max_rate):
        rates.append(rate)
        rate += step
    rates.append(min(to_rate, max_rate))
    return [StepPlan(Purpose.RAMP, seconds, seconds, each, note=f"{requests_per_second(each)}.") for each in rates]


class StepSchedule:
    """A fixed list of steps. With `until_bad` it ends at the first bad one, which is cut off early (a ramp)."""

    def __init__(
        self,
        steps: Sequence[StepPlan],
        *,
        kind: str,
        objective: ObjectiveSpec,
        arrivals: str = Arrivals.POISSON,
        until_bad: bool = False,
    ) -> None:
        self.kind = kind
        self.objective = objective
        self.constant = arrivals == Arrivals.CONSTANT
        self.until_bad = until_bad
        self.outcomes: list[Outcome] = []
        self.overloaded_s = self.elapsed = 0.0
        self._steps = list(steps)

    def next_step(self) -> StepPlan | None:
        """The next of the list."""
        return self._steps[0] if self._steps else None

    def evaluate(self, step: StepPlan, seconds: Sequence[Second]) -> Verdict:
        """What is held is held to the end, whatever comes of it: the abort conditions are there for the worst."""
        if not self.until_bad and len(seconds) < step.seconds_max:
            return Verdict(Status.UNDECIDED)
        found = evaluate_step(step, seconds, self.objective, constant=self.constant)
        return (
            found if found.status is not Status.GOOD or len(seconds) >= step.seconds_max else Verdict(Status.UNDECIDED)
        )

    def record(self, step: StepPlan, seconds: Sequence[Second], verdict: Verdict) -> Outcome:
        """Take note of a step that is over."""
        evaluated = seconds[RAMP_SECONDS:] if len(seconds) > RAMP_SECONDS else seconds
        outcome = Outcome(step, measure(evaluated, self.objective), verdict)
        self.elapsed += len(seconds)
        self.overloaded_s += sum(overloaded(second, self.objective) for second in seconds)
        self.outcomes.append(outcome)
        self._steps = [] if self.until_bad and verdict.status is not Status.GOOD else self._steps[1:]
        return outcome

    def result(self) -> Result:
        """Whether the objective was met at what was held; of a ramp the last good rate before the first bad one."""
        held = [outcome for outcome in self.outcomes if outcome.step.purpose in {Purpose.HOLD, Purpose.RAMP}]
        good = [outcome for outcome in held if outcome.verdict.status is Status.GOOD]
        bad = [outcome for outcome in held if outcome.verdict.status is Status.BAD]
        best = max(good, key=lambda outcome: outcome.step.rate or outcome.step.users, default=None)
        met = None if not held or any(o.verdict.status is Status.VOID for o in held) else not bad
        ramp = self.kind == "ramp" and best is not None
        knee = point_of(best or held[-1]) if held else None
        return Result(
            kind=self.kind,
            message=self._sentence(knee, met=met),
            limited_by=self._ended_by(bad),
            capacity=knee.rate if ramp and knee else None,
            low=knee.rate if ramp and knee else None,
            high=min((outcome.step.rate for outcome in bad), default=None) if ramp else None,
            knee=knee,
            curve=curve_of(self.outcomes),
            overloaded_s=self.overloaded_s,
            seconds=self.elapsed,
            met=met,
        )

    def _ended_by(self, bad: Sequence[Outcome]) -> str:
        if any(outcome.verdict.status is Status.VOID for outcome in self.outcomes):
            return "generator"
        return "objective" if bad else "stopped" if self._steps else "max_rate" if self.kind == "ramp" else "time"

    def _sentence(self, knee: Point | None, *, met: bool | None) -> str:
        if knee is None:
            return "The run ended before it measured anything."
        load = f"{knee.users} users" if knee.users else requests_per_second(knee.rate)
        p95 = (
            "there were no responses"
            if knee.p95_ms is None
            else (f"p50 {knee.p50_ms:.0f} ms, p95 {knee.p95_ms:.0f} ms")
        )
        asked = objective_sentence(self.objective)
        word = {
            True: f"It met {asked}",
            False: f"It did not meet {asked}",
            None: "The load generator could not keep up",
        }
        if self.kind == "ramp":
            broke = "the objective was met up to there" if met else f"above it, {asked} was not met"
            return f"The last good step was {load} ({p95}); {broke}."
        answered = requests_per_second(knee.answered)
        return f"At {load} it answered {answered}, {p95}, {100 * knee.error_rate:.1f} % failed. {word[met]}."
