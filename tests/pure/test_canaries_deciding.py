"""What a canary does next: what is worse holds it, what is unknown lets no step pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.canaries.deciding import Decision, Facts, Side, decide
from apps.canaries.plan import CanaryPlan, CanaryStep, weights_at
from apps.core.errors import Invalid
from apps.definitions.shapes.base.reading import read_or_raise

PLAN = CanaryPlan("next", (CanaryStep(10, 60), CanaryStep(50, 60)), least_requests=20)
WELL = Side(lines=100, error_rate=0.01, p95_ms=40)
OVER = Facts(PLAN, in_step_s=60, for_s=60, canary=WELL, others=(WELL,))
GOES_ON = Decision(goes_on=True)


def test_a_step_that_went_well_leads_to_the_next_one_when_its_time_is_over() -> None:
    assert decide(OVER) == GOES_ON
    assert decide(replace(OVER, in_step_s=59)) == Decision()


def test_the_time_of_a_step_begins_when_its_weights_are_live() -> None:
    found = decide(replace(OVER, in_step_s=None))
    assert (found.goes_on, found.holds, "live" in found.message) == (False, False, True)


@pytest.mark.parametrize("in_step_s", [1.0, 60.0])
@pytest.mark.parametrize(
    ("canary", "why"),
    [
        (replace(WELL, error_rate=0.051), "5.1 % of its 100 responses are 5xx; the canary allows 5 %."),
        (replace(WELL, p95_ms=81), "Its p95 is 81 ms; the canary allows 2 times the 40 ms of the slowest other pool."),
    ],
)
def test_a_worse_side_holds_at_once_and_says_why(in_step_s: float, canary: Side, why: str) -> None:
    found = decide(replace(OVER, in_step_s=in_step_s, canary=canary))
    assert found == Decision(holds=True, message=why)


def test_what_the_plan_allows_is_not_worse() -> None:
    assert decide(replace(OVER, canary=replace(WELL, error_rate=0.05, p95_ms=80))) == GOES_ON
    easy = replace(PLAN, max_error_rate=1.0, max_slower=100)
    assert decide(replace(OVER, plan=easy, canary=replace(WELL, error_rate=0.9, p95_ms=400))) == GOES_ON


def test_a_few_milliseconds_are_no_matter() -> None:
    quick = replace(OVER, others=(replace(WELL, p95_ms=1),))
    assert decide(replace(quick, canary=replace(WELL, p95_ms=11))) == GOES_ON
    assert decide(replace(quick, canary=replace(WELL, p95_ms=12))).holds


def test_too_few_requests_say_nothing_good_or_bad() -> None:
    found = decide(replace(OVER, canary=Side(lines=19, error_rate=1.0, p95_ms=900)))
    assert (found.goes_on, found.holds) == (False, False)
    assert "19 of the 20 requests" in found.message


@pytest.mark.parametrize(
    "unknown",
    [
        {"unknown": "How it does is unknown."},
        {"canary": replace(WELL, p95_ms=None)},
        {"others": ()},
        {"others": (Side(),)},
    ],
)
def test_what_is_unknown_lets_no_step_pass(unknown: dict[str, object]) -> None:
    found = decide(replace(OVER, **unknown))  # type: ignore[arg-type]  # names of fields
    assert (found.goes_on, found.holds) == (False, False)
    assert found.message.startswith("The time of this step is over. ")


def test_the_slowest_other_pool_is_the_measure() -> None:
    slow = replace(WELL, p95_ms=300)
    assert decide(replace(OVER, canary=slow, others=(WELL, slow))) == GOES_ON


def test_weights_that_do_not_come_to_the_nodes_hold_it() -> None:
    found = decide(replace(OVER, in_step_s=None, stopped="Fleet eu takes no changes now."))
    assert found == Decision(holds=True, message="Fleet eu takes no changes now.")


@pytest.mark.parametrize(
    ("before", "percent", "after"),
    [
        ({"old": 100, "next": 0}, 5, {"old": 95, "next": 5}),
        ({"old": 7, "next": 0}, 100, {"old": 0, "next": 100}),
        ({"old": 90, "next": 10}, 0, {"old": 90, "next": 0}),
        ({"a": 2, "b": 1, "next": 0}, 10, {"a": 600, "b": 300, "next": 100}),
        ({"a": 1, "b": 1, "c": 1, "next": 0}, 1, {"a": 330, "b": 330, "c": 330, "next": 10}),
        ({"a": 1, "b": 1, "c": 1, "next": 5}, 50, {"a": 167, "b": 167, "c": 166, "next": 500}),
        ({"a": 50, "off": 0, "next": 0}, 50, {"a": 50, "off": 0, "next": 50}),
    ],
)
def test_the_others_share_the_rest_as_they_did(before: dict[str, int], percent: int, after: dict[str, int]) -> None:
    assert weights_at(before, "next", percent) == after


def test_steps_grow() -> None:
    steps = [{"percent": 10, "for_s": 60}, {"percent": 10, "for_s": 60}]
    with pytest.raises(Invalid) as refused:
        read_or_raise(CanaryPlan, {"pool": "next", "steps": steps})
    assert [(each.pointer, each.code) for each in refused.value.field_errors] == [("/steps", "not_growing")]


@pytest.mark.parametrize("steps", [None, [], "5", [{"percent": 0, "for_s": 60}], [{"percent": 5, "for_s": 9}]])
def test_a_plan_needs_steps_with_bounds(steps: object) -> None:
    with pytest.raises(Invalid) as refused:
        read_or_raise(CanaryPlan, {"pool": "next", "steps": steps})
    assert all(each.pointer.startswith("/steps") for each in refused.value.field_errors)
