"""A trace says who wins, who was passed over and why, and leaks nothing of others."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.models import Hostname
from apps.definitions.models import Pool, Route, Server
from tests.interfaces.api.test_api_objects import ROUTE, Api, api, assert_problem, house

__all__ = ["api", "house"]


@pytest.fixture
def two_routes(api: Api, house: Api) -> None:
    """A whole host to the shop, and a part of it, for canaries, to a redirect."""
    headers = [{"name": "X-Canary", "match": "equals", "value": "yes"}]
    canary = ROUTE | {"path": "/api", "headers": headers, "action": {"redirect": {"code": 302, "path": "/canary"}}}
    for name, spec in (("whole", ROUTE), ("canary", canary)):
        assert house("POST", "routes", {"name": name, "account": "acme", "spec": spec}).status_code == 201


def ask(caller: Api, **question: Any) -> dict[str, Any]:
    """The one answer about a request."""
    answer = caller("POST", "trace", {"host": "new.acme.example", "scheme": "http"} | question)
    assert answer.status_code == 200, answer.content
    [found] = answer.json()["answers"]
    return dict(found)


def test_a_trace_says_which_route_wins_and_why_another_was_passed_over(api: Api, two_routes: None) -> None:
    found = ask(api, path="/api/v2?x=1")
    assert found["route"]["name"] == "acme/whole"
    assert found["pools"] == [{"pool": "acme/shop", "share": 1.0}]
    assert found["path"] == "/api/v2?x=1"
    [passed] = found["passed_over"]
    assert (passed["route"], passed["reason"]) == ("acme/canary", "header")
    assert {each["served_in"] for each in found["regions"]} == {"us-central1", "europe-west1"} & {
        each["region"] for each in found["regions"]
    }
    assert found["message"] == "It goes to pool acme/shop by route acme/whole."


def test_headers_decide_and_a_redirect_says_where_it_leads(api: Api, two_routes: None) -> None:
    found = ask(api, path="/api?a=b", headers={"x-canary": "yes"})
    assert (found["status"], found["location"]) == (302, "http://new.acme.example/canary?a=b")
    assert [(each["route"], each["reason"]) for each in found["passed_over"]] == [("acme/whole", "path")]


def test_a_trace_says_the_times_and_retries_that_hold(api: Api, house: Api, two_routes: None) -> None:
    [before] = ask(api, path="/")["times"]
    assert (before["pool"], before["response_ms"], before["tunnel_ms"]) == ("acme/shop", 30_000, None)
    assert (before["retries"], before["retried_after"]) == (3, ["connect", "no_answer"])
    Pool.objects.filter(account__name="acme", name="shop").update(retries={"attempts": 2, "budget_percent": 20})
    rules = {"timeouts": {"response_ms": 5000}, "retries": {"after_sending": False}}
    Route.objects.filter(name="whole").update(rules=rules)
    [after] = ask(api, path="/")["times"]
    assert (after["response_ms"], after["retries"], after["retried_after"]) == (5000, 2, ["connect"])
    assert after["retry_budget_percent"] == 20
    assert ask(api, path="/api", headers={"x-canary": "yes"})["times"] == []  # a redirect waits for nobody


def test_a_trace_leads_nowhere_that_overflow_may_not_go(api: Api, house: Api, two_routes: None) -> None:
    pool = Pool.objects.get(account__name="acme", name="shop")
    Server.objects.filter(backend__pool=pool, backend__region__name="us-central1").update(state="maintenance")
    where = {each["region"]: each["served_in"] for each in ask(api, path="/")["regions"]}
    assert where["us-central1"] == "europe-west1"
    Route.objects.filter(name="whole").update(rules={"overflow": {"mode": "never"}})
    assert {each["served_in"] for each in ask(api, path="/")["regions"] if each["region"] == "us-central1"} == {None}
    Route.objects.filter(name="whole").update(rules=None)
    Pool.objects.filter(pk=pool.pk).update(overflow_mode="never")
    assert {each["served_in"] for each in ask(api, path="/")["regions"] if each["region"] == "us-central1"} == {None}


def test_a_host_of_another_account_answers_exactly_as_one_that_nobody_has(api: Api, globex: Any) -> None:
    foreign = Route.objects.filter(account__name="globex").select_related("hostname").earliest("pk").hostname.name
    answers = [api("POST", "trace", {"host": host}).json() for host in (foreign, "nobody.example")]
    assert answers[0] == answers[1] == {"answers": [], "waits_for_verification": False}
    assert Api(globex)("POST", "trace", {"host": foreign}).json()["answers"]


def test_a_route_of_another_account_on_an_own_host_is_not_named(
    api: Api, house: Api, two_routes: None, globex: Any
) -> None:
    Route.objects.filter(name="whole").update(account=globex.account)
    found = ask(api, path="/")
    assert (found["route"], found["pools"], found["regions"]) == (None, [], [])
    assert "globex" not in str(found)
    assert ask(house, path="/")["route"]["name"] == "globex/whole"


def test_routes_of_a_name_without_verification_are_said_to_wait(api: Api) -> None:
    assert api("POST", "routes", {"name": "new", "spec": ROUTE}).status_code == 201
    Hostname.objects.filter(name="new.acme.example").update(verification="")
    assert api("POST", "trace", {"host": "new.acme.example"}).json() == {"answers": [], "waits_for_verification": True}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/host"),
        ({"host": "a b"}, "/host"),
        ({"host": "a.example", "path": "x"}, "/path"),
        ({"host": "a.example", "path": "/\n"}, "/path"),
        ({"host": "a.example", "method": "GO AWAY"}, "/method"),
        ({"host": "a.example", "scheme": "tcp"}, "/scheme"),
        ({"host": "a.example", "headers": {"X": "\r\n"}}, "/headers"),
        ({"host": "a.example", "headers": []}, "/headers"),
        ({"host": "a.example", "more": 1}, "/more"),
    ],
)
def test_a_question_that_is_none_is_refused_by_its_field(api: Api, body: Any, pointer: str) -> None:
    field_errors = assert_problem(api("POST", "trace", body), 422)["errors"]
    assert [field_error["pointer"] for field_error in field_errors] == [pointer]


def test_a_scheme_that_nothing_listens_for_is_said_to_never_arrive(api: Api, two_routes: None) -> None:
    found = ask(api, scheme="https")
    assert found["listener"] is None
    assert "no https listener, so the request never arrives. With a listener, it goes to" in found["message"]
