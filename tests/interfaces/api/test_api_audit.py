"""The audit log in the API."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from tests.interfaces.api.test_api_objects import Api, assert_problem


@pytest.fixture
def api(tutorial_env: Actor, acme: Actor) -> Api:
    """Acme's program."""
    return Api(acme)


def test_a_change_is_an_entry_with_its_reason_token_request_and_version(api: Api) -> None:
    spec = api("GET", "routes/acme/shop").json()["spec"] | {"methods": ["GET"]}
    answer = api("PUT", "routes/acme/shop", {"spec": spec}, If_Match="*", X_Change_Reason="only reads")
    (entry,) = api("GET", "audit-entries?limit=1").json()["items"]
    assert (entry["kind"], entry["action"], entry["object"], entry["version"]) == ("Route", "update", "acme/shop", 2)
    assert (entry["reason"], entry["request_id"]) == ("only reads", answer["X-Request-ID"])
    assert len(entry["token"]) == 12
    assert (entry["before"]["methods"], entry["after"]["methods"]) == ([], ["GET"])
    assert api("GET", f"audit-entries/{entry['id']}").json() == entry


def test_a_foreign_entry_answers_as_a_missing_one(api: Api, tutorial_env: Actor) -> None:
    foreign = Entry.objects.filter(account__name="globex").earliest("id").pk
    answers = [api("GET", f"audit-entries/{pk}") for pk in (foreign, 10**6)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert {item["account"] for item in api("GET", "audit-entries").json()["items"]} == {"acme"}
    everybody = {item["account"] for item in Api(tutorial_env)("GET", "audit-entries").json()["items"]}
    assert everybody == {"operator", "acme", "globex"}


def test_lists_go_on_newest_first_and_narrow_by_the_filters_of_the_page(api: Api) -> None:
    first = api("GET", "audit-entries?limit=2").json()
    rest = api("GET", f"audit-entries?limit=500&cursor={first['next_cursor']}").json()
    ids = [item["id"] for item in first["items"] + rest["items"]]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == Entry.objects.filter(account__name="acme").count()
    kinds = {item["kind"] for item in api("GET", "audit-entries?kind=Route&q=SHOP").json()["items"]}
    assert kinds == {"Route"}


@pytest.mark.parametrize(
    ("query", "pointer"),
    [("since=x", "/since"), ("colour=red", "/colour"), ("limit=0", "/limit"), ("q=%00", "/q"), ("cursor=x", "/cursor")]
    + [(f"since=0001-01-01T00:00:00%2B{zone}", "/since") for zone in ("00:00", "14:00")]
    + [("until=9999-12-31T23:59:59-14:00", "/until")],
)
def test_a_wrong_parameter_is_refused_by_name(api: Api, query: str, pointer: str) -> None:
    assert assert_problem(api("GET", f"audit-entries?{query}"), 422)["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nobody_writes_the_record_from_outside(api: Api, method: str) -> None:
    pk = Entry.objects.earliest("id").pk
    assert_problem(api(method, f"audit-entries/{pk}", {}), 405)
