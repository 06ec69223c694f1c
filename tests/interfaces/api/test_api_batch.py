"""Many objects in one call, all or none, or each with an answer of its own."""

from __future__ import annotations

from typing import Any

import pytest

from apps.audit.models import Entry
from apps.definitions.models import Route
from apps.fleet.models import Fleet
from tests.interfaces.api.test_api_objects import ROUTE, Api, api, assert_problem, house

__all__ = ["api", "house"]


def create(name: str, **fields: Any) -> dict[str, Any]:
    """An item that makes a route below /<name>."""
    return {"action": "create", "name": name, "spec": ROUTE | {"path": f"/{name}"} | fields}


@pytest.mark.both_engines
def test_a_batch_creates_updates_and_deletes_in_one_transaction(api: Api) -> None:
    shop = api("GET", "routes/acme/shop").json()
    before = Fleet.objects.earliest("pk").desired_generation
    items = [
        create("one"),
        {"action": "update", "id": shop["id"], "version": shop["version"], "spec": shop["spec"] | {"methods": ["GET"]}},
        {"action": "delete", "name": "old-shop"},
    ]
    done = api("POST", "routes:batch", {"items": items}, X_Change_Reason="spring").json()
    assert [each["status"] for each in done["results"]] == [201, 200, 204]
    assert done["results"][1]["etag"] == f'"rev-{shop["version"] + 1}"'
    assert api("GET", done["results"][0]["url"].removeprefix("/api/v1/")).json()["name"] == "one"
    assert Fleet.objects.earliest("pk").desired_generation == before + 1
    assert list(Entry.objects.order_by("-pk").values_list("reason", flat=True)[:3]) == ["spring"] * 3


@pytest.mark.both_engines
def test_one_item_that_is_refused_refuses_an_atomic_batch_and_every_error_is_named(api: Api) -> None:
    items = [
        create("one"),
        create("two", path="no"),
        {"action": "delete", "id": 10**9},
        create("shop"),
        {"action": "update", "name": "shop", "version": 99, "spec": ROUTE},
    ]
    errors = assert_problem(api("POST", "routes:batch", {"items": items}), 422)["errors"]
    assert [error["pointer"] for error in errors] == ["/items/1/spec/path", "/items/2", "/items/3", "/items/4"]
    assert [error["code"] for error in errors][1:] == ["not_found", "conflict", "stale"]
    assert not Route.objects.filter(name="one").exists()


@pytest.mark.both_engines
def test_a_partial_batch_does_what_can_be_done_and_says_the_rest(api: Api, globex: Any) -> None:
    foreign = Api(globex)("GET", "routes").json()["items"][0]["id"]
    items = [
        create("one"),
        create("two", path="no"),
        {"action": "delete", "id": foreign},
        {"action": "delete", "id": 10**9},
        {"action": "update", "name": "shop", "version": 99, "spec": ROUTE},
        {"action": "delete", "name": "shop", "account": "globex"},
    ]
    results = api("POST", "routes:batch?atomic=false", {"items": items}).json()["results"]
    assert [each["status"] for each in results] == [201, 422, 404, 404, 412, 404]
    assert results[2] == results[3] == results[5]
    assert results[4]["etag"] == api("GET", "routes/acme/shop")["ETag"]
    assert Route.objects.filter(name="one").exists()
    assert Route.objects.filter(pk=foreign).exists()


def test_a_dry_run_of_a_batch_stores_nothing(api: Api) -> None:
    shown = api("POST", "routes:batch?dry_run=true", {"items": [create("one"), create("two")]}).json()
    assert (shown["stored"], shown["counts"]["create"]) == (False, 2)
    assert not Route.objects.filter(name="one").exists()


@pytest.mark.parametrize(
    ("item", "pointer"),
    [
        ({}, "/items/0/action"),
        ({"action": "explode", "name": "x", "spec": {}}, "/items/0/action"),
        ({"action": "create", "spec": {}}, "/items/0"),
        ({"action": "update", "id": 1, "name": "x", "spec": {}}, "/items/0"),
        ({"action": "create", "id": 1, "spec": {}}, "/items/0"),
        ({"action": "delete", "name": "x", "spec": {}}, "/items/0/spec"),
        ({"action": "delete", "id": True}, "/items/0/id"),
        ({"action": "delete", "name": "x", "more": 1}, "/items/0/more"),
    ],
)
def test_an_item_that_is_none_is_refused_by_its_field(api: Api, item: dict[str, Any], pointer: str) -> None:
    for url in ("routes:batch", "routes:batch?atomic=false"):
        field_errors = assert_problem(api("POST", url, {"items": [item]}), 422)["errors"]
        assert pointer in [field_error["pointer"] for field_error in field_errors]


def test_a_batch_has_1_to_1000_items(api: Api) -> None:
    wrong: list[Any] = [[], [{}] * 1001, None, {}]
    for items in wrong:
        assert assert_problem(api("POST", "pools:batch", {"items": items}), 422)["errors"][0]["pointer"] == "/items"


def test_a_token_without_the_scope_writes_no_batch(api: Api, acme: Any) -> None:
    from apps.accounts.models import ApiToken

    ApiToken.objects.update(scopes=["pools:write"])
    assert_problem(api("POST", "routes:batch", {"items": [create("one")]}), 403)
