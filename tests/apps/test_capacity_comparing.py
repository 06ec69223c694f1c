"""Comparisons go A B A B run by run, sizing and balance read what is stored; foreign pools do not exist."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.accounts.actors import Actor
from apps.capacity import balance, comparisons, selectors, sizing
from apps.capacity.models import Comparison, Run
from apps.core.clock import now
from apps.core.errors import Forbidden, Invalid, NotFound
from apps.definitions.models import CapacityTest, Pool, Server
from apps.fleet.models import Node
from apps.observe.buckets import SHORT
from apps.observe.models import Sample
from tests.doors.capacity_world import make_run, make_test

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("tutorial_world")]


@pytest.fixture
def pool(acme: Actor) -> Pool:
    return Pool.objects.filter(account=acme.account).order_by("pk")[0]


@pytest.fixture
def tests(pool: Pool) -> tuple[CapacityTest, CapacityTest]:
    return make_test(pool, name="first"), make_test(pool, name="second")


def end_open_run(comparison: Comparison, p95: float, state: str = "done") -> Run:
    """The run that the comparison waits for ends with this p95."""
    run = Run.objects.filter(comparison=comparison).latest("pk")
    knee = {"answered": 15.0, "p50_ms": 390.0, "p95_ms": p95, "p99_ms": p95 * 1.1, "error_share": 0.0}
    run.state, run.result, run.ended_at = state, {"capacity": 15.0, "knee": knee}, now()
    run.why = "It broke off." if state != "done" else ""
    run.save()
    return run


def test_two_tests_run_in_turn_and_the_difference_is_shown(
    acme: Actor, tests: tuple[CapacityTest, CapacityTest]
) -> None:
    made = comparisons.request_comparison(actor=acme, first_id=tests[0].pk, second_id=tests[1].pk, rounds=3)
    for p95 in (500, 561, 505, 566, 498, 557):
        end_open_run(made, p95)
        comparisons.advance_all()
    made.refresh_from_db()
    order = list(Run.objects.filter(comparison=made).order_by("pk").values_list("test__name", flat=True))
    assert order == ["first", "second"] * 3
    assert made.result is not None
    assert "second is 12.0 % slower at p95" in made.result["verdict"]


def test_a_comparison_waits_for_its_open_run(acme: Actor, tests: tuple[CapacityTest, CapacityTest]) -> None:
    made = comparisons.request_comparison(actor=acme, first_id=tests[0].pk, second_id=tests[1].pk)
    Run.objects.filter(comparison=made).update(state="running")
    comparisons.advance_all()
    comparisons.advance_all()
    assert Run.objects.filter(comparison=made).count() == 1


def test_a_run_that_broke_off_ends_the_comparison_and_says_so(
    acme: Actor, tests: tuple[CapacityTest, CapacityTest]
) -> None:
    made = comparisons.request_comparison(actor=acme, first_id=tests[0].pk, second_id=tests[1].pk)
    end_open_run(made, 500, state="stopped")
    comparisons.advance_all()
    made.refresh_from_db()
    assert made.result is not None
    assert "stopped. It broke off." in made.result["verdict"]
    assert Run.objects.filter(comparison=made).count() == 1


def test_the_same_test_twice_and_one_round_are_refused(acme: Actor, tests: tuple[CapacityTest, CapacityTest]) -> None:
    with pytest.raises(Invalid) as caught:
        comparisons.request_comparison(actor=acme, first_id=tests[0].pk, second_id=tests[0].pk, rounds=1)
    assert [fault.pointer for fault in caught.value.faults] == ["/second", "/rounds"]


def test_viewers_and_strangers_compare_nothing(
    acme: Actor, globex: Actor, tests: tuple[CapacityTest, CapacityTest]
) -> None:
    viewer = Actor("v", acme.account, "viewer")
    with pytest.raises(Forbidden):
        comparisons.request_comparison(actor=viewer, first_id=tests[0].pk, second_id=tests[1].pk)
    with pytest.raises(NotFound):
        comparisons.request_comparison(actor=globex, first_id=tests[0].pk, second_id=tests[1].pk)
    assert not selectors.comparisons(globex).exists()


def test_sizing_counts_per_server_of_the_last_run_and_borrows_for_the_rest(acme: Actor, pool: Pool) -> None:
    run = make_run(make_test(pool))
    assert run.result is not None
    found = {each.region: each for each in sizing.measurements_of(pool)}
    here = found["us-central1"]
    assert here.per_server == pytest.approx(run.result["capacity"] / here.servers)
    answer = sizing.sizing(acme, pool.pk, 30)
    assert answer.possible
    assert any("Never measured" in doubt for doubt in answer.doubts)


def test_without_a_run_sizing_says_that_nothing_was_measured(acme: Actor, globex: Actor, pool: Pool) -> None:
    assert "Nothing was measured yet" in sizing.sizing(acme, pool.pk, 30).sentence
    with pytest.raises(NotFound):
        sizing.sizing(globex, pool.pk, 30)


def test_uneven_servers_are_found_in_the_samples(acme: Actor, globex: Actor, pool: Pool) -> None:
    servers = list(Server.objects.filter(backend__pool=pool, backend__region__name="us-central1").order_by("name"))
    node = Node.objects.order_by("pk")[0]
    at = now() - timedelta(minutes=2)
    for server, requests in zip(servers, (900, 50, 50), strict=True):
        Sample.objects.create(
            at=at, resolution=SHORT, node=node, kind="server", object_id=f"srv-{server.pk}", requests=requests
        )
    found = {each.region: each for each in balance.balance(acme, pool.pk)}
    assert found["us-central1"].word == "uneven"
    before = balance.before_and_after(acme, pool.pk, before=now() - timedelta(minutes=9), after=now(), minutes=9)
    assert "Too few requests" in before[0].sentence
    with pytest.raises(NotFound):
        balance.balance(globex, pool.pk)
