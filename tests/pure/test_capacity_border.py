"""CAPACITY: for independent callers all steps together say where the border lies, without leaning to one side."""

from __future__ import annotations

from functools import cache
from statistics import fmean

import pytest

from apps.capacity.fitting import border
from apps.capacity.measuring import Measured
from apps.capacity.search import Search
from apps.capacity.steps import Outcome, Purpose, StepPlan, Verdict, Word
from apps.definitions.specs import ObjectiveSpec
from tests.pure.capacity_worlds import poisson_truth, run

FAST = ObjectiveSpec(percentile=95, below_ms=100, errors_below=0.01)
WORLDS = ((1, True), (3, False), (3, True), (8, True))
SEEDS = range(100, 106)


@cache
def truth_of(servers: int, exponential: bool) -> float:
    """By a long simulation of the same queues."""
    return poisson_truth(FAST, servers=servers, service_ms=10, exponential=exponential)


def found(servers: int, exponential: bool, seed: int) -> tuple[float, float | None, float]:
    """What one search reports, what it confirmed, and the truth."""
    search = Search(objective=FAST, start_rate=50, max_rate=300 * servers, arrivals="poisson", seconds=295)
    story, _ = run(search, arrivals="poisson", servers=servers, service_ms=10, exponential=exponential, seed=seed)
    confirmed = [
        o.step.rate for o in search.outcomes if o.step.purpose is Purpose.CONFIRM and o.verdict.word is Word.GOOD
    ]
    return story.result.capacity or 0.0, confirmed[0] if confirmed else None, truth_of(servers, exponential)


def test_the_border_of_independent_callers_is_found_without_a_bias() -> None:
    runs = [found(servers, exponential, seed) for servers, exponential in WORLDS for seed in SEEDS]
    errors = [capacity / truth - 1 for capacity, _, truth in runs]
    assert abs(fmean(errors)) < 0.02
    assert sum(abs(error) <= 0.05 for error in errors) >= 0.75 * len(errors)
    # The control: the rate that was confirmed first is what one gets without looking at all steps together.
    first = [confirmed / truth - 1 for _, confirmed, truth in runs if confirmed is not None]
    assert fmean(first) < -0.02


def outcome(rate: float, share: float, seconds: float, word: Word = Word.GOOD, *, answered: float = 0.0) -> Outcome:
    measured = Measured(seconds=seconds, offered=rate, answered=answered or rate, slow_share=share)
    return Outcome(StepPlan(Purpose.BISECT, 1, 60, rate), measured, Verdict(word))


def test_longer_steps_make_the_interval_narrower() -> None:
    short = border([outcome(60, 0.02, 10), outcome(75, 0.08, 10, Word.BAD)], FAST)
    long = border([outcome(60, 0.02, 200), outcome(75, 0.08, 200, Word.BAD)], FAST)
    assert short is not None
    assert long is not None
    assert 60 < long.low < long.rate < long.high < 75
    assert long.high - long.low < short.high - short.low


def test_steps_without_a_slow_request_count_too() -> None:
    without = border([outcome(75, 0.08, 30, Word.BAD)], FAST)
    with_it = border([outcome(70, 0.0, 120), outcome(75, 0.08, 30, Word.BAD)], FAST)
    assert without is not None
    assert with_it is not None
    assert with_it.rate > without.rate


@pytest.mark.parametrize(
    "steps",
    [
        [outcome(50, 0.0, 30), outcome(100, 0.95, 5, Word.BAD)],
        [outcome(50, 0.0, 30), outcome(100, 0.2, 1, Word.BAD, answered=60)],
        [outcome(50, 0.0, 30)],
    ],
    ids=["a cliff", "a queue that only began to grow", "nothing slow"],
)
def test_without_a_step_at_the_border_there_is_no_estimate(steps: list[Outcome]) -> None:
    assert border(steps, FAST) is None
