"""The pages of capacity tests: what they show, who may do what, and that nothing is invented."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.capacity.measure.history import since_last
from apps.capacity.models import Comparison, Run, Second
from apps.core.clock import now
from apps.definitions.models import CapacityTest, Pool
from tests.interfaces.capacity_env import make_run, make_test, result_of_steps
from tests.interfaces.people import client_of

PLAN = {
    "/name": "shop-evening",
    "/account": "acme",
    "/spec/target/pool": "shop",
    "/spec/target/region": "us-central1",
    "/spec/target/hostname": "shop.acme.example",
    "/spec/target/path": "/",
    "/spec/load/kind": "search",
    "/spec/load/rate": "10",
    "/spec/load/users": "7",
    "/spec/load/arrivals": "constant",
    "/spec/load/method": "GET",
    "/spec/load/keep_alive": "on",
    "/spec/objective/percentile": "95",
    "/spec/objective/max_latency_ms": "600",
    "/spec/objective/max_error_rate": "1",
    "/spec/guards/max_rate": "40",
    "/spec/guards/max_connections": "100",
    "/spec/guards/max_duration_s": "240",
    "/spec/guards/headroom": "50",
    "/spec/policy/apply": "by_hand",
    "/spec/policy/margin": "10",
    "/spec/policy/max_change": "20",
}


@pytest.fixture
def shop_test(tutorial_env: Actor) -> CapacityTest:
    """A test of the tutorial's shop; the environment has none before."""
    CapacityTest.objects.all().delete()
    return make_test(Pool.objects.get(name="shop"))


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def test_without_tests_the_list_says_what_to_do_next(operator: Actor) -> None:
    assert "Create test" in text(client_of(operator), "/capacity-tests")
    assert "An editor of your account" in text(client_of(operator, Membership.Role.VIEWER), "/capacity-tests")


def test_the_list_shows_the_last_number_with_its_confidence_and_the_run_of_now(
    shop_test: CapacityTest, tutorial_env: Actor
) -> None:
    make_run(shop_test, ago=timedelta(days=2), result=result_of_steps(shop_test, 9.0), ended_at=now())
    make_run(shop_test)
    make_run(shop_test, steps=2, state="running")
    page = text(client_of(tutorial_env), "/capacity-tests")
    assert "<strong>15</strong>/s" in page
    assert "95 % sure: between 14.8 and 15.6" in page
    assert "Running" in page


def test_a_test_that_found_nothing_shows_no_number(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    make_run(shop_test, steps=0, state="refused", message="us-central1 is drained.")
    assert "not measured yet" in text(client_of(tutorial_env), "/capacity-tests")
    page = text(client_of(tutorial_env), f"/capacity-tests/{shop_test.pk}")
    assert "us-central1 is drained." in page
    assert "Pre-flight checks" in page


def test_a_run_that_could_not_tell_is_inconclusive_offers_another_and_no_limit(
    shop_test: CapacityTest, tutorial_env: Actor
) -> None:
    known = result_of_steps(shop_test) | {"capacity": None, "low": 12.0, "high": 15.4, "limited_by": "overload"}
    run = make_run(shop_test, result=known | {"met": None, "confirmed": False}, ended_at=now())
    client = client_of(tutorial_env)
    page = text(client, f"/capacity-runs/{run.pk}")
    assert "Inconclusive" in page
    assert "Run again" in page
    assert "at least 12/s, below 15.4/s, not confirmed" in page
    assert "Preview change" not in page
    assert "last run inconclusive" in text(client, "/capacity-tests")
    sure = make_run(shop_test)  # control: a run that found a number
    page = text(client, f"/capacity-runs/{sure.pk}")
    assert "Inconclusive" not in page
    assert "Preview change" in page
    assert "last run inconclusive" not in text(client, "/capacity-tests")


def test_a_filter_that_finds_nothing_can_be_cleared(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    assert "Clear the filter" in text(client, "/capacity-tests?q=nothing")
    assert shop_test.name in text(client, "/capacity-tests?q=us-central1")


def test_a_plan_is_stored_as_it_was_typed_and_numbers_of_other_loads_are_left_out(tutorial_env: Actor) -> None:
    answer = client_of(tutorial_env).post("/capacity-tests/new", PLAN)
    assert answer.status_code == 302, answer.content.decode()
    test = CapacityTest.objects.get(name="shop-evening")
    assert (test.load["rate"], test.load["users"]) == (10, 0)
    assert (test.objective["max_error_rate"], test.guards["headroom"], test.policy["margin"]) == (0.01, 0.5, 0.1)


def test_a_refused_plan_keeps_what_was_typed_and_says_it_at_the_field(tutorial_env: Actor) -> None:
    answer = client_of(tutorial_env).post("/capacity-tests/new", PLAN | {"/spec/load/rate": "50"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Stay within guards.max_rate" in page
    assert 'value="50"' in page
    assert not CapacityTest.objects.filter(name="shop-evening").exists()


@pytest.mark.parametrize("odd", ["nan", "inf", "ten", "1e999"])
def test_what_is_no_number_is_refused_in_words(tutorial_env: Actor, odd: str) -> None:
    answer = client_of(tutorial_env).post("/capacity-tests/new", PLAN | {"/spec/guards/max_rate": odd})
    assert answer.status_code == 422


def test_the_form_says_what_would_happen_before_anything_is_stored(tutorial_env: Actor) -> None:
    client, there = client_of(tutorial_env), CapacityTest.objects.count()
    page = client.post("/capacity-tests/check", PLAN).content.decode()
    assert "Never more than 40 requests/s or 100 connections, at most 4 min." in page
    assert "capacity for 50 %" in page
    assert CapacityTest.objects.count() == there


def test_a_stored_test_is_edited_from_its_form(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    path = f"/capacity-tests/{shop_test.pk}/edit"
    assert 'value="240"' in text(client, path)
    sent = PLAN | {"version": str(shop_test.version), "/spec/guards/max_duration_s": "60"}
    assert client.post(path, sent).status_code == 302
    shop_test.refresh_from_db()
    assert shop_test.guards["max_duration_s"] == 60
    assert client.post(path, sent).status_code == 422  # an older version than the stored one


def test_a_run_that_goes_on_has_its_numbers_its_abort_conditions_and_the_stop_button(
    shop_test: CapacityTest, tutorial_env: Actor
) -> None:
    run = make_run(shop_test, steps=6, state="running", phase="Closing in at 18 requests/s.")
    page = text(client_of(tutorial_env), f"/capacity-runs/{run.pk}")
    assert "Closing in at 18 requests/s. 12 met the objective and 18 did not" in page
    assert f'action="/capacity-runs/{run.pk}/stop"' in page
    assert "<title>Running: run" in page
    part = text(client_of(tutorial_env), f"/capacity-runs/{run.pk}?partial=body")
    assert "<title>Running 18/s: run" in part
    assert "<html" not in part


@pytest.mark.parametrize(("kind", "watched"), [("constant", True), ("soak", True), ("search", False), ("ramp", False)])
def test_slowness_is_shown_as_an_abort_condition_only_where_it_is_one(
    shop_test: CapacityTest, tutorial_env: Actor, kind: str, watched: bool
) -> None:
    run = make_run(shop_test, steps=6, state="running")
    run.plan["load"]["kind"] = kind
    run.save()
    page = text(client_of(tutorial_env), f"/capacity-runs/{run.pk}")
    assert ("stops above 1,176 ms for 10 s" in page) is watched
    assert ("not an abort condition during a search: the objective ends each step" in page) is not watched


def test_slowness_is_compared_with_the_first_seconds_however_long_the_run(
    shop_test: CapacityTest, tutorial_env: Actor
) -> None:
    run = make_run(shop_test, steps=1, state="running")
    run.plan["load"]["kind"] = "soak"
    run.save()
    run.seconds.all().delete()
    told = {"target": 9, "offered": 9, "answered": 9, "errors": 0, "in_flight": 1}
    times = ((at, 100.0 if at < 20 else 250.0) for at in range(300))
    Second.objects.bulk_create(
        Second(run=run, at=now() + timedelta(seconds=at - 300), p95_ms=p95, **told) for at, p95 in times
    )
    assert "p95 250 ms; stops above 300 ms for 10 s" in text(client_of(tutorial_env), f"/capacity-runs/{run.pk}")


def test_old_seconds_are_shown_with_their_age(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    run = make_run(shop_test, steps=3, state="running", ago=timedelta(seconds=40))
    assert "s old" in text(client_of(tutorial_env), f"/capacity-runs/{run.pk}")


@pytest.mark.parametrize("role", [Membership.Role.VIEWER, Membership.Role.EDITOR])
def test_everybody_who_sees_a_run_may_stop_it(shop_test: CapacityTest, acme: Actor, role: str) -> None:
    run = make_run(shop_test, steps=2, state="running")
    client = client_of(acme, role)
    assert "Stop test" in text(client, f"/capacity-runs/{run.pk}")
    assert client.post(f"/capacity-runs/{run.pk}/stop").status_code == 302
    run.refresh_from_db()
    assert run.stopped_by == f"{role}-of-acme"
    assert "Stopping…" in text(client, f"/capacity-runs/{run.pk}")


def test_runs_of_others_do_not_exist(shop_test: CapacityTest, globex: Actor) -> None:
    run = make_run(shop_test)
    client = client_of(globex)
    for path in (f"/capacity-tests/{shop_test.pk}", f"/capacity-runs/{run.pk}", f"/capacity-runs/{run.pk}/export.csv"):
        assert client.get(path).status_code == 404
    assert client.post(f"/capacity-runs/{run.pk}/stop").status_code == 404
    assert shop_test.name not in text(client, "/capacity-tests")


def test_a_viewer_can_neither_start_nor_set_a_limit(shop_test: CapacityTest, acme: Actor) -> None:
    run, client = make_run(shop_test), client_of(acme, Membership.Role.VIEWER)
    assert client.post(f"/capacity-tests/{shop_test.pk}/run").status_code == 403
    assert client.post(f"/capacity-runs/{run.pk}/limit", {"margin": "10"}).status_code == 403
    assert "Set limit" not in text(client, f"/capacity-runs/{run.pk}")
    assert "Run now" not in text(client, f"/capacity-tests/{shop_test.pk}")


def test_the_result_shows_the_capacity_its_curve_and_the_change_of_the_limit(
    shop_test: CapacityTest, tutorial_env: Actor
) -> None:
    make_run(shop_test, ago=timedelta(days=1), result=result_of_steps(shop_test, 12.0), ended_at=now())
    run = make_run(shop_test)
    run.result = (run.result or {}) | {"since_last": since_last(run, run.result or {})}
    run.save()
    page = text(client_of(tutorial_env), f"/capacity-runs/{run.pk}")
    assert "95 % sure: between 14.8 and 15.6" in page
    assert "25.0 % more than run-" in page
    assert "capacity 15/s" in page
    assert "becomes 13 requests/s" in page
    assert "worked on 2 requests at once" in page


def test_a_margin_is_tried_before_the_limit_is_set(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    run, client = make_run(shop_test), client_of(tutorial_env)
    assert "becomes 7 requests/s" in text(client, f"/capacity-runs/{run.pk}/limit?margin=50")
    assert "range" not in text(client, f"/capacity-runs/{run.pk}/limit?margin=many")
    assert client.post(f"/capacity-runs/{run.pk}/limit", {"margin": "20"}).status_code == 302
    backend = shop_test.pool.backends.get(region=shop_test.region)
    assert (backend.limit_value, backend.limit_measured_by) == (12, run.name)
    assert "limit set" in text(client, f"/capacity-tests/{shop_test.pk}")


def test_a_refused_test_is_a_run_that_says_why(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    answer = client_of(tutorial_env).post(f"/capacity-tests/{shop_test.pk}/run")
    run = Run.objects.get()
    assert answer["Location"] == f"/capacity-runs/{run.pk}"
    assert run.state == Run.State.REFUSED
    assert run.message in client_of(tutorial_env).get(answer["Location"]).content.decode().replace("&#x27;", "'")


def test_the_numbers_can_be_taken_away(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    run, client = make_run(shop_test), client_of(tutorial_env)
    for ordinal, message in ((1, "=1+1"), (2, "\t=1+1")):
        run.steps.filter(ordinal=ordinal).update(message=message)
    answer = client.get(f"/capacity-runs/{run.pk}/export.csv")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert (len(rows), rows[0]["message"], rows[4]["status"]) == (9, "'=1+1", "bad")
    assert rows[1]["message"] == "'\\x09=1+1"
    found: dict[str, Any] = json.loads(client.get(f"/capacity-runs/{run.pk}/export.json").content)
    assert found["steps"][0]["histogram"]
    assert len(found["seconds"]) == run.seconds.count()


def test_a_test_is_deleted_once_its_name_was_typed_and_its_runs_stay(shop_test: CapacityTest, acme: Actor) -> None:
    run, client = make_run(shop_test), client_of(acme)
    client.post(f"/capacity-tests/{shop_test.pk}/delete", {"confirm": "other"})
    assert CapacityTest.objects.filter(pk=shop_test.pk).exists()
    client.post(f"/capacity-tests/{shop_test.pk}/delete", {"confirm": shop_test.name})
    assert not CapacityTest.objects.filter(pk=shop_test.pk).exists()
    assert f"Run {run.pk} of" in text(client, f"/capacity-runs/{run.pk}")


def test_two_runs_stand_side_by_side_with_a_plain_verdict(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    weak = make_run(shop_test, result=result_of_steps(shop_test, 9.0), ended_at=now())
    same = make_run(shop_test, result=result_of_steps(shop_test, 15.2), ended_at=now())
    run, client = make_run(shop_test), client_of(tutorial_env)
    assert "67 % more" in text(client, f"/capacity-runs/compare?run={weak.pk}&run={run.pk}")
    assert "No difference can be shown" in text(client, f"/capacity-runs/compare?run={same.pk}&run={run.pk}")


@pytest.mark.parametrize("query", ["", "run=1", "run=1&run=1", "run=1&run=x", "run=1&run=2&run=3"])
def test_anything_but_two_runs_is_sent_back(tutorial_env: Actor, query: str) -> None:
    assert client_of(tutorial_env).get(f"/capacity-runs/compare?{query}").status_code == 302


def test_a_run_of_others_cannot_be_compared(shop_test: CapacityTest, globex: Actor) -> None:
    runs = [make_run(shop_test) for _ in range(2)]
    path = f"/capacity-runs/compare?run={runs[0].pk}&run={runs[1].pk}"
    assert client_of(globex).get(path).status_code == 404


def test_two_tests_are_compared_in_turn(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    other = make_test(shop_test.pool, "europe-west1")
    client = client_of(tutorial_env)
    assert "Run comparison" in text(client, f"/capacity-tests/{shop_test.pk}")
    answer = client.post(f"/capacity-tests/{shop_test.pk}/compare", {"second": other.pk, "rounds": "2"})
    made = Comparison.objects.get()
    assert answer["Location"] == f"/capacity-comparisons/{made.pk}"
    assert "of 4 runs are finished" in text(client, answer["Location"])
    client.post(f"/capacity-tests/{shop_test.pk}/compare", {"second": other.pk, "rounds": "1"})
    assert Comparison.objects.count() == 1


def test_a_comparison_shows_what_differs_and_how_surely(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    slower = {"field": "p95_ms", "first": 541.0, "second": 606.0, "change": 0.12, "plus_minus": 0.031, "shown": True}
    result = {"message": "B is 12.0 % slower.", "differences": [slower | {"message": "B is 12.0 % slower at p95."}]}
    made = Comparison.objects.create(
        account=shop_test.account, first=shop_test, second=shop_test, actor="ada", result=result
    )
    page = text(client_of(tutorial_env), f"/capacity-comparisons/{made.pk}")
    for words in ("B is 12.0 % slower.", "541 ms", "+12.0 %", "± 3.1"):
        assert words in page


def test_sizing_says_how_many_servers_and_what_it_does_not_know(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    client, pool = client_of(tutorial_env), shop_test.pool_id
    unmeasured = text(client, f"/sizing?pool={pool}&rate=40")
    assert "There is no measured capacity yet" in unmeasured
    assert "No capacity has been measured yet." in unmeasured
    make_run(shop_test)
    page = text(client, f"/sizing?pool={pool}&rate=40&margin=10&n_minus_1=1&cost=100")
    assert "40 requests/s if any one region fails need" in page
    assert "assumes the capacity per server of us-central1" in page
    assert "Load distribution" in page
    for wrong in ("many", "1,5", "-1", "1e3", "1_0", "nan"):  # a comma stands between thousands
        assert "Enter a number" in text(client, f"/sizing?pool={pool}&rate={wrong}"), wrong
    assert text(client, f"/sizing?pool={pool}&rate=1,200").count("1,200 requests/s need") == 1
    assert "Choose a time in the last two days" in text(client, f"/sizing?pool={pool}&changed=2001-01-01T00:00")
    assert "Enter a time such as" in text(client, f"/sizing?pool={pool}&changed=yesterday")
    assert "Enter the time of the change" in text(client, f"/sizing?pool={pool}&then=2027-01-01T00:00")


def test_two_times_stand_side_by_side_and_the_second_comes_after_the_first(
    shop_test: CapacityTest, tutorial_env: Actor
) -> None:
    client, pool = client_of(tutorial_env), shop_test.pool_id
    changed, later = (f"{now() - timedelta(minutes=ago):%Y-%m-%dT%H:%M}" for ago in (40, 15))
    page = text(client, f"/sizing?pool={pool}&changed={changed}&then={later}&cost=20")
    for words in ("The whole pool", "Cost per month", "There is no data for one of the two periods."):
        assert words in page
    assert "minutes after the change and now" in text(client, f"/sizing?pool={pool}&changed={later}&then={changed}")
    assert "Cost per month" not in text(client, f"/sizing?pool={pool}&changed={changed}")


def test_pools_of_others_cannot_be_sized(shop_test: CapacityTest, globex: Actor) -> None:
    assert client_of(globex).get(f"/sizing?pool={shop_test.pool_id}").status_code == 404


def test_a_pool_and_its_region_show_what_was_measured(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    client, path = client_of(tutorial_env), f"/pools/{shop_test.pool_id}"
    assert "Create a capacity test" in text(client, path)
    run = make_run(shop_test)
    assert f'<a href="/capacity-runs/{run.pk}">15 requests/s</a>' in text(client, path)
    assert "15/s in 1 pool" in text(client, "/regions").replace("15.0", "15")
    assert "15 requests/s" in text(client, "/regions/us-central1") or "oldest" in text(client, "/regions/us-central1")


def test_the_first_page_and_the_palette_know_of_tests(shop_test: CapacityTest, tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    assert shop_test.name in text(client, f"/search?q={shop_test.name}")
    make_run(shop_test, steps=2, state="running", phase="Doubling.")
    assert "Doubling." in text(client, "/")
