"""Keys at rest rotate, and a key that opens nothing is said at once (apps/core/secrets/)."""

from __future__ import annotations

import io
import os

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db.models import BinaryField
from django.test import Client
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import User
from apps.accounts.tokens import create_token
from apps.cli.management.commands import schedule
from apps.core.models import KeyCheck
from apps.core.secrets import keys, sealed_columns
from apps.core.secrets.sealing import is_newest, seal, unseal
from apps.definitions.models import Route
from apps.webhooks.models import Webhook
from controlplane.celery import wait_for_the_key

pytestmark = pytest.mark.django_db
OLD, NEW = "the-key-of-yesterday", "the-key-of-today"


@pytest.fixture(autouse=True)
def _one_key(settings: Settings, _from_nothing: None) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OLD, []
    keys._fitting.clear()


def a_webhook(actor: Actor, name: str, secret: bytes = b"word") -> Webhook:
    return Webhook.objects.create(account=actor.account, name=name, url="https://x.example", secret=seal(secret))


def rotate() -> str:
    said = io.StringIO()
    call_command("rotate_keys", stdout=said)
    return said.getvalue()


def test_every_column_of_bytes_is_known_to_be_sealed() -> None:
    found = {
        (model._meta.label, field.name)
        for model in apps.get_models()
        for field in model._meta.fields
        if isinstance(field, BinaryField)
    }
    known = {(label, column) for label, columns in sealed_columns.SEALED.items() for column in columns}
    assert found == known | {(sealed_columns.CHECK, "sealed")}


@pytest.mark.both_engines
def test_everything_is_sealed_anew_and_then_needs_no_fallback(operator: Actor, settings: Settings) -> None:
    assert keys.said() == "ok"
    rows = [a_webhook(operator, f"hook-{number}", f"word {number}".encode()) for number in range(5)]
    person = User.objects.create(username="ann")
    factor = Authenticator.objects.create(user=person, type="totp", data={"secret": seal(b"totp").decode(), "since": 1})
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert keys.said() == keys.FALLBACK
    assert "webhooks.Webhook.secret: 5 of 5, 5 sealed again" in rotate()
    settings.SECRET_KEY_FALLBACKS = []
    assert keys.said() == "ok"
    assert [unseal(Webhook.objects.get(pk=row.pk).secret) for row in rows] == [f"word {n}".encode() for n in range(5)]
    factor.refresh_from_db()
    assert (unseal(factor.data["secret"].encode()), factor.data["since"]) == (b"totp", 1)
    assert rotate().endswith("0 sealed again. Nothing here needs a fallback anymore.\n")


def test_a_rotation_that_was_stopped_goes_on_where_it_was(
    operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_columns, "AT_ONCE", 2)
    keys.said()
    for number in range(5):
        a_webhook(operator, f"hook-{number}")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    for progress in sealed_columns.seal_anew():
        if progress.sealed:
            break
    assert (progress.looked_at, progress.rows) == (2, 5)
    assert keys.said() == keys.FALLBACK, "the check comes last: the fallback is still needed"
    assert "webhooks.Webhook.secret: 5 of 5, 3 sealed again" in rotate()


def test_a_row_that_no_key_opens_is_counted_and_keeps_its_bytes(operator: Actor, settings: Settings) -> None:
    row = a_webhook(operator, "hook")
    settings.SECRET_KEY = NEW
    with pytest.raises(CommandError, match=r"No key opens 1 of webhooks\.Webhook\.secret"):
        rotate()
    settings.SECRET_KEY = OLD
    assert unseal(Webhook.objects.get(pk=row.pk).secret) == b"word"


def test_what_somebody_writes_meanwhile_is_not_overwritten(
    operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = a_webhook(operator, "hook")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]

    def slowly(sealed: bytes) -> bytes:
        Webhook.objects.filter(pk=row.pk).update(secret=seal(b"newer"))
        return unseal(sealed)

    monkeypatch.setattr(sealed_columns, "unseal", slowly)
    rotate()
    assert unseal(Webhook.objects.get(pk=row.pk).secret) == b"newer"


@pytest.mark.both_engines
def test_a_key_that_opens_nothing_is_not_ready_and_nothing_is_written(
    client: Client, operator: Actor, settings: Settings, live_redis: str
) -> None:
    """Without the check the answer was 201, and no node ever got the route."""
    client.raise_request_exception = False
    token = {"Authorization": f"Bearer {create_token(account=operator.account, name='p', role='admin')}"}
    assert client.get("/readyz").json()["parts"]["key"] == "ok"
    settings.SECRET_KEY = NEW
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["key"]) == (503, keys.OPENS_NOTHING)
    count = Route.objects.count()
    said = client.delete("/api/v1/routes/1", headers=token)
    assert (said.status_code, said["Retry-After"], said.json()["detail"]) == (503, "30", keys.OPENS_NOTHING)
    assert Route.objects.count() == count
    assert keys.OPENS_NOTHING.partition(".")[0] in client.post("/routes/new/").content.decode()
    assert client.get("/api/v1/routes", headers=token).status_code == 200, "reading goes on"
    settings.SECRET_KEY_FALLBACKS = [OLD]
    assert client.get("/readyz").status_code == 200
    assert client.get("/readyz").json()["degraded"] == ["key", "collector"]


def test_no_process_works_with_a_key_that_opens_nothing(
    operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker would push bundles without the certificates that it cannot open."""
    assert keys.said() == "ok"
    keys._fitting.clear()
    settings.SECRET_KEY = NEW
    swept: list[str] = []
    monkeypatch.setattr(schedule, "schedules_tick", lambda: swept.append("tick"))
    call_command("schedule", once=True)
    for command in (["apply", os.devnull], ["seed", "--routes", "1"]):
        with pytest.raises(CommandError, match="opens nothing"):
            call_command(*command)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        settings.SECRET_KEY = NEW if len(pauses) < 3 else OLD

    monkeypatch.setattr("time.sleep", sleep)
    wait_for_the_key()  # at the start of a worker, which takes nothing meanwhile
    assert (swept, pauses) == ([], [keys.PAUSE_S] * 3)
    assert keys.OPENS_NOTHING in caplog.text
    call_command("schedule", once=True)
    assert swept == ["tick"]


def test_a_database_from_before_the_check_is_known_by_what_is_sealed_in_it(operator: Actor, settings: Settings) -> None:
    a_webhook(operator, "hook")
    settings.SECRET_KEY = NEW
    assert keys.said() == keys.OPENS_NOTHING
    assert not KeyCheck.objects.exists()
    settings.SECRET_KEY = OLD
    assert keys.said() == "ok"
    assert is_newest(KeyCheck.objects.get().sealed)


def test_a_database_with_nothing_in_it_takes_the_key_that_comes_first(db: None) -> None:
    assert keys.said() == "ok"
