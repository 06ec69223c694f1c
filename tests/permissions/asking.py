"""One question to the server, undone afterwards, and what the answers to it must have in common."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from string import Template
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.describing import describe
from apps.definitions.selectors import make_cursor
from tests.permissions.callers import Caller, callers_of, changes_nothing, sees_nothing
from tests.permissions.rows import Row
from tests.permissions.world import PASSING, REQUEST_ID, World, dump, everything, rows_of, take_away

WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b(\s+(INTO|FROM))?(\s+\"(?P<table>\w+)\")?", re.IGNORECASE)
# The token of a form is masked anew in each answer.
FORM_TOKEN = re.compile(rb"[A-Za-z0-9]{64}")
SPEC_OF = "spec of "
OWNER = ("own", "admin")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a caller can tell two answers apart by."""

    code: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@contextmanager
def undone() -> Iterator[None]:
    """Whatever is stored within is not stored afterwards; what was remembered is forgotten."""
    cache.clear()
    mark = transaction.savepoint()
    waiting = list(connection.run_on_commit)
    try:
        yield
    finally:
        connection.needs_rollback = False
        transaction.savepoint_rollback(mark)
        connection.run_on_commit = waiting


def filled(world: World, value: Any) -> Any:
    """The value with `$name` replaced by the id of that object; `$name` alone in a body becomes a number.

    `spec of name` becomes the specification that the object has.
    """
    if isinstance(value, str) and value.startswith(SPEC_OF):
        return describe(world.objects[value.removeprefix(SPEC_OF)])
    if isinstance(value, str):
        known = {name: str(row.pk) for name, row in world.objects.items()} | {"cursor": _cursor(world)}
        text = Template(value).safe_substitute(known)
        return int(text) if value.startswith("$") and text.isdecimal() else text
    if isinstance(value, Mapping):
        return {key: filled(world, entry) for key, entry in value.items()}
    return [filled(world, entry) for entry in value] if isinstance(value, list) else value


def _cursor(world: World) -> str:
    """A cursor that stands on a foreign route, as the owner of the route would be given it."""
    return make_cursor(("shop.acme.example", "/", world.objects["route"].pk))


def client_for(world: World, row: Row, caller: Caller) -> Client:
    """The browser or the program of the caller, as new."""
    strict = Client(enforce_csrf_checks=caller.oddity == "no form token", raise_request_exception=False)
    if caller.oddity == "nobody":
        return strict
    if caller.oddity == "token" or (row.is_api and caller.oddity != "session"):
        name = str(caller) if str(caller) in world.tokens else " ".join(OWNER)
        strict.defaults["HTTP_AUTHORIZATION"] = f"Bearer {world.tokens[name]}"
        return strict
    key = (caller.account, caller.role) if caller.account else OWNER
    strict.cookies = copy.deepcopy(world.clients[key].cookies)
    return strict


def send(world: World, row: Row, caller: Caller) -> Any:
    """Ask once. Call it within `undone`."""
    path = row.at or reverse(row.url, kwargs=filled(world, row.path))
    url = f"{path}?{urlencode(filled(world, row.query))}" if row.query else path
    client = client_for(world, row, caller)
    headers = {"X-Request-ID": REQUEST_ID, **row.headers}
    if row.is_api and row.body is None:
        return client.generic(row.method, url, headers=headers)
    if row.is_api:
        return client.generic(row.method, url, json.dumps(filled(world, row.body)), "application/json", headers=headers)
    if row.method == "POST":
        return client.post(url, filled(world, row.form or {}), headers=headers)
    return client.generic(row.method, url, headers=headers)


def heard(response: Any) -> Answer:
    """What came back, without the mask of form tokens."""
    streamed = getattr(response, "streaming_content", None)
    body = b"".join(streamed) if streamed is not None else response.content
    return Answer(response.status_code, tuple(sorted(response.headers.items())), FORM_TOKEN.sub(b"-", body))


def faults_of(world: World, row: Row) -> list[str]:
    """Everything that is wrong with the answers to a row; nothing when they are what the table says."""
    return [fault for caller, code in callers_of(row).items() for fault in _faults_for(world, row, caller, code)]


def _faults_for(world: World, row: Row, caller: Caller, code: int) -> list[str]:
    """Whether the caller gets the code, changes nothing that they may not, and does not learn what there is."""
    looks_away = sees_nothing(row, caller, code)
    with undone(), prepared(world, caller), statements() as seen:
        got = send(world, row, caller)
        there = heard(got) if looks_away else None
    found = [] if got.status_code == code else [f"{row} as {caller}: {got.status_code} instead of {code}"]
    if changes_nothing(row, caller, code) and any(map(writes, seen)):
        found += _changes(world, row, caller)
    return found + (foreign_faults(world, row, caller, there) if looks_away else [])


def writes(sql: str) -> bool:
    """Whether a statement changes more than who was here; one whose table cannot be read from it does."""
    found = WRITES.match(sql)
    return found is not None and found["table"] not in _passing_tables()


@functools.cache
def _passing_tables() -> frozenset[str]:
    return frozenset(apps.get_model(label)._meta.db_table for label in PASSING)


@contextmanager
def prepared(world: World, caller: Caller) -> Iterator[None]:
    """The own account is suspended while somebody asks who is."""
    if caller.oddity == "suspended":
        Account.objects.filter(pk=world.accounts["own"].pk).update(suspended_at=now())
    yield


@contextmanager
def statements() -> Iterator[list[str]]:
    """The SQL of what is done within."""
    seen: list[str] = []

    def note(execute: Any, sql: str, *args: Any) -> Any:
        seen.append(sql)
        return execute(sql, *args)

    with connection.execute_wrapper(note):
        yield seen


def reach_faults(world: World, row: Row, caller: Caller) -> list[str]:
    """Whether a request of another account's caller changes anything of the own account, whatever it is answered."""
    return _changes(world, row, caller) if row.writes else []


def _changes(world: World, row: Row, caller: Caller) -> list[str]:
    """Ask once more and compare all rows of the database; those of another account's caller only with the own's."""
    watched = rows_of(world.accounts["own"]) if caller.account == "other" else everything()
    with undone(), prepared(world, caller):
        before = dump(watched)
        send(world, row, caller)
        after = dump(watched)
    found = [query.model.__name__ for query, old, new in zip(watched, before, after, strict=True) if old != new]
    return [f"{row} as {caller}: wrote {', '.join(found)}"] if found else []


def foreign_faults(world: World, row: Row, caller: Caller, there: Answer | None = None) -> list[str]:
    """Whether the caller can tell an object that they may not see from one that is not there.

    `there` is the answer while it is there, if that was just asked for.
    """
    for known in (there, None):  # an age in seconds may have turned in between
        found, gone = known or _there(world, row, caller), _gone(world, row, caller)
        if found == gone:
            return []
    return [f"{row} as {caller}: {row.holds} shows although it is foreign: {_difference(found, gone)}"]


def _there(world: World, row: Row, caller: Caller) -> Answer:
    with undone():
        return heard(send(world, row, caller))


def _gone(world: World, row: Row, caller: Caller) -> Answer:
    with undone():
        take_away(world, row.holds)
        return heard(send(world, row, caller))


def _difference(there: Answer, gone: Answer) -> str:
    if there.code != gone.code:
        return f"{there.code} instead of {gone.code}"
    if there.headers != gone.headers:
        return f"headers {set(there.headers) ^ set(gone.headers)}"
    at = next((at for at, pair in enumerate(zip(there.body, gone.body, strict=False)) if pair[0] != pair[1]), 0)
    return f"{there.body[max(at - 60, 0) : at + 60]!r} instead of {gone.body[max(at - 60, 0) : at + 60]!r}"
