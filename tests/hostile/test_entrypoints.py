"""Through every entrypoint with every class: 4xx with the field's name; nothing stored, queued or rendered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.bootstrap import replace_token
from apps.compiler.bundle import Bundle
from apps.compiler.compile import Compilation, compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.definitions.models import Schedule
from apps.definitions.services import apply_document
from apps.schedules.triggers.services import make_trigger
from tests.breadth import first_of
from tests.hostile.corpus import SHARP, VALUES
from tests.hostile.entrypoints import (
    Entrypoint,
    Told,
    api,
    apply,
    command,
    dozen,
    each_field,
    every_sharp,
    fields_of,
    order,
    page,
    patch,
    tour,
    typed,
)
from tests.hostile.fields import Field
from tests.hostile.orders import ORDERS, fields_of_orders
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
# Each change asks each interface a dozen values, and the API each field; the whole corpus is exhaustive.
WHOLE = (pytest.mark.exhaustive, pytest.mark.slow(reason="the whole corpus: hundreds of requests"))
SHORT_OR_WHOLE = pytest.mark.parametrize("whole", [False, pytest.param(True, marks=WHOLE)], ids=["short", "whole"])
LIMIT_MS = 200.0
OURS = ("accounts", "audit", "fleet", "definitions", "rollouts", "schedules", "webhooks")
# What every request may write, refused or not: when a token was used, and what was counted.
MOVING = {"accounts.ApiToken", "accounts.FailedSignIn", "sessions.Session"}
# Fields that a form offers as a fixed choice or not at all: a browser sends no other, and Django refuses what does.
NOT_IN_FORMS = ("/tags/customer", "/measured_by", "/load_balancer", "/keep_query", "/certificates")


def everything() -> dict[str, Any]:
    """All rows of ours as they are now."""
    found = {}
    for label in OURS:
        for model in apps.get_app_config(label).get_models():
            name = f"{label}.{model.__name__}"
            if name not in MOVING:
                found[name] = sorted(map(repr, model._default_manager.order_by("pk").values_list()))
    return found


class Wire:
    """Tripped when the value that is under way comes so far as to be compiled."""

    def __init__(self) -> None:
        self.value: Any = None

    def compiled(self, snapshot: Snapshot) -> Compilation[Bundle]:
        """In place of the compiler: look for the value in every text, then compile."""
        if isinstance(self.value, str) and len(self.value) > 2 and self.value in texts_of(asdict(snapshot)):
            raise AssertionError(f"{self.value!r} came to be rendered")
        return compile_snapshot(snapshot)


def texts_of(value: Any) -> set[str]:
    """Every text of a snapshot but our own identifiers."""
    if isinstance(value, dict):
        return {text for name, entry in value.items() if name != "id" for text in texts_of(entry)}
    if isinstance(value, list | tuple):
        return {text for entry in value for text in texts_of(entry)}
    return {value} if isinstance(value, str) else set()


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Strung wherever the product compiles."""
    strung = Wire()
    for module in ("apps.definitions.previewing.preview", "apps.rollouts.push.compiling"):
        monkeypatch.setattr(f"{module}.compile_snapshot", strung.compiled)
    return strung


def walk(entrypoint: Entrypoint, journey: Iterable[tuple[Field, Any]], wire: Wire, *, timed: bool) -> int:
    """Go through a entrypoint with each pair; how many there were. Fails with what was not refused as it should be.

    `timed` also fails with what works long; what each grammar spends is asked in test_grammars.py.
    """
    before, wrong, count = everything(), [], 0
    for field, value in journey:
        wire.value = value
        count += 1
        told = entrypoint(field, value)
        for _ in range(3):  # the first request reads templates and modules, and a machine may be busy
            told = (
                min(told, entrypoint(field, value), key=lambda each: each.ms) if timed and told.ms > LIMIT_MS else told
            )
        if complaint := _complaint(told) or (f"{told.ms:.0f} ms" if timed and told.ms > LIMIT_MS else ""):
            wrong.append((f"{field.example}{field.pointer}", value if len(repr(value)) < 200 else "…", complaint))
    assert wrong == []
    assert everything() == before
    return count


def _complaint(told: Told) -> str:
    if not 400 <= told.status < 500:
        return f"{told.status}: {told.text[:300]}"
    return "" if told.named else f"no field is named: {told.text[:600]}"


@pytest.fixture
def operators_token(tutorial_env: Actor, settings: Any) -> Client:
    """A program with every right: what it may not do, nobody may."""
    tutorial_env.account.quotas = {"requests_per_minute": 10**6}
    tutorial_env.account.save()
    token = replace_token(account=tutorial_env.account, name="hostile")
    return Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)


def test_the_tour_brings_every_value_and_every_field() -> None:
    seen = list(tour(fields_of(), whole=True))
    assert {f"{type(value).__name__} {value!r}" for _, value in seen} >= {
        f"{type(value).__name__} {value!r}"
        for _, value in VALUES
        if any(not field.legal(value) for field in fields_of())
    }
    assert {f"{field.example}{field.pointer}" for field, _ in seen} == {f"{f.example}{f.pointer}" for f in fields_of()}


@pytest.mark.slow(reason="a sixth of all fields, a request for each")
@pytest.mark.parametrize("part", first_of(1, range(6)))
def test_the_api_refuses_a_value_in_each_field(operators_token: Client, wire: Wire, part: int) -> None:
    journey = [*each_field(fields_of())][part::6]
    assert walk(api(operators_token), journey, wire, timed=False) > 50


@pytest.mark.exhaustive
@pytest.mark.slow(reason="the whole corpus: thousands of requests")
def test_the_api_refuses_them(operators_token: Client, wire: Wire) -> None:
    assert walk(api(operators_token), tour(fields_of(), whole=True), wire, timed=True) > 1000


@SHORT_OR_WHOLE
def test_patches_are_refused(operators_token: Client, wire: Wire, whole: bool) -> None:
    fields = fields_of(
        "account", "region", "fleet", "node", "pool", "load_balancer", "route", "redirect", "fixed_response"
    )
    journey = tour(fields) if whole else dozen(fields)
    assert walk(patch(operators_token), journey, wire, timed=whole) >= (500 if whole else len(SHARP))


@SHORT_OR_WHOLE
def test_apply_refuses_them(operators_token: Client, wire: Wire, whole: bool) -> None:
    journey = tour(fields_of()) if whole else dozen(fields_of())
    assert walk(apply(operators_token), journey, wire, timed=whole) >= (700 if whole else len(SHARP))


@SHORT_OR_WHOLE
def test_the_command_refuses_them(tutorial_env: Actor, tmp_path: Path, wire: Wire, whole: bool) -> None:
    journey = tour(fields_of()) if whole else dozen(fields_of())
    assert walk(command(tmp_path), journey, wire, timed=whole) >= (700 if whole else len(SHARP))


@pytest.fixture
def ordered(operators_token: Client, tutorial_env: Actor) -> Client:
    """The same program, with what the small calls speak of."""
    account = {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws", "credentials": "env:PROD"}}
    apply_document(actor=tutorial_env, objects=[account])
    make_trigger(actor=tutorial_env, schedule_id=Schedule.objects.earliest("pk").pk, name="entrypoint")
    return operators_token


@pytest.mark.parametrize("name", ORDERS)
def test_a_small_call_refuses_a_dozen_values_in_one_of_its_fields_and_one_in_each_other(
    ordered: Client, wire: Wire, name: str
) -> None:
    first, *others = [field for field in fields_of_orders() if field.kind == name]
    assert walk(order(ordered), [*every_sharp([first]), *each_field(others)], wire, timed=False) > len(others)


@pytest.mark.exhaustive
@pytest.mark.slow(reason="a dozen values in each field of a call")
@pytest.mark.parametrize("name", ORDERS)
def test_a_small_call_refuses_a_dozen_values_in_each_of_its_fields(ordered: Client, wire: Wire, name: str) -> None:
    fields = [field for field in fields_of_orders() if field.kind == name]
    assert walk(order(ordered), every_sharp(fields), wire, timed=False) >= 7 * len(fields)


@pytest.mark.exhaustive
@pytest.mark.slow(reason="the whole corpus: hundreds of requests")
def test_claims_invitations_tokens_webhooks_and_small_calls_refuse_them(ordered: Client, wire: Wire) -> None:
    assert walk(order(ordered), tour(fields_of_orders(), whole=True), wire, timed=True) > 700


@SHORT_OR_WHOLE
@pytest.mark.slow(reason="renders a form again for a value of every eighth field")
def test_forms_refuse_them(tutorial_env: Actor, wire: Wire, whole: bool) -> None:
    client = client_of(tutorial_env)
    client.raise_request_exception = False
    fields = [
        field
        for field in fields_of("pool", "route", "redirect", "fixed_response")
        if not field.pointer.endswith(NOT_IN_FORMS) and not field.pointer.startswith(("/assertions", "/rules"))
    ]
    journey = tour(fields) if whole else each_field(fields[::8])
    asked = walk(page(client), (pair for pair in journey if not _is_fine_when_typed(*pair)), wire, timed=whole)
    assert asked >= (300 if whole else len(SHARP))


def _is_fine_when_typed(field: Field, value: Any) -> bool:
    """People type text: a form reads numbers from it, and takes blanks at its ends away."""
    text = typed(value).replace("\r\n", "\n")
    readings: list[Any] = [text, text.strip(), None if not text.strip() else text]
    if text.strip().isascii() and text.strip().lstrip("+-").isdecimal():
        readings.append(int(text.strip()))
    with contextlib.suppress(ValueError):
        readings.append(float(text))
    return any(reading is None or field.legal(reading) for reading in readings)
