"""For independent callers all steps together say where the border lies, without leaning to one side."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import pytest

from apps.capacity.measure.fitting import border
from apps.capacity.measure.measuring import Measured
from apps.capacity.run.search.profile import Search
from apps.capacity.run.search.tuning import TUNING
from apps.capacity.run.steps import Outcome, Purpose, Status, StepPlan, Verdict
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from tests.pure.capacity_fixtures import Story, poisson_truth, run

pytestmark = pytest.mark.slow(reason="searches are simulated request by request")
FAST = ObjectiveSpec(percentile=95, max_latency_ms=100, max_error_rate=0.01)
# What so many servers can take in truth, by a long simulation of the same queues.
TRUTHS = {(1, True): 70.6, (3, False): 282.1, (3, True): 267.5, (8, True): 764.8}
SEEDS = range(100, 106)


@dataclass(frozen=True)
class Found:
    """How far one search was off in what it reports, and in the rate that it confirmed first."""

    reported: float
    confirmed: float | None
    story: Story


def found(servers: int, exponential: bool, seed: int) -> Found:
    """One search of servers that take 10 ms, asked by independent callers."""
    search = Search(objective=FAST, start_rate=50, max_rate=300 * servers, arrivals="poisson", seconds=295)
    story, _ = run(search, arrivals="poisson", servers=servers, service_ms=10, exponential=exponential, seed=seed)
    truth = TRUTHS[servers, exponential]
    confirmed = [
        o.step.rate
        for o in search.state.outcomes
        if o.step.purpose is Purpose.CONFIRM and o.verdict.status is Status.GOOD
    ]
    return Found((story.result.capacity or 0.0) / truth - 1, confirmed[0] / truth - 1 if confirmed else None, story)


@pytest.mark.parametrize(
    ("servers", "exponential", "seed"),
    [(3, False, 104), pytest.param(3, True, 103, marks=pytest.mark.exhaustive)],
)
def test_all_steps_together_come_nearer_to_the_truth_than_the_step_that_was_confirmed(
    servers: int, exponential: bool, seed: int
) -> None:
    one = found(servers, exponential, seed)
    assert abs(one.reported) < 0.03
    assert one.confirmed is not None
    assert one.confirmed < -0.04, "the control: what one gets without looking at all steps"
    assert one.story.length < 300
    assert one.story.result.overloaded_s <= TUNING.overload_s


@pytest.mark.exhaustive
def test_the_border_of_independent_callers_is_found_without_a_bias() -> None:
    runs = [found(*case, seed) for case in TRUTHS for seed in SEEDS]
    errors = [one.reported for one in runs]
    assert abs(fmean(errors)) < 0.02
    assert sum(abs(error) <= 0.05 for error in errors) >= 0.75 * len(errors)
    # The control: the rate that was confirmed first is what one gets without looking at all steps together.
    assert fmean(one.confirmed for one in runs if one.confirmed is not None) < -0.02


@pytest.mark.exhaustive
@pytest.mark.parametrize(("servers", "exponential"), TRUTHS)
def test_the_truth_is_what_a_long_simulation_says(servers: int, exponential: bool) -> None:
    truth = poisson_truth(FAST, servers=servers, service_ms=10, exponential=exponential)
    assert TRUTHS[servers, exponential] == pytest.approx(truth, rel=0.001)


def outcome(
    rate: float, share: float, seconds: float, status: Status = Status.GOOD, *, answered: float = 0.0
) -> Outcome:
    measured = Measured(seconds=seconds, offered=rate, answered=answered or rate, slow_share=share)
    return Outcome(StepPlan(Purpose.BISECT, 1, 60, rate), measured, Verdict(status))


def test_longer_steps_make_the_interval_narrower() -> None:
    short = border([outcome(60, 0.02, 10), outcome(75, 0.08, 10, Status.BAD)], FAST)
    long = border([outcome(60, 0.02, 200), outcome(75, 0.08, 200, Status.BAD)], FAST)
    assert short is not None
    assert long is not None
    assert 60 < long.low < long.rate < long.high < 75
    assert long.high - long.low < short.high - short.low


def test_steps_without_a_slow_request_count_too() -> None:
    without = border([outcome(75, 0.08, 30, Status.BAD)], FAST)
    with_it = border([outcome(70, 0.0, 120), outcome(75, 0.08, 30, Status.BAD)], FAST)
    assert without is not None
    assert with_it is not None
    assert with_it.rate > without.rate


@pytest.mark.parametrize(
    "steps",
    [
        [outcome(50, 0.0, 30), outcome(100, 0.95, 5, Status.BAD)],
        [outcome(50, 0.0, 30), outcome(100, 0.2, 1, Status.BAD, answered=60)],
        [outcome(50, 0.0, 30)],
    ],
    ids=["a cliff", "a queue that only began to grow", "nothing slow"],
)
def test_without_a_step_at_the_border_there_is_no_estimate(steps: list[Outcome]) -> None:
    assert border(steps, FAST) is None
