"""Grants are objects like others, of operators; what they share is read and not written."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.models import Pool
from tests.apps.test_grant_services import SPEC, to_pool
from tests.interfaces.api.test_api_objects import Api, api, assert_problem, house

__all__ = ["api", "house"]
GRANT = {"account": "acme", "tag": "customer=acme"}


@pytest.fixture
def shared(house: Api) -> dict[str, Any]:
    """A pool of the operator, as the API shows it, and the grant that shares it."""
    tagged = SPEC | {"tags": {"customer": "acme", "other": "globex"}}
    pool: dict[str, Any] = house("POST", "pools", {"name": "search", "spec": tagged}).json()
    assert house("POST", "grants", {"name": "for-acme", "spec": GRANT}).status_code == 201
    return pool


def test_an_operator_makes_reads_changes_and_deletes_a_grant_by_its_version(house: Api) -> None:
    made = house("PUT", "grants/for-acme", {"spec": GRANT}, If_None_Match="*")
    assert (made.status_code, made["ETag"]) == (201, '"rev-1"')
    assert made.json()["spec"] == GRANT | {"hostname": None, "may_load_test": True, "expires_at": None}
    assert_problem(house("PUT", "grants/for-acme", {"spec": GRANT}), 428)
    assert_problem(house("PUT", "grants/for-acme", {"spec": GRANT}, If_Match='"rev-9"'), 412)
    changed = house("PATCH", "grants/for-acme", {"spec": {"may_load_test": False}}, If_Match='"rev-1"')
    assert (changed.status_code, changed.json()["spec"]["may_load_test"]) == (200, False)
    assert house("DELETE", "grants/for-acme", If_Match=changed["ETag"]).status_code == 204
    assert_problem(house("GET", "grants/for-acme"), 404)


def test_customers_read_what_is_granted_to_them_and_change_none(api: Api, shared: Any, globex: Actor) -> None:
    items = api("GET", "grants").json()["items"]
    assert [item["spec"]["tag"] for item in items] == ["customer=acme"]
    assert Api(globex)("GET", "grants").json()["items"] == []
    assert_problem(Api(globex)("GET", f"grants/{items[0]['id']}"), 404)
    own = GRANT | {"hostname": "victim.example", "tag": None}
    assert_problem(api("POST", "grants", {"name": "mine", "spec": own}), 403)
    assert_problem(api("PUT", "grants/for-acme", {"spec": own}, If_Match='"rev-1"'), 403)
    assert_problem(api("DELETE", "grants/for-acme", If_Match='"rev-1"'), 403)


def test_a_shared_pool_is_read_without_its_tags_and_written_by_its_owner_only(
    api: Api, house: Api, shared: dict[str, Any], globex: Actor
) -> None:
    url = f"pools/{shared['id']}"
    seen = api("GET", url).json()
    assert seen["spec"] == shared["spec"] | {"tags": {}}
    assert shared["spec"]["tags"] == house("GET", url).json()["spec"]["tags"] != {}
    assert_problem(Api(globex)("GET", url), 404)
    for method in ("PUT", "PATCH", "DELETE"):
        body = None if method == "DELETE" else {"spec": SPEC}
        assert_problem(api(method, url, body, If_Match='"rev-1"'), 403)
    limits = "pools/operator/search/limits/us-central1"
    assert_problem(api("PATCH", limits, {"value": 1}, If_Match='"rev-1"'), 404)
    assert Pool.objects.get(name="search").version == 1


def test_what_a_route_uses_is_taken_away_by_whoever_confirms_it(api: Api, house: Api, shared: dict[str, Any]) -> None:
    assert api("POST", "routes", {"name": "user", "spec": to_pool("operator/search")}).status_code == 201
    body = assert_problem(house("DELETE", "grants/for-acme", If_Match='"rev-1"'), 422)
    assert "1 route of 1 account would lose a shared pool" in body["detail"]
    assert "acme/user" in body["detail"]
    assert [each["code"] for each in body["errors"]] == ["would_empty"]
    without = {"spec": {"tags": None}}
    assert_problem(house("PATCH", f"pools/{shared['id']}", without, If_Match='"rev-1"'), 422)
    assert_problem(house("DELETE", "grants/for-acme?confirm=acme/other", If_Match='"rev-1"'), 422)
    assert house("DELETE", "grants/for-acme?confirm=acme/for-acme", If_Match='"rev-1"').status_code == 204


def test_errors_of_a_grant_name_their_fields(house: Api) -> None:
    spec = {"account": "nobody", "hostname": "A.example", "expires_at": "tomorrow", "more": 1}
    body = assert_problem(house("POST", "grants", {"name": "bad", "spec": spec}), 422)
    assert {field_error["pointer"] for field_error in body["errors"]} == {
        "/spec/hostname",
        "/spec/expires_at",
        "/spec/more",
    }
