"""Comparisons, sizing, balance, bottlenecks and fits say what numbers show, and no more."""

from __future__ import annotations

import random

import pytest

from apps.capacity.measure.bottleneck import NodeSample, ServerSample, bottleneck
from apps.capacity.measure.comparing import Observation, compare, summary
from apps.capacity.measure.fitting import Scalability, scalability
from apps.capacity.measure.history import difference
from apps.capacity.measure.results import result_of
from apps.capacity.run.profiles import load_profile_of
from apps.capacity.run.steps import Purpose
from apps.capacity.use.balance import Work, evaluate_balance
from apps.capacity.use.sizing import Measurement, size
from apps.definitions.shapes.operations.capacity_test import CapacityTestSpec, GuardSpec, LoadSpec, TargetSpec
from tests.pure.capacity_fixtures import run


def observations(p95: float, rounds: int, scatter: float, seed: int) -> list[Observation]:
    seeded = random.Random(seed)
    return [Observation(throughput=100.0, p95_ms=seeded.gauss(p95, p95 * scatter)) for _ in range(rounds)]


def test_twelve_percent_slower_is_shown_with_its_interval() -> None:
    found = {d.field: d for d in compare(observations(100, 8, 0.01, 1), observations(112, 8, 0.01, 2))}
    difference = found["p95_ms"]
    assert difference.shown
    assert difference.change == pytest.approx(0.12, abs=0.02)
    assert "slower at p95 (± " in difference.message


def test_noise_is_no_difference() -> None:
    differences = compare(observations(100, 4, 0.05, 1), observations(100, 4, 0.05, 2))
    assert summary(differences) == "No difference can be shown."


def test_of_two_hundred_comparisons_of_the_same_hardly_more_than_five_percent_are_wrong() -> None:
    wrong = 0
    for seed in range(200):
        pairs = compare(observations(100, 4, 0.05, seed), observations(100, 4, 0.05, 1000 + seed))
        wrong += any(each.shown for each in pairs if each.field == "p95_ms")
    assert wrong <= 20


def test_one_round_shows_nothing() -> None:
    (difference,) = compare([Observation(p95_ms=100)], [Observation(p95_ms=300)])
    assert not difference.shown
    assert difference.plus_minus is None


def test_three_regions_with_one_lost_need_half_of_the_load_each() -> None:
    sizing = size([Measurement(name, 3, 5.0, "run-1") for name in "abc"], 30, margin=0)
    assert [need.needed for need in sizing.needs] == [3, 3, 3]
    assert sizing.takes_now == 30
    assert sizing.message.endswith("the same number as now.")


def test_a_region_that_was_never_measured_borrows_the_weakest_number_and_says_so() -> None:
    sizing = size([Measurement("a", 3, 5.0, "run-1"), Measurement("b", 3, 4.0, "run-2"), Measurement("c", 1, None)], 40)
    assert sizing.needs[2].per_server == 4.0
    assert "Not measured" in sizing.doubts[0]


def test_nothing_measured_gives_no_number() -> None:
    assert not size([Measurement("a", 3, None)], 10).possible
    assert not size([Measurement("a", 3, 5.0, "run-1")], 10).possible
    assert size([Measurement("a", 3, 5.0, "run-1")], 10, n_minus_1=False).needs[0].needed == 3


def test_servers_cost_what_one_costs() -> None:
    sizing = size([Measurement(name, 2, 10.0) for name in "ab"], 30, margin=0, cost_per_server=25.0)
    assert sizing.cost == 150.0
    assert sizing.needs[0].cost == 25.0


def test_two_thirds_of_idle_processes_are_uneven() -> None:
    found = evaluate_balance("eu", [Work("one", 900), Work("two", 50), Work("three", 50)])
    assert found.status == "uneven"
    assert found.spread == pytest.approx(18)
    assert "90 %" in found.message


def test_chance_and_weights_are_not_uneven() -> None:
    assert evaluate_balance("eu", [Work("one", 340), Work("two", 330), Work("three", 330)]).status == "even"
    assert evaluate_balance("eu", [Work("big", 800, weight=200), Work("small", 400)]).status == "even"
    assert evaluate_balance("eu", [Work("one", 5), Work("two", 1)]).status == "unknown"
    assert evaluate_balance("eu", [Work("one", 500), Work("drained", 0, weight=0)]).status == "unknown"


def test_a_server_without_any_request_is_uneven() -> None:
    assert evaluate_balance("eu", [Work("one", 100), Work("two", 0)]).status == "uneven"


def test_the_bottleneck_is_named_surest_first() -> None:
    full = [ServerSample(f"vm-{n}", queue=5, p95_ms=900) for n in range(3)]
    assert bottleneck(full).reason == "queue"
    assert bottleneck(full, [NodeSample("lb-1", cpu=0.95)]).name == "lb-1"
    assert bottleneck([*full, ServerSample("vm-9", up=False)]).name == "vm-9"
    slow = [ServerSample("vm-0", p95_ms=40), ServerSample("vm-1", p95_ms=45), ServerSample("vm-2", p95_ms=400)]
    assert (bottleneck(slow).reason, bottleneck(slow).name) == ("one_server", "vm-2")
    assert bottleneck([ServerSample("vm-0", p95_ms=40), ServerSample("vm-1", p95_ms=45)]).reason == "unknown"
    assert bottleneck(full, [NodeSample("lb-1", connections=0.85)]).message.startswith(
        "The load balancer's node lb-1 had 85 % of its connections in use"
    )


def test_a_server_that_holds_more_connections_than_its_weight_explains_is_the_bottleneck() -> None:
    crowded = [ServerSample("vm-0", connections=8, weight=100), ServerSample("vm-1", connections=40, weight=100)]
    assert (bottleneck(crowded).name, "most open connections" in bottleneck(crowded).message) == ("vm-1", True)
    heavy = [ServerSample("vm-0", connections=8, weight=50), ServerSample("vm-1", connections=40, weight=200)]
    assert bottleneck(heavy).reason == "unknown"
    few = [ServerSample("vm-0", connections=1, weight=100), ServerSample("vm-1", connections=9, weight=100)]
    assert bottleneck(few).reason == "unknown"
    drained = [ServerSample("vm-0", connections=40, weight=0), ServerSample("vm-1", connections=2, weight=100)]
    assert bottleneck(drained).reason == "unknown"


def test_the_scalability_law_is_found_again() -> None:
    law = Scalability(100.0, 0.05, 0.001)
    found = scalability([(n, law.capacity(n)) for n in (1, 2, 4, 8, 16)])
    assert found is not None
    assert found.capacity(12) == pytest.approx(law.capacity(12), rel=0.02)
    assert scalability([(1, 100.0), (2, 190.0)]) is None


def spec(kind: str, **load: float) -> CapacityTestSpec:
    guards = GuardSpec(max_rate=1000, max_connections=100, max_duration_s=300)
    return CapacityTestSpec(TargetSpec("shop", "eu", "shop.test"), load=LoadSpec(kind=kind, **load), guards=guards)  # type: ignore[arg-type]


def test_a_constant_rate_is_held_and_judged() -> None:
    story, _ = run(load_profile_of(spec("constant", rate=50, duration_s=20)), servers=2, service_ms=10)
    assert story.result.met
    assert story.result.knee is not None
    assert story.result.knee.answered == pytest.approx(50, rel=0.05)
    broken, _ = run(load_profile_of(spec("constant", rate=300, duration_s=20)), servers=2, service_ms=10)
    assert broken.result.met is False
    assert broken.length >= 20


def test_users_keep_so_many_requests_in_flight() -> None:
    story, _ = run(load_profile_of(spec("users", users=4, duration_s=10)), servers=2, service_ms=10)
    assert story.result.knee is not None
    assert story.result.knee.answered == pytest.approx(200, rel=0.05)
    assert all(second.in_flight <= 4 for second in story.seconds)


def test_a_ramp_ends_at_the_first_bad_step() -> None:
    ramp = spec("ramp", rate=50, to_rate=500, step=50, duration_s=10)
    story, _ = run(load_profile_of(ramp), servers=2, service_ms=10)
    assert story.result.capacity == 200
    assert story.result.high == 250
    assert max(plan.rate for plan in story.plans) == 250


def test_a_soak_is_judged_minute_by_minute() -> None:
    story, _ = run(load_profile_of(spec("soak", rate=50, duration_s=190)), servers=2, service_ms=10)
    lengths = [plan.seconds_max for plan in story.plans if plan.purpose is Purpose.HOLD]
    assert lengths == [60, 60, 70]


def test_a_result_survives_being_stored() -> None:
    story, _ = run(load_profile_of(spec("search", rate=10)), servers=2, service_ms=10)
    assert result_of(story.result.document() | {"build": {"digest": "ab"}}) == story.result


def test_a_change_since_the_last_run_is_shown_only_where_both_are_sure() -> None:
    last = {"capacity": 100.0, "low": 99.0, "high": 102.0}
    assert difference({"capacity": 80.0, "low": 79.0, "high": 82.0}, last, "run-1")["shown"]
    near = difference({"capacity": 101.0, "low": 100.0, "high": 103.0}, last, "run-1")
    assert not near["shown"]
    assert near["message"].startswith("No significant difference from run-1")
    assert not difference({"capacity": 120.0, "low": 119.0, "high": None}, last | {"high": None}, "run-1")["shown"]
