"""One question to the server, undone afterwards, and what the answers to it must have in common."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from string import Template
from typing import Any
from urllib.parse import urlencode

from django.core.cache import cache
from django.db import connection, transaction
from django.db.models import Model
from django.test.client import Client, ClientHandler
from django.urls import reverse

from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.reading.describing import describe
from tests.permissions.callers import OWNER, Caller, changes_nothing, sees_nothing
from tests.permissions.env import REQUEST_ID, Env, dump, take_away, watched
from tests.permissions.rows import Row

WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b(\s+(INTO|FROM))?(\s+\"(?P<table>\w+)\")?", re.IGNORECASE)
# The token of a form is masked anew in each answer.
FORM_TOKEN = re.compile(rb"[A-Za-z0-9]{64}")
SPEC_OF = "spec of "


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


def filled(env: Env, value: Any) -> Any:
    """The value with `$name` replaced by the id of that object; `$name` alone in a body becomes a number.

    `spec of name` becomes the specification that the object has.
    """
    if isinstance(value, str) and value.startswith(SPEC_OF):
        return describe(env.objects[value.removeprefix(SPEC_OF)])
    if isinstance(value, str):
        text = Template(value).safe_substitute(env.ids) if "$" in value else value
        return int(text) if value.startswith("$") and text.isdecimal() else text
    if isinstance(value, Mapping):
        return {key: filled(env, entry) for key, entry in value.items()}
    return [filled(env, entry) for entry in value] if isinstance(value, list) else value


@functools.cache
def _handler(*, enforce_csrf_checks: bool) -> ClientHandler:
    """What answers; clients of their own would each build all the middleware anew."""
    return ClientHandler(enforce_csrf_checks=enforce_csrf_checks)


def client_for(env: Env, row: Row, caller: Caller) -> Client:
    """The browser or the program of the caller, as new."""
    strict = Client(raise_request_exception=False)
    strict.handler = _handler(enforce_csrf_checks=caller.oddity == "no form token")
    if caller.oddity == "nobody":
        return strict
    if caller.oddity == "token" or (row.is_api and caller.oddity != "session"):
        name = str(caller) if str(caller) in env.tokens else str(OWNER)
        strict.defaults["HTTP_AUTHORIZATION"] = f"Bearer {env.tokens[name]}"
        return strict
    person = caller if caller.account else OWNER
    strict.cookies = copy.deepcopy(env.clients[person.account, person.role].cookies)
    return strict


def path_of(env: Env, row: Row) -> str:
    """Where the row is asked."""
    return row.at or reverse(row.url, kwargs=filled(env, row.path))


def send(env: Env, row: Row, caller: Caller) -> Any:
    """Ask once. Call it within `undone`."""
    path = path_of(env, row)
    url = f"{path}?{urlencode(filled(env, row.query))}" if row.query else path
    client = client_for(env, row, caller)
    headers = {"X-Request-ID": REQUEST_ID, **row.headers}
    if row.is_api and row.body is None:
        return client.generic(row.method, url, headers=headers)
    if row.is_api:
        return client.generic(row.method, url, json.dumps(filled(env, row.body)), "application/json", headers=headers)
    if row.method == "POST":
        return client.post(url, filled(env, row.form or {}), headers=headers)
    return client.generic(row.method, url, headers=headers)


def heard(response: Any) -> Answer:
    """What came back, without the mask of form tokens."""
    streamed = getattr(response, "streaming_content", None)
    body = b"".join(streamed) if streamed is not None else response.content
    return Answer(response.status_code, tuple(sorted(response.headers.items())), FORM_TOKEN.sub(b"-", body))


def errors_of(env: Env, row: Row, callers: Mapping[Caller, int]) -> list[str]:
    """Everything that is wrong with the answers to these callers; nothing when they are what the table says."""
    return [error for caller, code in callers.items() for error in _errors_for(env, row, caller, code)]


def _errors_for(env: Env, row: Row, caller: Caller, code: int) -> list[str]:
    """Whether the caller gets the code, changes nothing that they may not, and does not learn what there is."""
    got, changed = ask(env, row, caller, watch=changes_nothing(row, caller, code))
    found = [] if got.code == code else [f"{row} as {caller}: {got.code} instead of {code}"]
    found += [f"{row} as {caller}: wrote {', '.join(changed)}"] if changed else []
    return found + (foreign_errors(env, row, caller, got) if sees_nothing(row, caller, code) else [])


def foreign_id_errors(env: Env, row: Row, caller: Caller) -> list[str]:
    """Whether another account's caller can tell or change by a foreign id what they may not, whatever they are told."""
    got, changed = ask(env, row, caller, watch=row.writes)
    found = [f"{row} as {caller}: wrote {', '.join(changed)}"] if changed else []
    return found + foreign_errors(env, row, caller, got)


def ask(env: Env, row: Row, caller: Caller, *, watch: bool = False) -> tuple[Answer, list[str]]:
    """The answer, and the kinds of rows that asking changed if that is watched; all of it is undone."""
    # All rows of the database; those of another account's caller may change their own.
    whose = env.accounts["own"] if caller.account == "other" else None
    watching: AbstractContextManager[list[str]] = changes(whose) if watch else nullcontext([])
    with undone(), prepared(env, caller), watching as changed:
        answer = heard(send(env, row, caller))
    return answer, changed


def written(sql: str, models: Iterable[type[Model]]) -> list[type[Model]]:
    """The models whose rows a statement may change: all of them where its table cannot be read from it."""
    found = WRITES.match(sql)
    return [each for each in models if found["table"] in (None, each._meta.db_table)] if found else []


@contextmanager
def prepared(env: Env, caller: Caller) -> Iterator[None]:
    """The own account is suspended while somebody asks who is."""
    if caller.oddity == "suspended":
        Account.objects.filter(pk=env.accounts["own"].pk).update(suspended_at=now())
    yield


@contextmanager
def changes(account: Account | None) -> Iterator[list[str]]:
    """In the end the kinds of the account's rows, or of all, that were changed within; only what is written is read."""
    changed: list[str] = []
    before: dict[type[Model], Any] = {}

    def note(execute: Any, sql: str, *args: Any) -> Any:
        before.update(dump(account, [each for each in written(sql, watched(account)) if each not in before]))
        return execute(sql, *args)

    with connection.execute_wrapper(note):
        yield changed
    after = dump(account, before)
    changed += [model.__name__ for model, rows in before.items() if after[model] != rows]


def foreign_errors(env: Env, row: Row, caller: Caller, there: Answer) -> list[str]:
    """Whether the caller can tell an object that they may not see, with this answer, from one that is not there."""
    gone = _gone(env, row, caller)
    if there != gone:  # an age in seconds may have turned in between
        there, gone = ask(env, row, caller)[0], _gone(env, row, caller)
    if there == gone:
        return []
    return [f"{row} as {caller}: {row.holds} shows although it is foreign: {_difference(there, gone)}"]


def _gone(env: Env, row: Row, caller: Caller) -> Answer:
    with undone():
        take_away(env, row.holds)
        return heard(send(env, row, caller))


def _difference(there: Answer, gone: Answer) -> str:
    if there.code != gone.code:
        return f"{there.code} instead of {gone.code}"
    if there.headers != gone.headers:
        return f"headers {set(there.headers) ^ set(gone.headers)}"
    at = next((at for at, pair in enumerate(zip(there.body, gone.body, strict=False)) if pair[0] != pair[1]), 0)
    return f"{there.body[max(at - 60, 0) : at + 60]!r} instead of {gone.body[max(at - 60, 0) : at + 60]!r}"
