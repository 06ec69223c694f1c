"""What a pipeline manages is managed on every path: each URL that changes an object refuses others, in one sentence.

Every row of the table that changes what definitions hold is asked as nobody's object, as a pipeline's, with broken
glass, and (the API) under the pipeline's own name. So a URL that comes later is asked too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.db.models import Model

from apps.definitions.models import Backend, HealthCheck, Listener, RoutePool, Server
from apps.definitions.services import KINDS
from apps.definitions.writing import objects
from apps.fleet.models import RegionLatency
from tests.interfaces.forms import untouched
from tests.permissions.asking import send, undone, written
from tests.permissions.callers import ADMIN, OWNER, Caller, callers_of
from tests.permissions.env import Env
from tests.permissions.kind_rows import KINDS as NOUNS
from tests.permissions.rows import Row, codes
from tests.permissions.table import TABLE

pytestmark = pytest.mark.django_db
MANAGER = "pipeline"
ENDS, METHODS = ("detail", "named"), ("PUT", "PATCH", "DELETE")
SENTENCE = re.compile(f"[a-z0-9-]+ is managed by {MANAGER}, which reverts other changes. Change it there, or ")
PARTS: tuple[type[Model], ...] = (Backend, HealthCheck, Listener, RoutePool, Server, RegionLatency)
MODELS = (*(kind.model for kind in KINDS.values()), *PARTS)
# What stands in rows of definitions and is no definition: the intent, and when something is due or was seen.
PASSING = {"desired_generation", "updated_at", "next_at", "missed"}
ANSWERS = codes(404, "403 200 200", "403 200 200")


def edited(url: str, holds: str, **form: str) -> Row:
    """A form sent back as it was shown, but for this."""
    path = {"name": holds} if url in ("account-edit", "grant-edit") else {"pk": f"${holds}"}
    return Row(f"web:{url}", "POST", ANSWERS, path, form=form)


# Where the table sends something that is refused anyway, or that is new.
EDITS = (
    edited("route-edit", "route"),
    edited("pool-edit", "spare"),
    edited("schedule-edit", "schedule"),
    edited("capacity-test-edit", "capacitytest"),
    edited("static-ip-edit", "staticip"),
    edited("address-pool-edit", "addresspool"),
    edited("cloud-account-edit", "cloudaccount"),
    edited("stack-edit", "stack"),
    edited(
        "zone-edit",
        "zone",
        **{"/spec/driver": "powerdns", "/spec/server": "https://192.0.2.9", "/spec/credentials": "env:X"},
    ),
    edited("record-edit", "record"),
    edited("account-edit", "acme"),
    edited("grant-edit", "of-acme"),
)
SPARE = {"kind": "Pool", "name": "spare", "account": "acme", "spec": {"balance": "random"}}
CHANGED = {"name": "spare", "account": "acme", "spec": {"balance": "random"}}
SERVER = {"server": "$server", "confirmed": "yes"}
GONE = {"action": "delete"}
MORE = (
    Row("api:apply", "PUT", ANSWERS, body={"objects": [SPARE]}),
    *(
        Row(f"api:{noun}-batch", "POST", ANSWERS, query={"atomic": word}, body={"items": [{**GONE, "id": pk}]})
        for word in ("true", "false")
        for noun, pk in (("pools", "$spare"), ("routes", "$route"))
    ),
    Row("api:pools-batch", "POST", ANSWERS, body={"items": [{"action": "update", **CHANGED}]}),
    Row("api:schedules-resume", "POST", ANSWERS, {"pk": "$schedule"}),
    Row("web:schedules-bulk", "POST", ANSWERS, form={"schedule": "$schedule", "do": "pause"}),
    Row("web:routes-bulk", "POST", ANSWERS, form={"route": "$route", "do": "delete", "confirm": "shop"}),
    Row("web:pools-bulk", "POST", ANSWERS, form={**SERVER, "pool": "$pool", "do": "drain", "region": "us-central1"}),
    Row("web:region-drain", "POST", ANSWERS, {"name": "us-central1"}, form={"reason": "x", "confirmed": "yes"}),
    Row("web:pool-servers", "POST", ANSWERS, {"pk": "$pool"}, form={**SERVER, "do": "drain"}),
)  # fmt: skip
ASKED = {f"{row} {at}": row for at, row in enumerate((*TABLE, *MORE)) if row.writes and not row.only_asks}
WAYS_ASKED = {"PATCH api:pools-detail", "DELETE api:pools-named", "POST web:pool-servers", "POST web:route-delete"}
# Writes of single objects, all answered by one view: pools are asked everything, each kind whether it refuses.
SINGLE = {f"{method} api:{noun.noun}-{end}": noun.noun for noun in NOUNS for end in ENDS for method in METHODS}
# Of new objects, likewise; routes have a view of their own.
NEW = {f"POST api:{noun.noun}-list": noun.noun for noun in NOUNS if noun.noun != "routes"}
# Of each kind another one of its six.
SOME_OF_SINGLE = {f"{METHODS[at % 3]} api:{noun.noun}-{ENDS[at // 3 % 2]}": noun.noun for at, noun in enumerate(NOUNS)}
SHOWN = {row.url: row.codes for row in TABLE if row.method == "GET" and not row.is_api}


@contextmanager
def managed() -> Iterator[None]:
    """Every object belongs to a pipeline."""
    with connection.cursor() as cursor:
        for kind in KINDS.values():
            cursor.execute(f"UPDATE {kind.model._meta.db_table} SET manager = %s", [MANAGER])  # noqa: S608 - our tables
    yield


def caller_of(row: Row) -> Caller:
    """Who may ask this: an operator, else the owner."""
    told = callers_of(row)
    return next((each for each in (ADMIN, OWNER) if told.get(each, 500) < 400), ADMIN)


def only_shows(row: Row) -> bool:
    """Whether it is a page that answers a POST as it does a GET."""
    return row.form is None and SHOWN.get(row.url) == row.codes


def is_answered_elsewhere(row: Row) -> bool:
    """Whether pools are asked in its place, test_table.py sees that it is refused, or it is a page that only shows."""
    of_another_kind = (SINGLE | NEW).get(str(row), "pools") != "pools"
    return of_another_kind or callers_of(row)[caller_of(row)] >= 400 or only_shows(row)


def held(model: type[Model]) -> dict[int, dict[str, Any]]:
    """What every row of a definition, or of its parts, says."""
    return {
        values["id"]: {name: value for name, value in values.items() if name not in PASSING}
        for values in model._base_manager.values()
    }


@contextmanager
def watched() -> Iterator[set[str]]:
    """In the end the kinds of what was there and is not as it was; only what is written is read."""
    changed: set[str] = set()
    before: dict[type[Model], dict[int, dict[str, Any]]] = {}

    def note(execute: Any, sql: str, *args: Any) -> Any:
        for model in written(sql, MODELS):
            if model not in before:
                before[model] = held(model)
        return execute(sql, *args)

    with connection.execute_wrapper(note):
        yield changed
    for model, rows in before.items():
        after = held(model)
        changed |= {model.__name__ for pk, values in rows.items() if after.get(pk) != values}


def asked(env: Env, row: Row, **said: str) -> tuple[int, str, set[str]]:
    """The answer, all that it says, and the kinds of what was there and is not as it was."""
    if said:
        row = (
            replace(row, query={**row.query, **said}) if row.is_api else replace(row, form={**(row.form or {}), **said})
        )
    with watched() as changed:
        answer = send(env, row, caller_of(row))
    text = b"".join(getattr(answer, "streaming_content", None) or [answer.content]).decode(errors="replace")
    messages = " ".join(str(each) for each in get_messages(answer.wsgi_request)) if not row.is_api else ""
    return answer.status_code, f"{text} {messages}", changed


def escapes(env: Env, row: Row, *, whole: bool = False) -> list[str]:
    """What is wrong with how a row answers for objects of a pipeline.

    `whole` asks also where nobody's object is not changed either, and tries each way to change it all the same.
    """
    with undone():
        code, said, free = asked(env, row)
    if not (free or whole):
        return []
    with undone(), managed():
        with undone():
            _, refused, changed = asked(env, row)
        names_it = SENTENCE.search(refused) is not None
        found = [f"{row}: changed {', '.join(sorted(changed))} of a pipeline"] if changed else []
        if free and not names_it:
            found.append(f"{row}: does not say whose it is: {refused[:200]}")
        for words in allowed_by(row) if whole and names_it else ():
            with undone():
                again, text, _ = asked(env, row, **words)
            if again != code or (SENTENCE.search(text) and not SENTENCE.search(said)):
                found.append(f"{row}: {again} instead of {code} with {words}: {text[:200]}")
    return found


def allowed_by(row: Row) -> tuple[dict[str, str], ...]:
    """What one says to change an object of a pipeline all the same; pages do not ask in another's name."""
    return ({"break_glass": "true"}, {"manager": MANAGER})[: 2 if row.is_api else 1]


@pytest.mark.parametrize(
    "name",
    [
        # One write path asks for all of them (tests/apps/test_one_write_path.py): half of the rest in `make test`.
        pytest.param(name, marks=pytest.mark.exhaustive if is_answered_elsewhere(row) or at % 2 else ())
        for at, (name, row) in enumerate(ASKED.items())
    ],
)
def test_no_url_changes_an_object_of_a_pipeline_for_others(env: Env, name: str) -> None:
    assert escapes(env, ASKED[name]) == []


# All ways meet in one place: pools, and a form, stand for all.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if str(row) in WAYS_ASKED else pytest.mark.exhaustive) for name, row in ASKED.items()],
)
def test_every_way_to_change_an_object_of_a_pipeline_is_open_at_each_url(env: Env, name: str) -> None:
    assert escapes(env, ASKED[name], whole=True) == []


def form_of(page: str) -> dict[str, str]:
    """What the form of a page sends back untouched."""
    inside = max(re.findall(r"<form [^>]*method=\"post\".*?</form>", page, flags=re.DOTALL), key=len)
    return untouched(inside)


@pytest.mark.parametrize("at", range(len(EDITS)), ids=lambda at: str(EDITS[at]))
def test_a_form_of_a_pipelines_object_says_whose_it_is_and_has_the_box(env: Env, at: int) -> None:
    with undone(), managed():
        page = send(env, replace(EDITS[at], method="GET"), ADMIN).content.decode()
        row = replace(EDITS[at], form={**form_of(page), **(EDITS[at].form or {})})
        _, refused, changed = asked(env, row)
    assert (bool(SENTENCE.search(refused)), changed) == (True, set())
    assert 'name="break_glass"' in page


def urls_that_refuse(env: Env, rows: list[Row]) -> set[str]:
    """The URLs among the rows that name the pipeline."""
    found = set()
    for row in rows:
        with undone(), managed():
            if SENTENCE.search(asked(env, row)[1]):
                found.add(str(row))
    return found


@pytest.mark.slow(reason="asks many writes of single objects")
@pytest.mark.parametrize("single", [SOME_OF_SINGLE, pytest.param(SINGLE, marks=pytest.mark.exhaustive)], ids=len)
def test_every_write_of_a_kind_of_object_refuses_whatever_else_would_keep_it_from_happening(
    env: Env, single: dict[str, str]
) -> None:
    rows = [row for row in ASKED.values() if str(row) in single]
    assert set(single) - urls_that_refuse(env, rows) == set()


@pytest.mark.parametrize("url", ["PATCH api:servers-detail", "PATCH api:pools-limit"])
def test_a_path_around_the_managers_is_found(env: Env, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in ASKED.values() if str(row) == url)
    assert escapes(env, row) == []
    monkeypatch.setattr(objects, "check_manager", lambda *_: None)
    assert any("of a pipeline" in error for error in escapes(env, row))
