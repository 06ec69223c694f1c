"""The planner keeps its promises, whatever is offered: nothing lost, nobody over a limit, own first, nearest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.overflow.planner import NOTHING, Plan, Question, capacity_of_flight, mean_added_ms, plan

NAMES = ("a", "b", "c", "d", "e")
CLOSE = 1e-3


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Up to five regions; limits between nothing and none; any order."""
    names = NAMES[: draw(st.integers(1, 5))]
    rates = st.floats(0, 10_000, allow_nan=False)
    limits = st.one_of(st.none(), st.just(0.0), st.floats(0.5, 10_000))
    return Question(
        offered={name: draw(rates) for name in names},
        capacity={name: draw(limits) for name in names},
        orders={name: draw(st.permutations([other for other in names if other != name])) for name in names},
        when_full=draw(st.sampled_from(("spread", "queue", "refuse"))),
    )


def room_left(question: Question, made: Plan) -> Mapping[str, float]:
    """What each region could still take."""
    found = {}
    for region, capacity in question.capacity.items():
        found[region] = float("inf") if capacity is None else capacity - made.served(region)
    return found


@given(questions())
def test_nothing_is_lost_and_nothing_comes_from_nowhere(question: Question) -> None:
    made = plan(question)
    for region, offered in question.offered.items():
        gone = sum(rate for (source, _), rate in made.lanes.items() if source == region)
        gone += made.queued.get(region, 0) + made.refused.get(region, 0)
        assert gone == pytest.approx(offered, abs=CLOSE)


@given(questions())
def test_no_region_is_over_its_limit_while_another_has_room(question: Question) -> None:
    made = plan(question)
    over = any(rest < -CLOSE for rest in room_left(question, made).values())
    unplaced = sum(made.refused.values()) + sum(made.queued.values()) + sum(made.spread.values())
    if over or unplaced > CLOSE:
        assert all(rest <= CLOSE for rest in room_left(question, made).values())


@given(questions())
def test_a_region_serves_its_own_clients_first(question: Question) -> None:
    made = plan(question)
    for region, offered in question.offered.items():
        capacity = question.capacity[region]
        own = made.lanes.get((region, region), 0) - made.spread.get((region, region), 0)
        assert own == pytest.approx(offered if capacity is None else min(offered, capacity), abs=CLOSE)


@given(questions())
def test_nothing_goes_farther_while_somebody_nearer_has_room(question: Question) -> None:
    assert_nearest_first(question, plan(question))


def assert_nearest_first(question: Question, made: Plan) -> None:
    """Nobody who took a lane had room left nearer by."""
    rest = room_left(question, made)
    for (source, target), rate in made.lanes.items():
        if source == target or rate - made.spread.get((source, target), 0) <= CLOSE:
            continue
        order = question.orders[source]
        nearer = order[: order.index(target)]
        assert all(rest[region] <= CLOSE for region in nearer)


@given(questions())
def test_a_region_that_takes_nothing_gets_nothing(question: Question) -> None:
    made = plan(question)
    closed = [region for region, capacity in question.capacity.items() if capacity == 0]
    assert all(made.served(region) == 0 for region in closed)


@given(questions(), st.sampled_from(NAMES), st.floats(1, 1000))
def test_more_capacity_never_leaves_more_without_room(question: Question, region: str, more: float) -> None:
    capacity = question.capacity.get(region)
    if capacity is None:
        return
    wider = replace(question, capacity={**question.capacity, region: capacity + more})

    def unplaced(made: Plan) -> float:
        return sum(made.refused.values()) + sum(made.queued.values()) + sum(made.spread.values())

    assert unplaced(plan(wider)) <= unplaced(plan(question)) + CLOSE


def tutorial(offered: float, **changes: object) -> Question:
    """Two regions of three machines, a limit of 10 requests/s each; the clients are in one of them."""
    question = Question({"us": offered, "eu": 0.0}, {"us": 10.0, "eu": 10.0}, {"us": ("eu",), "eu": ("us",)})
    return replace(question, **changes)  # type: ignore[arg-type]  # field names are the caller's


def test_the_tutorial_splits_twenty_into_ten_and_ten() -> None:
    made = plan(tutorial(20))
    assert made.lanes == {("us", "us"): 10, ("us", "eu"): 10}
    assert mean_added_ms(made.lanes, {("us", "eu"): 98.0}) == 49.0


def test_what_nobody_has_room_for_is_spread_queued_or_refused() -> None:
    assert plan(tutorial(30)).lanes == {("us", "us"): 15, ("us", "eu"): 15}
    assert plan(tutorial(30, when_full="queue")).queued == {"us": 10}
    assert plan(tutorial(30, when_full="refuse")).refused == {"us": 10}


def test_those_who_knock_at_one_door_share_by_what_they_bring() -> None:
    orders = {"a": ("c",), "b": ("c",), "c": ()}
    made = plan(Question({"a": 30.0, "b": 10.0, "c": 0.0}, {"a": 0.0, "b": 0.0, "c": 20.0}, orders, "refuse"))
    assert made.lanes == {("a", "c"): 15, ("b", "c"): 5}
    assert made.refused == {"a": 15, "b": 5}


def test_a_region_without_servers_sends_everything_on() -> None:
    assert plan(Question({"a": 5.0}, {"b": None}, {"a": ("b",)})).lanes == {("a", "b"): 5}


def test_a_limit_in_flight_is_a_rate_once_the_time_is_known() -> None:
    assert capacity_of_flight(6, 384) == pytest.approx(15.6, abs=0.1)
    assert capacity_of_flight(6, None) is None


@given(questions())
def test_the_same_question_has_the_same_answer(question: Question) -> None:
    made = plan(question)
    assert plan(question) == made
    turned = plan(replace(question, offered=dict(reversed(list(question.offered.items())))))
    for lane in {*made.lanes, *turned.lanes}:
        # Sums in another order differ in the last digits only.
        assert turned.lanes.get(lane, 0) == pytest.approx(made.lanes.get(lane, 0), abs=CLOSE)


def test_a_planner_that_goes_farthest_first_breaks_the_promise() -> None:
    """The negative control: the check of the property is run on a plan whose orders were turned round."""
    regions = {"a": 20.0, "b": 0.0, "c": 0.0}
    question = Question(regions, dict.fromkeys(regions, 10.0), {"a": ("b", "c"), "b": ("a", "c"), "c": ("b", "a")})
    turned = replace(question, orders={region: order[::-1] for region, order in question.orders.items()})
    assert_nearest_first(question, plan(question))
    with pytest.raises(AssertionError):
        assert_nearest_first(question, plan(turned))


def test_a_planner_that_lets_guests_in_first_breaks_the_promise() -> None:
    """The negative control: the property notices a plan in which own traffic gives way."""
    question = replace(tutorial(20), offered={"us": 20.0, "eu": 10.0})
    wrong = Plan({("us", "us"): 10, ("us", "eu"): 10, ("eu", "eu"): 0}, {}, {}, {"eu": 10})
    assert wrong.lanes["eu", "eu"] < plan(question).lanes["eu", "eu"] - NOTHING
