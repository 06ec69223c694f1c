"""A search that could not confirm a number says what it does know, and an interval has a width."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.capacity.measure.fitting import Crossing
from apps.capacity.measure.results import Result
from apps.capacity.measure.summing import RESOLUTION, Ending, result_of_search
from apps.capacity.run.search.profile import Search
from apps.capacity.run.steps import Outcome, Purpose, Status, StepPlan, Verdict
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from tests.pure.capacity_fixtures import run

pytestmark = pytest.mark.slow(reason="searches are simulated request by request")
FAST = ObjectiveSpec(percentile=95, max_latency_ms=50, max_error_rate=0.01)
TUTORIAL = ObjectiveSpec(percentile=95, max_latency_ms=600, max_error_rate=0.01)


@pytest.fixture(scope="module")
def measured() -> Outcome:
    """A step that was really made, for its numbers."""
    story, _ = run(Search(objective=FAST, max_rate=50_000, arrivals="constant"), servers=2, service_ms=5)
    return story.outcomes[0]


def step(measured: Outcome, rate: float, status: Status, purpose: Purpose = Purpose.BISECT) -> Outcome:
    """The same at another rate with another verdict."""
    return replace(measured, step=StepPlan(purpose, 10, 10, rate), verdict=Verdict(status))


def summed(outcomes: list[Outcome], ending: Ending, capacity: float | None = None, **values: object) -> Result:
    """The result of such steps."""
    return result_of_search(
        objective=TUTORIAL, outcomes=outcomes, bounds=(capacity, capacity, values.pop("high", float("inf"))),  # type: ignore[arg-type]
        confirmed=capacity is not None, ending=ending, overloaded_s=8, seconds=120, **values,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_run_that_could_not_confirm_says_what_held_and_what_did_not(measured: Outcome) -> None:
    outcomes = [
        step(measured, 6, Status.GOOD),
        step(measured, 12, Status.GOOD),
        step(measured, 15.4, Status.BAD),
        step(measured, 11.94, Status.BAD, Purpose.CONFIRM),
    ]
    found = summed(outcomes, Ending.OVERLOAD)
    assert (found.capacity, found.low, found.high, found.met) == (None, 12, 15.4, None)
    assert found.inconclusive
    assert found.message.startswith("At least 12 requests/s, below 15.4 requests/s, not confirmed, with p95 below")
    assert "No rate" not in found.message


def test_control_a_search_in_which_nothing_held_found_that_nothing_holds(measured: Outcome) -> None:
    found = summed([step(measured, 1, Status.BAD)], Ending.NOTHING)
    assert (found.low, found.met, found.inconclusive) == (None, False, False)
    assert found.message.startswith("No rate met")


def test_an_interval_has_a_width(measured: Outcome) -> None:
    outcomes = [step(measured, 109.4, Status.GOOD), step(measured, 109.5, Status.BAD)]
    found = summed(outcomes, Ending.OBJECTIVE, 109.4, likely=Crossing(109.4, 109.4, 109.4), high=109.4)
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(RESOLUTION * 109.4)
    assert found.low < 109.4 < found.high
    assert "between 108.3 and 110.5" in found.message


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_the_interval_of_a_search_holds_what_it_found_and_is_no_point(arrivals: str) -> None:
    story, _ = run(
        Search(objective=FAST, max_rate=50_000, arrivals=arrivals), arrivals=arrivals, servers=2, service_ms=5
    )
    found = story.result
    assert found.capacity is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.capacity <= found.high
    assert found.high - found.low >= RESOLUTION * found.capacity * 0.999
