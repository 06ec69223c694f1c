"""The outside runs a schedule with a secret or a signature, and who has neither learns nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.api.v1.protocol import rate_limits
from apps.audit.models import Entry
from apps.core.clock import now
from apps.definitions.models import Schedule
from apps.definitions.services import save_object
from apps.definitions.shapes.base.words import instant_text
from apps.schedules.models import ScheduleRun, Trigger
from apps.schedules.triggers.services import make_trigger, rotate_trigger

BODY = b'{"ref": "refs/heads/main"}'
WEBHOOK = {"when": {"trigger": True}, "overlap": "allow", "target": {"topic": {"topic": "pushes"}}}


@pytest.fixture
def schedule(acme: Actor) -> Schedule:
    """One that waits for its triggers."""
    row: Schedule = save_object(actor=acme, kind="Schedule", name="build", spec=WEBHOOK)
    return row


def made(actor: Actor, schedule: Schedule, sender: str = "secret", **more: Any) -> tuple[str, str]:
    """The URL and the secret of a new trigger."""
    row, secret = make_trigger(actor=actor, schedule_id=schedule.pk, name=f"of-{len(sender)}", sender=sender, **more)
    return f"/hooks/{row.key_id}", secret


def call(url: str, headers: dict[str, str] | None = None, body: bytes = BODY, **more: Any) -> Any:
    """Somebody outside, with a browser's idea of CSRF."""
    client = Client(enforce_csrf_checks=True)
    return client.post(url, body, content_type="application/json", headers=headers or {}, **more)


def mac(key: bytes, message: bytes) -> bytes:
    """What the standard library says."""
    return hmac.new(key, message, hashlib.sha256).digest()


def signed(sender: str, secret: str, *, body: bytes = BODY, at: float = 0.0, delivery: str = "d-1") -> dict[str, str]:
    """What each kind of sender sends, written from its own documentation."""
    if sender == "secret":
        return {"Authorization": f"Bearer {secret}", "Idempotency-Key": delivery}
    if sender == "gitlab":
        return {"X-Gitlab-Token": secret, "X-Gitlab-Event-UUID": delivery}
    if sender == "github":
        return {"X-Hub-Signature-256": f"sha256={mac(secret.encode(), body).hex()}", "X-GitHub-Delivery": delivery}
    stamp = str(int(at or time.time()))
    text = f"{delivery}.{stamp}.".encode() + body
    signature = base64.b64encode(mac(base64.b64decode(secret.removeprefix("whsec_")), text)).decode()
    named = {"webhook-id": delivery, "webhook-timestamp": stamp}
    return named | {"webhook-signature": f"v1,AAAA v1,{signature}"}


SENDERS = ("secret", "standard_webhooks", "github", "gitlab")


@pytest.mark.both_engines
@pytest.mark.parametrize("sender", SENDERS)
def test_each_kind_of_sender_runs_the_schedule_once_per_delivery(acme: Actor, schedule: Schedule, sender: str) -> None:
    url, secret = made(acme, schedule, sender)
    first = call(url, signed(sender, secret))
    assert first.status_code == 202, first.content
    again = call(url, signed(sender, secret))
    assert (again.json()["schedule_run"], again.json()["repeated"]) == (first.json()["schedule_run"], True)
    other = call(url, signed(sender, secret, delivery="d-2")).json()
    assert other["schedule_run"] != first.json()["schedule_run"]
    run = ScheduleRun.objects.get(pk=first.json()["schedule_run"])
    assert (run.cause, run.body) == ("trigger", BODY.decode())
    assert run.actor == f"trigger of-{len(sender)} from 127.0.0.1"
    trigger = Trigger.objects.get()
    assert trigger.last_used_at is not None
    assert Entry.objects.filter(object_kind="Trigger", action="call").count() == 2
    assert secret not in str(list(Entry.objects.values_list("before", "after")))


@pytest.mark.parametrize("sender", SENDERS)
def test_unknown_and_wrong_are_the_same_answer(acme: Actor, schedule: Schedule, sender: str) -> None:
    url, secret = made(acme, schedule, sender)
    unknown = call("/hooks/" + "x" * 22, signed(sender, secret))
    wrong = [
        call(url),
        call(url, signed(sender, "whsec_" + base64.b64encode(b"no").decode())),
        call(url, {name: value[:-1] for name, value in signed(sender, secret).items()}),
        call(url, {"Authorization": "Bearer ", "X-Trigger-Secret": "", "X-Gitlab-Token": ""}),
        call(url, {"X-Hub-Signature-256": "sha256=", "webhook-signature": "v1,"}),
    ]
    for answer in wrong:
        assert answer.status_code == unknown.status_code == 404
        assert answer.json() | {"instance": "", "request_id": ""} == unknown.json() | {"instance": "", "request_id": ""}
    assert not ScheduleRun.objects.exists()


@pytest.mark.parametrize("sender", ["standard_webhooks", "github"])
def test_a_signature_is_of_this_body(acme: Actor, schedule: Schedule, sender: str) -> None:
    url, secret = made(acme, schedule, sender)
    headers = signed(sender, secret)
    assert call(url, headers, b'{"ref": "refs/heads/evil"}').status_code == 404
    assert call(url, headers).status_code == 202


def test_an_old_signature_is_no_signature(acme: Actor, schedule: Schedule) -> None:
    url, secret = made(acme, schedule, "standard_webhooks")
    for at in (time.time() - 400, time.time() + 400):
        assert call(url, signed("standard_webhooks", secret, at=at)).status_code == 404
    assert call(url, signed("standard_webhooks", secret, at=time.time() - 200)).status_code == 202


def test_the_secret_may_stand_in_a_header_of_its_own_and_never_in_the_url(acme: Actor, schedule: Schedule) -> None:
    url, secret = made(acme, schedule)
    assert call(url, {"X-Trigger-Secret": secret}).status_code == 202
    answer = call(f"{url}?secret={secret}")
    assert answer.status_code == 422
    assert "header" in answer.json()["detail"]
    assert Client().get(url).status_code == 405


def test_a_new_secret_without_grace_ends_the_old_one_at_once(acme: Actor, schedule: Schedule) -> None:
    url, secret = made(acme, schedule)
    fresh = rotate_trigger(actor=acme, trigger_id=Trigger.objects.get().pk, grace_s=0)
    assert call(url, {"X-Trigger-Secret": secret}).status_code == 404
    assert call(url, {"X-Trigger-Secret": fresh}).status_code == 202
    assert Trigger.objects.get().previous_secret is None


@pytest.mark.parametrize("sender", SENDERS)
def test_an_old_secret_works_until_its_grace_is_over_and_ends_by_itself(
    acme: Actor, schedule: Schedule, sender: str
) -> None:
    url, secret = made(acme, schedule, sender)
    fresh = rotate_trigger(actor=acme, trigger_id=Trigger.objects.get().pk, grace_s=3600)
    for delivery, each in enumerate((secret, fresh)):
        assert call(url, signed(sender, each, delivery=f"d-{delivery}")).status_code == 202
    Trigger.objects.update(previous_until=now() - timedelta(seconds=1))
    assert call(url, signed(sender, secret, delivery="d-2")).status_code == 404
    assert call(url, signed(sender, fresh, delivery="d-3")).status_code == 202


def test_the_record_says_until_when_an_old_secret_works_and_who_still_calls_with_it(
    acme: Actor, schedule: Schedule
) -> None:
    url, secret = made(acme, schedule)
    fresh = rotate_trigger(actor=acme, trigger_id=Trigger.objects.get().pk)
    row = Trigger.objects.get()
    left = (row.previous_until or now()) - now()
    assert timedelta(hours=23) < left <= timedelta(hours=24)
    assert Entry.objects.get(object_kind="Trigger", action="rotate").after == {
        "old_secret_until": instant_text(row.previous_until)
    }
    for each in (secret, fresh):
        call(url, {"X-Trigger-Secret": each})
    calls = Entry.objects.filter(object_kind="Trigger", action="call").order_by("id")
    assert ["with_old_secret" in (entry.after or {}) for entry in calls] == [True, False]


def test_there_are_never_more_than_two_secrets(acme: Actor, schedule: Schedule) -> None:
    url, first = made(acme, schedule)
    second, third = (rotate_trigger(actor=acme, trigger_id=Trigger.objects.get().pk) for _ in range(2))
    answers = [call(url, {"X-Trigger-Secret": each}).status_code for each in (first, second, third)]
    assert answers == [404, 202, 202]


def test_a_trigger_runs_at_most_so_often_a_minute(acme: Actor, schedule: Schedule) -> None:
    url, secret = made(acme, schedule, per_minute=2)
    answers = [call(url, {"X-Trigger-Secret": secret}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert answers[2]["Retry-After"] == "60"
    ScheduleRun.objects.all().delete()
    assert call(url, {"X-Trigger-Secret": secret}).status_code == 202


def test_who_guesses_is_asked_to_wait_also_with_the_right_secret(
    acme: Actor, schedule: Schedule, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_RATE_LIMITS = True
    moment = now()
    monkeypatch.setattr(rate_limits, "now", lambda: moment)  # all of it within one minute, however slow the machine
    monkeypatch.setattr(rate_limits, "FAILED_TRIES", 5)
    url, secret = made(acme, schedule)
    assert call(url, {"X-Trigger-Secret": secret}).status_code == 202
    statuses = [call(url, {"X-Trigger-Secret": f"guess {index}"}).status_code for index in range(7)]
    assert statuses == [404] * 5 + [429] * 2
    assert call(url, {"X-Trigger-Secret": secret}).status_code == 429


def test_paused_and_suspended_are_said_to_those_who_know_the_secret(acme: Actor, schedule: Schedule) -> None:
    url, secret = made(acme, schedule)
    Schedule.objects.update(paused=True)
    answer = call(url, {"X-Trigger-Secret": secret})
    assert (answer.status_code, "paused" in answer.json()["detail"]) == (409, True)
    assert call(url).status_code == 404
    Schedule.objects.update(paused=False)
    acme.account.suspended_at = now()
    acme.account.save()
    assert call(url, {"X-Trigger-Secret": secret}).status_code == 409
    assert not ScheduleRun.objects.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"x" * 64 * 1024, 202), (b"x" * (64 * 1024 + 1), 413), (b"\xff\xfe", 422), (b"a\0b", 422), (b"", 202)],
)
def test_bodies_are_text_of_at_most_64_kb(acme: Actor, schedule: Schedule, body: bytes, status: int) -> None:
    url, secret = made(acme, schedule)
    assert call(url, {"X-Trigger-Secret": secret}, body).status_code == status
    assert ScheduleRun.objects.count() == (status == 202)


def test_what_may_not_overlap_is_noted_and_not_run(acme: Actor) -> None:
    row = save_object(actor=acme, kind="Schedule", name="one", spec=WEBHOOK | {"overlap": "skip"})
    url, secret = made(acme, row)
    assert call(url, {"X-Trigger-Secret": secret}).json()["state"] == "waiting"
    second = call(url, {"X-Trigger-Secret": secret}).json()
    assert second["state"] == "skipped"
    assert second["message"]
