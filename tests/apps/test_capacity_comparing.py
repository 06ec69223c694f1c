"""Comparisons go A B A B run by run, sizing and balance read what is stored; foreign pools do not exist."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.accounts.actors import Actor
from apps.capacity import selectors
from apps.capacity.measure import comparisons
from apps.capacity.models import Comparison, Run
from apps.capacity.use import balance, before_after, sizing, staleness
from apps.core.clock import now
from apps.core.errors import Forbidden, Invalid, NotFound
from apps.definitions.models import CapacityTest, Pool, Server
from apps.definitions.services import delete_object
from apps.fleet.models import Region
from tests.interfaces.capacity_env import make_run, make_test, make_work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("tutorial_env")]


@pytest.fixture
def pool(acme: Actor) -> Pool:
    return Pool.objects.filter(account=acme.account).order_by("pk")[0]


@pytest.fixture
def tests(pool: Pool) -> tuple[CapacityTest, CapacityTest]:
    return make_test(pool, name="first"), make_test(pool, name="second")


def end_open_run(comparison: Comparison, p95: float, state: str = "done") -> Run:
    """The run that the comparison waits for ends with this p95."""
    run = Run.objects.filter(comparison=comparison).latest("pk")
    knee = {"answered": 15.0, "p50_ms": 390.0, "p95_ms": p95, "p99_ms": p95 * 1.1, "error_rate": 0.0}
    run.state, run.result, run.ended_at = state, {"capacity": 15.0, "knee": knee}, now()
    run.message = "It broke off." if state != "done" else ""
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
    assert "second is 12.0 % slower at p95" in made.result["message"]


def test_runs_stay_when_a_test_goes_and_takes_its_comparisons_along(
    acme: Actor, tests: tuple[CapacityTest, CapacityTest]
) -> None:
    made = comparisons.request_comparison(actor=acme, first_id=tests[0].pk, second_id=tests[1].pk)
    run = end_open_run(made, 500)
    delete_object(actor=acme, kind="CapacityTest", name="first")
    assert not Comparison.objects.exists()
    run.refresh_from_db()
    assert (run.test, run.comparison, run.result is not None) == (None, None, True)


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
    assert "stopped. It broke off." in made.result["message"]
    assert Run.objects.filter(comparison=made).count() == 1


def test_the_same_test_twice_and_one_round_are_refused(acme: Actor, tests: tuple[CapacityTest, CapacityTest]) -> None:
    with pytest.raises(Invalid) as caught:
        comparisons.request_comparison(actor=acme, first_id=tests[0].pk, second_id=tests[0].pk, rounds=1)
    assert [field_error.pointer for field_error in caught.value.field_errors] == ["/second", "/rounds"]


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
    assert any("Not measured" in doubt for doubt in answer.doubts)


def test_servers_that_were_out_during_a_run_have_no_part_in_what_it_found(acme: Actor, pool: Pool) -> None:
    servers = Server.objects.filter(backend__pool=pool, backend__region__name="us-central1").order_by("name")
    Server.objects.filter(pk=servers[0].pk).update(state="maintenance")
    run, build = make_run(make_test(pool)), staleness.build_of(pool, Region.objects.get(name="us-central1"))
    Run.objects.filter(pk=run.pk).update(result=(run.result or {}) | {"kind": "search", "capacity": 30, "build": build})
    ready = servers.filter(state="ready").count()
    here = next(each for each in sizing.measurements_of(pool) if each.region == "us-central1")
    assert (here.servers, here.per_server) == (ready, 30 / ready)
    build["servers"] |= {"gone": "10.0.0.9:80, weight 100, drain", "none": "10.0.0.8:80, weight 0, ready"}
    assert staleness.servers_at_work(build) == ready
    servers.filter(pk=servers[1].pk).update(backup=True)
    (here,) = [each for each in sizing.measurements_of(pool) if each.region == "us-central1"]
    spared = staleness.build_of(pool, Region.objects.get(name="us-central1"))
    assert (here.servers, staleness.servers_at_work(spared)) == (ready - 1, ready - 1)
    servers.filter(pk=servers[1].pk).update(backup=False, leaving=True)
    (here,) = [each for each in sizing.measurements_of(pool) if each.region == "us-central1"]
    left = staleness.build_of(pool, Region.objects.get(name="us-central1"))
    assert (here.servers, staleness.servers_at_work(left)) == (ready - 1, ready - 1), "nodes drain what its source ends"


def test_without_a_run_sizing_says_that_nothing_was_measured(acme: Actor, globex: Actor, pool: Pool) -> None:
    assert "There is no measured capacity yet" in sizing.sizing(acme, pool.pk, 30).message
    with pytest.raises(NotFound):
        sizing.sizing(globex, pool.pk, 30)


def test_uneven_servers_are_found_in_the_samples(acme: Actor, globex: Actor, pool: Pool) -> None:
    make_work(pool, now() - timedelta(minutes=2), 900, 50, 50)
    found = {each.region: each for each in balance.balance(acme, pool.pk)}
    assert found["us-central1"].status == "uneven"
    with pytest.raises(NotFound):
        balance.balance(globex, pool.pk)


def test_two_times_are_compared_by_rate_errors_latency_servers_cost_and_share(
    acme: Actor, globex: Actor, pool: Pool
) -> None:
    change = now() - timedelta(minutes=20)
    for seconds in range(30, 150, 10):
        make_work(pool, change - timedelta(seconds=seconds), 100, 100, 0, errors=10, slow=20)
        make_work(pool, now() - timedelta(seconds=seconds), 100, 100, 100)
    end = now()
    whole, *regions = before_after.before_and_after(acme, pool.pk, before=change, after=end, cost_per_server=50)
    before, after = whole.before, whole.after
    assert (before.requests_rps, after.requests_rps) == (20, 30)
    assert (before.error_rate, after.error_rate) == (0.05, 0)
    assert before.p95_ms is not None
    assert after.p95_ms is not None
    assert 200 < before.p95_ms <= 400
    assert after.p95_ms <= 50
    assert (before.servers, after.servers, before.cost, after.cost) == (2, 3, 100, 150)
    here = next(each for each in regions if each.where == "us-central1")
    assert (here.before.requests_rps, here.after.requests_rps, here.before.servers) == (20, 30, 2)
    assert here.message == "It went from uneven to even: busiest against idlest no end before, 1.0 after."
    with pytest.raises(NotFound):
        before_after.before_and_after(globex, pool.pk, before=change, after=end)


def test_a_server_that_is_gone_since_counts_for_the_whole_pool(acme: Actor, pool: Pool) -> None:
    change = now() - timedelta(minutes=20)
    make_work(pool, change - timedelta(seconds=30), 100, 100, 100)
    Server.objects.filter(backend__pool=pool, backend__region__name="us-central1").order_by("name")[0].delete()
    make_work(pool, now() - timedelta(seconds=30), 150, 150)
    whole, *regions = before_after.before_and_after(acme, pool.pk, before=change, after=now())
    here = next(each for each in regions if each.where == "us-central1")
    assert (whole.before.servers, whole.after.servers) == (3, 2)
    assert (here.before.servers, here.after.servers) == (2, 2)


def test_a_time_in_which_nobody_looked_is_not_a_time_without_requests(acme: Actor, pool: Pool) -> None:
    make_work(pool, now() - timedelta(seconds=30), 100, 100, 100)
    found = before_after.before_and_after(acme, pool.pk, before=now() - timedelta(minutes=20), after=now())
    assert {each.message for each in found} == {"There is no data for one of the two periods."}
    assert found[0].before.requests_rps is None
    assert found[0].after.requests_rps == 30
