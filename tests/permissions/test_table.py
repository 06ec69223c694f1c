"""Every row of the table for every caller, every foreign id, and that nothing is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from django.apps import apps
from django.db.models import Prefetch
from django.urls import resolve

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.api.v1 import views
from apps.definitions import selectors
from apps.definitions.models import Backend, Pool
from tests.breadth import first_of
from tests.permissions.asking import errors_of, foreign_id_errors, path_of, send, undone, written
from tests.permissions.callers import ADMIN, FOREIGN_OWNER, MEMBERS, Caller, callers_of, main_callers_of
from tests.permissions.env import OWNERS, Env, watched
from tests.permissions.foreign_ids import FOREIGN_IDS
from tests.permissions.rows import Row
from tests.permissions.table import TABLE
from tests.permissions.urls import METHODS, every_url

pytestmark = pytest.mark.django_db
OTHERS = [caller for caller in MEMBERS if caller.account == "other"]
BY_URL: dict[str, list[Row]] = {url: [row for row in TABLE if row.url == url] for url in every_url()}


def errors_at(env: Env, url: str, callers_of: Callable[[Row], dict[Caller, int]] = main_callers_of) -> list[str]:
    """What is wrong with the answers of an URL to these callers."""
    return [error for row in BY_URL[url] for error in errors_of(env, row, callers_of(row))]


@pytest.mark.parametrize("url", BY_URL)
def test_a_caller_gets_the_answer_of_the_table_and_no_foreign_object_shows(env: Env, url: str) -> None:
    assert errors_at(env, url) == []


@pytest.mark.exhaustive
@pytest.mark.slow(reason="up to seventeen callers of each method, some of them more than once")
@pytest.mark.parametrize("url", BY_URL)
def test_every_caller_gets_the_answer_of_the_table_and_no_foreign_object_shows(env: Env, url: str) -> None:
    assert errors_at(env, url, callers_of) == []


@pytest.mark.parametrize("at", range(len(FOREIGN_IDS)), ids=lambda at: f"{FOREIGN_IDS[at]} {at}")
def test_a_foreign_id_in_query_body_list_cursor_or_form_is_as_good_as_a_missing_one(env: Env, at: int) -> None:
    assert foreign_id_errors(env, FOREIGN_IDS[at], FOREIGN_OWNER) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("at", range(len(FOREIGN_IDS)), ids=lambda at: f"{FOREIGN_IDS[at]} {at}")
def test_a_foreign_id_is_as_good_as_a_missing_one_for_every_role(env: Env, at: int) -> None:
    assert [error for caller in OTHERS for error in foreign_id_errors(env, FOREIGN_IDS[at], caller)] == []


def taken(env: Env, url: str) -> set[str]:
    """The methods without a row that the URL takes all the same.

    An API view takes those that its class has; a page is asked, and answers 405 to all others.
    """
    untold = set(METHODS) - {row.method for row in BY_URL[url]}
    view = getattr(resolve(path_of(env, BY_URL[url][0])).func, "cls", None)
    if view is None:
        return answered(env, url, untold)
    return {method for method in untold if method.lower() in view.http_method_names and hasattr(view, method.lower())}


def answered(env: Env, url: str, methods: Iterable[str]) -> set[str]:
    """Those of the methods that an operator is not answered with 405."""
    row = BY_URL[url][0]
    rows = [Row(row.url, method, row.codes, row.path, at=row.at) for method in methods]
    with undone():
        return {each.method for each in rows if send(env, each, ADMIN).status_code != 405}


def test_every_url_has_a_row() -> None:
    assert [f"{url}: say in tests/permissions who may ask for it" for url, rows in BY_URL.items() if not rows] == []


@pytest.mark.parametrize("part", range(20))
def test_an_url_takes_no_method_without_a_row(env: Env, part: int) -> None:
    assert {url: found for url in list(BY_URL)[part::20] if (found := taken(env, url))} == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("url", BY_URL)
def test_an_url_answers_each_method_of_its_rows_and_no_other(env: Env, url: str) -> None:
    assert answered(env, url, METHODS) == {row.method for row in BY_URL[url]}


@pytest.mark.parametrize(("url", "method"), [("api:pools-detail", "DELETE"), ("web:pool-edit", "POST")])
def test_a_method_without_a_row_is_found(env: Env, url: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_URL, url, [row for row in BY_URL[url] if row.method != method])
    assert taken(env, url) == {method}


def test_every_row_has_an_url_and_no_row_is_there_twice() -> None:
    assert {row.url for row in TABLE} - set(BY_URL) == set()
    assert [each for each, times in Counter(map(str, TABLE)).items() if times > 1] == []


def test_of_every_kind_of_row_it_is_known_whose_it_is() -> None:
    with_account = {
        model._meta.label
        for model in apps.get_models()
        if any(field.related_model is Account for field in model._meta.fields)
    }
    assert with_account - set(OWNERS) == set()


def test_a_statement_counts_as_a_change_unless_its_table_only_says_who_was_here() -> None:
    everything = watched(None)
    assert written('INSERT INTO "definitions_pool" ("name") VALUES (%s)', everything) == [Pool]
    assert written('UPDATE "definitions_pool" SET "name" = %s', everything) == [Pool]
    assert written('DELETE FROM "definitions_pool"', everything) == [Pool]
    assert written("DELETE FROM definitions_pool", everything) == list(everything)
    assert written('UPDATE "django_session" SET "expire_date" = %s', everything) == []
    assert written('SELECT "name" FROM "definitions_pool"', everything) == []


def everybodys(actor: Actor) -> Any:
    """A selector that forgot whose pools it was asked for."""
    backends = Prefetch("backends", Backend.objects.select_related("region").prefetch_related("servers"))
    rows = Pool.objects.select_related("account", "health_check").prefetch_related(backends)
    return rows.order_by("account__name", "name")


@pytest.mark.parametrize(
    "url", first_of(2, ["api:pools-detail", "web:pool", "api:pools-list", "api:pools-named", "web:pool-edit"])
)
def test_a_selector_that_forgets_the_account_is_found(env: Env, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "pools", everybodys)
    monkeypatch.setitem(views.NOUNS, "pools", replace(views.NOUNS["pools"], rows=everybodys))
    assert errors_at(env, url) != []


@pytest.mark.parametrize(
    "url", first_of(1, ["api:routes-list", "api:certificates-list", "api:hostnames-list", "web:routes"])
)
def test_an_actor_who_sees_everything_is_found_at_every_list(
    env: Env, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Actor, "visible", lambda _, rows: rows)
    assert [error for error in errors_at(env, url) if "foreign" in error] != []
