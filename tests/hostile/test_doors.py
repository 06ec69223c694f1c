"""Through every door with every class: 4xx with the field's name, nothing stored, nothing queued, nothing rendered."""

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
from apps.accounts.founding import replace_token
from apps.compiler.compile import Compilation, compile_snapshot
from apps.compiler.model import Snapshot
from apps.definitions.models import Schedule
from apps.definitions.services import apply_document
from apps.schedules.triggers import make_trigger
from tests.doors.people import client_of
from tests.hostile.corpus import CORPUS, VALUES
from tests.hostile.doors import Door, Told, api, apply, command, fields_of, order, page, patch, tour, typed
from tests.hostile.fields import Field
from tests.hostile.orders import fields_of_orders

pytestmark = pytest.mark.django_db
# What comes through the API is asked on every engine, whole: PostgreSQL keeps no NUL and no number too great for
# its column. The other doors read with the same words, before any engine hears of it.
before_any_engine = pytest.mark.any_database
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

    def compiled(self, snapshot: Snapshot) -> Compilation:
        """In place of the compiler: look for the value in every text, then compile."""
        if isinstance(self.value, str) and len(self.value) > 2 and self.value in texts_of(asdict(snapshot)):
            raise AssertionError(f"{self.value!r} came to be rendered")
        return compile_snapshot(snapshot)


def texts_of(value: Any) -> set[str]:
    """Every text of a snapshot."""
    if isinstance(value, dict):
        return {text for entry in value.values() for text in texts_of(entry)}
    if isinstance(value, list | tuple):
        return {text for entry in value for text in texts_of(entry)}
    return {value} if isinstance(value, str) else set()


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Strung wherever the product compiles."""
    strung = Wire()
    for place in ("apps.definitions.preview", "apps.rollouts.compiling"):
        monkeypatch.setattr(f"{place}.compile_snapshot", strung.compiled)
    return strung


def walk(door: Door, journey: Iterable[tuple[Field, Any]], wire: Wire) -> int:
    """Go through a door with each pair; how many there were. Fails with what was not refused as it should be."""
    before, wrong, count = everything(), [], 0
    for warm, (field, value) in enumerate(journey):
        if not warm:  # the first request of a process reads templates and modules
            door(field, value)
        wire.value = value
        told = door(field, value)
        count += 1
        for _ in range(3):  # a machine that was busy is asked again
            told = min(told, door(field, value), key=lambda each: each.ms) if told.ms > LIMIT_MS else told
        if complaint := _complaint(told):
            wrong.append((f"{field.example}{field.pointer}", value if len(repr(value)) < 200 else "…", complaint))
    assert wrong == []
    assert everything() == before
    return count


def _complaint(told: Told) -> str:
    if not 400 <= told.status < 500:
        return f"{told.status}: {told.text[:300]}"
    if not told.named:
        return f"no field is named: {told.text[:600]}"
    return f"{told.ms:.0f} ms" if told.ms > LIMIT_MS else ""


@pytest.fixture
def operators_token(tutorial_world: Actor, settings: Any) -> Client:
    """A program with every right: what it may not do, nobody may."""
    tutorial_world.account.quotas = {"requests_per_minute": 10**6}
    tutorial_world.account.save()
    token = replace_token(account=tutorial_world.account, name="hostile")
    return Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)


def test_the_tour_brings_every_value_and_every_field() -> None:
    seen = list(tour(fields_of(), whole=True))
    assert {f"{type(value).__name__} {value!r}" for _, value in seen} >= {
        f"{type(value).__name__} {value!r}"
        for _, value in VALUES
        if any(not field.legal(value) for field in fields_of())
    }
    assert {f"{field.example}{field.pointer}" for field, _ in seen} == {f"{f.example}{f.pointer}" for f in fields_of()}


def test_the_api_refuses_them(operators_token: Client, wire: Wire) -> None:
    assert walk(api(operators_token), tour(fields_of(), whole=True), wire) > 1000


@before_any_engine
def test_patches_are_refused(operators_token: Client, wire: Wire) -> None:
    fields = fields_of(
        "account", "region", "fleet", "node", "pool", "load_balancer", "route", "redirect", "fixed_response"
    )
    assert walk(patch(operators_token), tour(fields), wire) > 500


@before_any_engine
def test_apply_refuses_them(operators_token: Client, wire: Wire) -> None:
    assert walk(apply(operators_token), tour(fields_of()), wire) > 700


@before_any_engine
def test_the_command_refuses_them(tutorial_world: Actor, tmp_path: Path, wire: Wire) -> None:
    assert walk(command(tmp_path), tour(fields_of()), wire) > 700


def test_claims_invitations_tokens_webhooks_and_small_calls_refuse_them(
    operators_token: Client, wire: Wire, tutorial_world: Actor
) -> None:
    account = {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws", "credentials": "env:PROD"}}
    apply_document(actor=tutorial_world, objects=[account])
    make_trigger(actor=tutorial_world, schedule_id=Schedule.objects.earliest("pk").pk, name="door")
    assert walk(order(operators_token), tour(fields_of_orders(), whole=True), wire) > 700


@before_any_engine
@pytest.mark.timeout(240)
@pytest.mark.parametrize("part", range(3))
def test_forms_refuse_them(tutorial_world: Actor, wire: Wire, part: int) -> None:
    client = client_of(tutorial_world)
    client.raise_request_exception = False
    fields = [
        field
        for field in fields_of("pool", "route", "redirect", "fixed_response")
        if not field.pointer.endswith(NOT_IN_FORMS) and not field.pointer.startswith("/assertions")
    ]
    journey = tour(fields, classes=list(CORPUS)[part::3])
    assert walk(page(client), (pair for pair in journey if not _is_fine_when_typed(*pair)), wire) > 100


def _is_fine_when_typed(field: Field, value: Any) -> bool:
    """People type text: a form reads numbers from it, and takes blanks at its ends away."""
    text = typed(value).replace("\r\n", "\n")
    readings: list[Any] = [text, text.strip(), None if not text.strip() else text]
    if text.strip().isascii() and text.strip().lstrip("+-").isdecimal():
        readings.append(int(text.strip()))
    with contextlib.suppress(ValueError):
        readings.append(float(text))
    return any(reading is None or field.legal(reading) for reading in readings)
