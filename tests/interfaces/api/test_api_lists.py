"""Lists: every row once whatever is written meanwhile, nothing ignored, as many queries as before."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.api.v1.schemas.operations.core import OPERATIONS, query_names
from apps.api.v1.urls import urlpatterns
from apps.definitions.models import Pool, Route
from apps.definitions.services import delete_object, save_object
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import Api, api, assert_problem, house
from tests.interfaces.grown import SIZES, grow_routes, grown

__all__ = ["api", "grown", "house"]
LISTS = sorted(name.removesuffix("-list") for name, method in OPERATIONS if name.endswith("-list") and method == "GET")
LEDGER: dict[str, int] = json.loads((Path(__file__).parent / "query_ledger.json").read_text())


def pages(api: Api, url: str) -> list[dict[str, Any]]:
    """All rows, page by page along the links."""
    rows, following = [], url
    while following:
        answer = api("GET", following)
        assert answer.status_code == 200, answer.content
        rows += answer.json()["items"]
        assert ("Link" in answer) == (answer.json()["next_cursor"] is not None)
        following = answer.headers.get("Link", "").partition(">")[0].removeprefix("</api/v1/")
    return rows


@pytest.mark.both_engines  # they order texts differently
def test_a_list_in_pages_of_one_is_the_list(house: Api) -> None:
    for noun in LISTS:
        whole = house("GET", f"{noun}?limit=500").json()["items"]
        assert pages(house, f"{noun}?limit=1") == whole


@pytest.mark.both_engines  # they look into JSON differently
def test_nodes_are_listed_by_a_tag_whatever_its_key_is_called(house: Api) -> None:
    for name, tags in {"n-1": {"rack": "a1"}, "n-2": {"rack": "a2"}, "n-3": {"in": "a1", "2": "x"}}.items():
        spec = {"fleet": "us-central1", "url": f"unix:///{name}.sock", "tags": tags}
        assert house("PUT", f"nodes/{name}", {"spec": spec}).status_code == 201

    def found(tag: str) -> list[str]:
        return [row["name"] for row in house("GET", f"nodes?tag={tag}").json()["items"]]

    assert (found("rack=a1"), found("in=a1"), found("2=x"), found("rack=b")) == (["n-1"], ["n-3"], ["n-3"], [])
    refused = house("GET", "nodes?tag=rack")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/tag")


@pytest.mark.both_engines
def test_rows_that_come_and_go_move_no_others(api: Api, acme: Actor) -> None:
    grow_routes(12, acme)
    first = api("GET", "routes?limit=4").json()
    kept = {row["name"] for row in pages(api, "routes?limit=500")}
    gone = first["items"][0]["name"]
    delete_object(actor=acme, kind="Route", name=gone, expected_version=1)
    spec = first["items"][1]["spec"]
    save_object(actor=acme, kind="Route", name="early", spec=spec | {"path": "/0"})
    rest = pages(api, f"routes?limit=4&cursor={first['next_cursor']}")
    names = [row["name"] for row in first["items"] + rest]
    assert len(names) == len(set(names))
    assert kept <= set(names)


CURSORS = [
    "x",
    "%00",
    "%F0%9F%98%80",
    "a" * 10_000,
    *(
        base64.urlsafe_b64encode(text).decode().rstrip("=")
        for text in (
            b'["a","b",-1]',
            b'["a","b",99999999999999999999]',
            b'["a","b",true]',
            b'["a","\\u0000",1]',
            b'{"a":1}',
            b"[" * 1800,
        )
    ),
]


LIMITS = ["0", "501", "-1", "1.5", "", "a", "%D9%A1"]


def assert_refused(house: Api, noun: str, word: str, value: str) -> None:
    """The list refuses this value of a word of the query by its name."""
    body = assert_problem(house("GET", f"{noun}?{word}={value}"), 422)
    assert body["errors"][0]["pointer"] == f"/{word}", (noun, value)


@pytest.mark.both_engines  # what reaches the database as it is, PostgreSQL alone refuses
@pytest.mark.parametrize("nouns", [["routes", "audit-entries"], pytest.param(LISTS, marks=pytest.mark.exhaustive)])
def test_a_false_cursor_or_limit_is_refused_by_name(house: Api, nouns: list[str]) -> None:
    for noun in nouns:
        for cursor in CURSORS:
            assert_refused(house, noun, "cursor", cursor)
        for limit in LIMITS:
            assert_refused(house, noun, "limit", limit)


def test_every_list_reads_its_cursor_and_its_limit(house: Api) -> None:
    for noun in LISTS:
        assert_refused(house, noun, "cursor", CURSORS[-3])
        assert_refused(house, noun, "limit", "501")
        assert house("GET", f"{noun}?limit=500").status_code == 200


@pytest.mark.parametrize("each", [4, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_word_that_a_url_does_not_know_is_refused_with_those_that_it_knows(house: Api, each: int) -> None:
    for (name, method), operation in list(OPERATIONS.items())[::each]:
        if operation.public:
            continue
        body = assert_problem(house(method, f"{url_of(name)}?surely_not=1", {}, If_Match="*"), 422)
        assert body["errors"][0]["code"] == "unknown_parameter"
        assert all(word in body["detail"] for word in query_names(operation))


def url_of(name: str) -> str:
    """A URL with this name; whether its object exists does not matter."""
    arguments = {
        "pk": 1,
        "number": 1,
        "kind": "jsonl.gz",
        "delivery": 1,
        "plan": "0" * 32,
        "record": "0" * 32,
        "change": "0" * 16,
        "account": "acme",
        "name": "shop",
        "region": "us-central1",
        "server": "shop-9",
        "to": "us-central1",
    }
    pattern = next(each for each in urlpatterns if each.name == name)
    found = {key: arguments[key] for key in pattern.pattern.regex.groupindex}
    return reverse(f"api:{name}", kwargs=found).removeprefix("/api/v1/")


def test_the_nearest_word_is_named_and_unprintable_ones_are_not_repeated(api: Api) -> None:
    body = assert_problem(api("GET", "routes?hostnam=x&%1b%5b31m=y"), 422)
    assert [error["pointer"] for error in body["errors"]] == ["/hostnam", "/\ufffd[31m"]
    assert "did you mean hostname?" in body["detail"]


def test_strangers_learn_nothing_about_parameters(operator: Actor) -> None:
    assert_problem(Client().get("/api/v1/routes?surely_not=1"), 401)


@pytest.mark.slow(reason="each list is asked with few rows and with many")
@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("rows", SIZES)
def test_a_list_asks_what_the_ledger_says_however_many_rows_there_are(grown: int, part: int) -> None:
    house = Api(actor_of("operator", Account.Kind.OPERATOR))
    assert Route.objects.count() == Pool.objects.count() == grown
    assert set(LEDGER) == set(LISTS)
    asked = {}
    house("GET", "accounts")  # a first request reads what others keep
    for noun in LISTS[part::2]:
        with CaptureQueriesContext(connection) as queries:
            assert house("GET", f"{noun}?limit=200").status_code == 200, noun
        asked[noun] = len(queries)
    assert asked == {noun: LEDGER[noun] for noun in asked}
