"""Flows as they were measured, as they are planned, and as they would be if."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from apps.compiler.limits import bounds_of, times
from apps.compiler.model.shared import Limit, LimitKind, LimitScope
from apps.definitions.models import Backend, Pool
from apps.observe.collect.buckets import SHORT
from apps.observe.models import Sample
from apps.overflow import selectors
from apps.overflow.facts import LimitRow, share_of
from apps.overflow.flows import WhatIf
from apps.overflow.replay import replay
from tests.apps.observe_env import Env, make_env
from tests.apps.overflow_env import make_spilling

pytestmark = pytest.mark.django_db


@pytest.fixture
def spilling(live_redis: object, still_clock: None) -> Env:
    """us (limit 10) is offered 19.9/s and sends 9.9 to eu, which serves 2 of its own beside them."""
    return make_spilling()


def test_a_flow_says_who_serves_whom_how_far_away_and_why(spilling: Env) -> None:
    flow = selectors.flow_of(spilling.operator, None)
    (lane,) = flow.lanes
    assert (lane.source, lane.target, lane.added_ms, lane.reason) == ("us", "eu", 98, "rate")
    assert lane.rps == pytest.approx(9.9, abs=0.2)
    eu, us = flow.regions
    assert (round(us.local_rps), round(us.demand_rps), round(us.served_rps)) == (10, 20, 10)
    assert (round(eu.local_rps), round(eu.overflow_in_rps), round(eu.served_rps)) == (2, 10, 12)


def test_the_reason_is_said_in_words(spilling: Env) -> None:
    us = selectors.flow_of(spilling.operator, spilling.pools["acme"]).regions[1]
    (sentence,) = us.sentences
    assert re.fullmatch(r"us is at 10 of 10 requests/s since \d\d:\d\d; (?:9\.[89]|10)/s go to eu, \+98 ms\.", sentence)


def test_the_planner_predicts_what_was_measured(spilling: Env) -> None:
    actual = selectors.flow_of(spilling.operator, spilling.pools["acme"])
    predicted = selectors.predicted(spilling.operator, spilling.pools["acme"])
    pairs = zip(actual.regions, predicted.regions, strict=True)
    # eu has 8 left for guests; the two that are over are spread, for nobody has room.
    assert all(abs(was.demand_rps - plan.demand_rps) < 0.1 for was, plan in pairs)
    assert predicted.lanes[0].rps == pytest.approx(9, abs=0.6)
    assert predicted.regions[0].served_rps == pytest.approx(actual.regions[0].served_rps, abs=1.1)


@pytest.mark.parametrize(
    ("value", "scope", "scaler", "ready", "most"),
    [(1, "backend", 0.25, 2, 1), (5, "backend", 0.5, 2, 3), (3, "server", 0.5, 3, 6), (40, "server", 1, 2, 80)],
)
def test_requests_in_flight_are_limited_as_nodes_round_it(
    value: int, scope: str, scaler: float, ready: int, most: int
) -> None:
    limit = LimitRow(1, 1, 1, scaler, "connections", value, scope, "", None, "")
    assert share_of(limit, ready, drained=False).flight == most
    assert times(bounds_of(Limit(LimitKind.CONNECTIONS, value, LimitScope(scope)), scaler), ready).in_flight == most


@pytest.mark.parametrize(("mode", "order"), [("never", []), ("listed", ["us"])])
def test_the_planner_sends_nothing_where_the_pool_forbids_it(spilling: Env, mode: str, order: list[str]) -> None:
    Pool.objects.filter(pk=spilling.pools["acme"].pk).update(overflow_mode=mode, overflow_order=order)
    predicted = selectors.predicted(spilling.operator, Pool.objects.get(pk=spilling.pools["acme"].pk))
    assert predicted.lanes == ()
    assert round(predicted.regions[1].served_rps) == 20  # over the limit, at home


def test_what_if_a_limit_were_higher(spilling: Env) -> None:
    us = spilling.regions[1]
    before, then, words = selectors.what_if(
        spilling.operator, spilling.pools["acme"], WhatIf(limits={f"rgn-{us.pk}": 30})
    )
    assert before.lanes
    assert then.lanes == ()
    assert words[-2:] == (
        "Everything fits.",
        "Average added latency changes from 40 to 0 ms.",
    )


def test_what_if_a_region_were_lost(spilling: Env) -> None:
    eu, us = spilling.regions
    _, then, words = selectors.what_if(
        spilling.operator, spilling.pools["acme"], WhatIf(failed_regions=(f"rgn-{us.pk}",))
    )
    assert words[0] == "Clients of us arrive at eu."
    assert [round(use.served_rps) for use in then.regions if use.region_id == f"rgn-{eu.pk}"] == [22]


def test_a_drained_region_takes_nothing_in_the_plan(spilling: Env) -> None:
    eu, _ = spilling.regions
    _, then, _ = selectors.what_if(spilling.operator, spilling.pools["acme"], WhatIf(drained_regions=(f"rgn-{eu.pk}",)))
    assert [use.served_rps for use in then.regions if use.region_id == f"rgn-{eu.pk}"] == [0]


def test_the_history_has_the_same_numbers(spilling: Env) -> None:
    seen = [point for point in selectors.history(spilling.operator, None, 60) if point.demand_rps]
    assert seen[-1].overflow_out_rps == pytest.approx(9.9, abs=0.2)
    assert seen[-1].demand_rps == pytest.approx(21.9, abs=0.3)
    at = Sample.objects.filter(resolution=SHORT).earliest("at").at + timedelta(seconds=12)
    then = selectors.flow_of(spilling.operator, None, at)
    assert then.lanes[0].rps == pytest.approx(9.9, abs=0.3)


@pytest.mark.both_engines
def test_the_past_is_replayed_with_another_limit(spilling: Env) -> None:
    pool, us = spilling.pools["acme"], f"rgn-{spilling.regions[1].pk}"
    as_it_was = replay(spilling.operator, pool, None, 60)
    counted = next(each for each in as_it_was.regions if each.region_id == us)
    assert counted.asked == []
    known = [fate for fate in counted.actual if fate and fate.local]
    assert (round(known[-1].local), round(known[-1].out)) == (10, 10)
    would = replay(spilling.operator, pool, WhatIf(limits={us: 15}), 60)
    fates = [fate for each in would.regions if each.region_id == us for fate in each.asked if fate and fate.local]
    assert (round(fates[-1].local), round(fates[-1].out)) == (15, 5)
    assert len(would.at) == len(counted.actual) == 360
    assert counted.actual[0] is None  # nobody looked at that time, and nobody says zero


def test_the_past_of_nobody_elses_pool_is_replayed(spilling: Env) -> None:
    assert replay(spilling.globex, spilling.pools["acme"], WhatIf(factor=2.0), 60).regions == []


def test_customers_see_the_flow_of_their_own_pools_only(spilling: Env) -> None:
    assert selectors.flow_of(spilling.acme, None).lanes
    flow = selectors.flow_of(spilling.globex, None)
    assert flow.lanes == ()
    assert sum(use.demand_rps for use in flow.regions) == 0
    assert selectors.flow_of(spilling.globex, spilling.pools["acme"]).regions == ()


def test_without_traffic_nothing_is_invented() -> None:
    env = make_env()
    flow = selectors.flow_of(env.operator, None)
    assert (flow.at, flow.lanes) == (None, ())


def test_no_limit_is_said(spilling: Env) -> None:
    Backend.objects.filter(region=spilling.regions[0]).update(limit_kind="none", limit_value=0)
    eu = selectors.flow_of(spilling.operator, spilling.pools["acme"]).regions[0]
    assert eu.sentences == ("eu has no limit and accepts all traffic.",)
