"""Overflow now, then, predicted and what-if; customers see their own pools and nothing is saved."""

from __future__ import annotations

from typing import Any

import pytest

from apps.audit.models import Entry
from apps.observe.models import Sample
from tests.apps.observe_env import Env
from tests.apps.overflow_env import make_spilling
from tests.interfaces.api.test_api_objects import Api, assert_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(live_redis: object, still_clock: None) -> Env:
    """us is over its limit and sends 9.9/s to eu."""
    return make_spilling()


@pytest.fixture
def house(env: Env) -> Api:
    """The operator's program."""
    return Api(env.operator)


def test_a_pool_says_who_serves_whom_why_and_what_the_planner_says(env: Env, house: Api) -> None:
    body = house("GET", "pools/acme/acme-web/overflow").json()
    (lane,) = body["actual"]["lanes"]
    assert (lane["from"], lane["to"], lane["added_ms"], lane["reason"]) == ("us", "eu", 98, "rate")
    assert lane["rps"] == pytest.approx(9.9, abs=0.2)
    us = body["actual"]["regions"][1]
    assert us["capacity"]["rps"] == 10
    assert us["reasons"][0].startswith("us is at 10 of 10 requests/s since ")
    assert body["pool"] == "acme/acme-web"
    assert body["predicted"]["regions"][1]["demand_rps"] == pytest.approx(us["demand_rps"], abs=0.1)
    assert 0 <= body["prediction_error"] < 0.2
    assert house("GET", f"pools/{env.pools['acme'].pk}/overflow").json()["pool"] == "acme/acme-web"


def test_the_whole_and_a_time_in_the_past(env: Env, house: Api) -> None:
    assert house("GET", "overflow").json()["actual"]["lanes"]
    at = Sample.objects.filter(kind="flow").earliest("at").at
    for text in (f"{at.timestamp():.0f}", at.isoformat().replace("+00:00", "Z")):
        body = house("GET", f"overflow?at={text}").json()
        assert body["actual"]["at"] == at.isoformat().replace("+00:00", "Z")
        assert body["actual"]["lanes"]
        assert "predicted" not in body  # nobody asked the planner then


@pytest.mark.parametrize("at", ["yesterday", "1", "99999999999999999999", "2099-01-01T00:00:00Z"])
def test_a_time_that_cannot_be_known_is_refused(house: Api, at: str) -> None:
    assert_problem(house("GET", f"overflow?at={at}"), 422)


def test_customers_see_their_own_pools_alone(env: Env) -> None:
    acme, globex = Api(env.acme), Api(env.globex)
    assert acme("GET", "pools/acme/acme-web/overflow").json()["actual"]["lanes"]
    assert_problem(globex("GET", "pools/acme/acme-web/overflow"), 404)
    assert_problem(globex("GET", f"pools/{env.pools['acme'].pk}/overflow"), 404)
    assert_problem(globex("POST", "overflow/what-if", {"pool": "acme/acme-web"}), 404)
    assert globex("GET", "overflow").json()["actual"]["lanes"] == []
    assert acme("GET", "overflow").json()["actual"]["lanes"]


def test_what_if_answers_and_saves_nothing(env: Env, house: Api) -> None:
    question = {"pool": "acme/acme-web", "factor": 1.5, "drained_regions": ["us"], "limits": {"eu": 100}}
    body = house("POST", "overflow/what-if", question).json()
    eu, us = body["predicted"]["regions"]
    assert us["served_rps"] == 0
    assert eu["served_rps"] == pytest.approx(1.5 * sum(r["demand_rps"] for r in body["current"]["regions"]), rel=0.01)
    assert eu["capacity"]["rps"] == 100
    assert body["differences"]
    assert not Entry.objects.exists()


NO_QUESTIONS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"failed_regions": ["mars"]}, "/failed_regions/0"),
    ({"drained_regions": "us"}, "/drained_regions"),
    ({"factor": -1}, "/factor"),
    ({"factor": True}, "/factor"),
    ({"limits": {"us": "many"}}, "/limits/us"),
    ({"limits": {"us": 5}}, "/limits"),  # of no pool
    ({"limits": []}, "/limits"),
    ({"pool": 3}, "/pool"),
    ({"tomorrow": 1}, "/tomorrow"),
)


def test_a_question_that_makes_no_sense_is_refused_at_its_pointer(house: Api) -> None:
    for question, pointer in NO_QUESTIONS:
        problem = assert_problem(house("POST", "overflow/what-if", question), 422)
        assert pointer in [field_error["pointer"] for field_error in problem["errors"]], question


def test_without_a_token_there_is_no_answer(env: Env, client: Any) -> None:
    assert client.get("/api/v1/overflow").status_code == 401


def test_a_plan_warns_of_a_region_that_would_be_over_its_limit(env: Env, house: Api) -> None:
    limit = "pools/acme/acme-web/limits/us"
    refused = house("PATCH", f"{limit}?refuse_overload=true", {"value": 4}, If_Match="*")
    assert_problem(refused, 409)
    assert "eu would be at" in refused.json()["detail"]
    assert house("GET", limit).json()["limit"]["value"] == 10
    assert house("PATCH", limit, {"value": 4}, If_Match="*").status_code == 200
    region = {"kind": "Region", "name": "us", "spec": {"title": "US", "drained": True}}
    plan = house("PUT", "apply?dry_run=plan", {"objects": [region]}).json()
    assert any("eu would be at" in warning for warning in plan["warnings"]), plan
    assert_problem(house("PUT", "apply?refuse_overload=true", {"objects": [region]}), 409)
