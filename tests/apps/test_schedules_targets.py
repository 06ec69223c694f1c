"""Targets: signed and never private, once or known again, and changes that are made and taken back."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db.models import F

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.core.clock import now
from apps.definitions.models import Pool, Schedule
from apps.definitions.reading.describing import describe
from apps.definitions.services import save_object
from apps.definitions.writing import objects
from apps.fleet.models import Fleet
from apps.schedules.models import ScheduleRun
from apps.schedules.run.working import work_off
from apps.schedules.services import run_now
from apps.schedules.targets import TARGETS, capacity_test, topic, webhook
from apps.schedules.targets.contract import TargetFailed
from apps.schedules.triggers import topics
from apps.schedules.triggers.signing import rotate_signing_secret
from tests.ports import spare_port
from tests.receiver import Receiver, receiving

NEVER = {"when": {"trigger": True}, "overlap": "allow", "retries": {"attempts": 1}}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A real server on loopback, which only tests may call."""
    with receiving() as found:
        yield found


@pytest.fixture
def streams(live_redis: str) -> Iterator[None]:
    """Topics in a Redis of this test's own."""
    topics.client.cache_clear()
    yield
    topics.client.cache_clear()


def executed(actor: Actor, target: dict[str, Any], **spec: Any) -> ScheduleRun:
    """What came of a schedule with this target that was run by hand and worked off."""
    row = save_object(actor=actor, kind="Schedule", name="s", spec=NEVER | spec | {"target": target})
    made = run_now(actor=actor, schedule_id=row.pk)
    work_off(seconds=10)
    made.refresh_from_db()
    return made


def shop(actor: Actor, **spec: Any) -> dict[str, Any]:
    """A change of the pool shop."""
    present = describe(Pool.objects.get(account=actor.account, name="shop"))
    return {"change": {"object": {"kind": "Pool", "name": "shop", "spec": present | spec}, "restore_after_s": 60}}


def due_now() -> ScheduleRun:
    """The run that takes a change back, as if its time had come and it was worked off."""
    owed = ScheduleRun.objects.get(cause=ScheduleRun.Cause.RESTORE)
    assert owed.due_at > now() + timedelta(seconds=30)
    ScheduleRun.objects.filter(pk=owed.pk).update(next_try_at=now())
    work_off(seconds=10)
    owed.refresh_from_db()
    return owed


def test_a_webhook_is_signed_as_ten_lines_of_python_can_check(acme: Actor, receiver: Receiver) -> None:
    row = save_object(
        actor=acme, kind="Schedule", name="s", spec=NEVER | {"target": {"webhook": {"url": receiver.url, "body": "b"}}}
    )
    old = rotate_signing_secret(actor=acme, schedule_id=row.pk)
    new = rotate_signing_secret(actor=acme, schedule_id=row.pk)
    made = run_now(actor=acme, schedule_id=row.pk)
    work_off(seconds=10)
    (heard,) = receiver.heard
    headers = {name.lower(): value for name, value in heard.headers.items()}
    for secret in (old, new):  # both sign for a day
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + heard.body
        mac = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, hashlib.sha256).digest()
        assert f"v1,{base64.b64encode(mac).decode()}" in headers["webhook-signature"].split(" ")
    assert headers["webhook-id"] == made.key
    data = json.loads(heard.body)["data"]
    assert (data["schedule"], data["body"], data["schedule_run"]) == ("acme/s", "b", made.pk)
    made.refresh_from_db()
    assert (made.state, made.result["status"]) == ("done", 204)


def test_a_webhook_comes_again_with_the_same_key_until_it_is_taken(acme: Actor, receiver: Receiver) -> None:
    receiver.answer(500, 302, 200)
    target = {"webhook": {"url": receiver.url}}
    made = executed(acme, target, retries={"attempts": 5, "backoff_s": 1})
    for _ in range(3):
        ScheduleRun.objects.filter(state="waiting").update(next_try_at=now())
        work_off(seconds=10)
    made.refresh_from_db()
    assert (made.state, made.attempt, len(receiver.heard)) == ("done", 3, 3)
    assert {heard.headers["webhook-id"] for heard in receiver.heard} == {made.key}
    assert len({heard.body for heard in receiver.heard}) == 1


def test_a_receiver_that_does_not_answer_has_taken_nothing_and_is_asked_again(acme: Actor, receiver: Receiver) -> None:
    nobody = receiver.url.replace(str(urlsplit(receiver.url).port), str(spare_port()))
    made = executed(acme, {"webhook": {"url": nobody}}, retries={"attempts": 5})
    assert (made.state, made.attempt, made.message) == ("waiting", 1, "The connection was refused.")


def test_a_receiver_that_is_gone_is_not_asked_again(acme: Actor, receiver: Receiver) -> None:
    receiver.answer(410)
    made = executed(acme, {"webhook": {"url": receiver.url}}, retries={"attempts": 5})
    assert (made.state, made.attempt) == ("dead", 1)
    assert "410" in made.message


def test_a_name_that_became_private_is_not_called(acme: Actor, receiver: Receiver, settings: Any) -> None:
    row = save_object(
        actor=acme, kind="Schedule", name="s", spec=NEVER | {"target": {"webhook": {"url": receiver.url}}}
    )
    settings.OUTBOUND_NETWORKS = []
    made = run_now(actor=acme, schedule_id=row.pk)
    work_off(seconds=10)
    made.refresh_from_db()
    assert made.state == "dead"
    assert receiver.heard == []
    settings.OUTBOUND_NETWORKS = ["127.0.0.0/8"]  # the negative control: it is the address that was refused
    assert executed(acme, {"webhook": {"url": receiver.url}}).state == "done"
    assert len(receiver.heard) == 1


@pytest.mark.usefixtures("streams")
def test_a_second_attempt_sends_no_second_message(acme: Actor) -> None:
    made = executed(acme, {"topic": {"topic": "t", "message": "m"}})
    run = ScheduleRun.objects.select_related("schedule__account").get(pk=made.pk)
    assert len(topics.read(acme, "t")) == 1
    run.attempt = 2
    topic.act_on_many([run], now())
    topic.act(run, now())
    assert len(topics.read(acme, "t")) == 1
    run.attempt = 1  # the negative control: a first attempt does not look
    topic.act(run, now())
    assert [message.key for message in topics.read(acme, "t")] == [made.key] * 2


@pytest.mark.usefixtures("streams")
def test_a_topic_keeps_no_more_than_its_bytes(acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "MOST_BYTES", 50_000)
    made = executed(acme, {"topic": {"topic": "t", "message": "m" * 8000}})
    run = ScheduleRun.objects.select_related("schedule__account").get(pk=made.pk)
    topics.send([run] * 300)
    assert len(topics.read(acme, "t", limit=500)) < 150  # trimmed in whole nodes of the stream


def test_a_topic_fails_while_redis_is_away_and_is_tried_again(acme: Actor, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    topics.client.cache_clear()
    made = executed(acme, {"topic": {"topic": "t"}}, retries={"attempts": 2})
    topics.client.cache_clear()
    assert (made.state, made.message) == ("waiting", topic.AWAY)


@pytest.mark.usefixtures("tutorial_env")
def test_a_change_is_made_and_taken_back_once(acme: Actor) -> None:
    before = describe(Pool.objects.get(account=acme.account, name="shop"))
    made = executed(acme, shop(acme, balance="random"))
    assert made.state == "done", made.message
    assert Pool.objects.get(account=acme.account, name="shop").balance == "random"
    entry = Entry.objects.filter(object_kind="Pool", action="update").latest("pk")
    assert (entry.actor, f"run {made.pk}" in entry.reason) == ("schedule s", True)
    owed = due_now()
    assert (owed.state, owed.message) == ("done", "Pool shop has its previous value again.")
    assert describe(Pool.objects.get(account=acme.account, name="shop")) == before
    assert executed(acme, shop(acme)).message == "Pool shop already had this value."
    assert ScheduleRun.objects.filter(cause="restore").count() == 1


@pytest.mark.usefixtures("tutorial_env")
def test_what_somebody_changed_meanwhile_is_not_taken_back(acme: Actor) -> None:
    executed(acme, shop(acme, balance="random"))
    present = describe(Pool.objects.get(account=acme.account, name="shop"))
    save_object(actor=acme, kind="Pool", name="shop", spec=present | {"balance": "source"})
    owed = due_now()
    assert owed.state == "dead"
    assert "changed since" in owed.message
    assert Pool.objects.get(account=acme.account, name="shop").balance == "source"


@pytest.mark.usefixtures("tutorial_env")
def test_a_change_that_meets_somebody_elses_is_made_at_the_next_try(
    acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two schedules of one minute change one object: the second of them finds another version than it read."""
    pool, take = Pool.objects.get(account=acme.account, name="shop"), objects._take_version
    meeting = [pool.pk]

    def meet(row: Any) -> None:
        if meeting:
            Pool.objects.filter(pk=meeting.pop()).update(version=F("version") + 1)
        take(row)

    spec = NEVER | {"target": shop(acme, balance="random"), "retries": {"attempts": 2}}
    row = save_object(actor=acme, kind="Schedule", name="s", spec=spec)
    monkeypatch.setattr(objects, "_take_version", meet)
    made = run_now(actor=acme, schedule_id=row.pk)
    work_off(seconds=10)
    made.refresh_from_db()
    assert (made.state, made.message) == ("waiting", objects.SAME_TIME)
    ScheduleRun.objects.update(next_try_at=now())
    work_off(seconds=10)
    made.refresh_from_db()
    assert (made.state, made.message.partition(".")[0]) == ("done", "Pool shop was changed")


@pytest.mark.usefixtures("tutorial_env")
def test_what_a_schedule_made_is_deleted_again(acme: Actor) -> None:
    pool = {"kind": "Pool", "name": "guest", "spec": {"protocol": "http", "backends": []}}
    made = executed(acme, {"change": {"object": pool, "restore_after_s": 60}})
    assert made.message.startswith("Pool guest was created.")
    assert due_now().message == "Pool guest was deleted again."
    assert not Pool.objects.filter(name="guest").exists()


@pytest.mark.usefixtures("tutorial_env")
def test_a_change_is_checked_again_when_it_fires(acme: Actor, operator: Actor) -> None:
    route = {
        "load_balancer": "front",
        "hostname": "shop.acme.example",
        "path": "/sale",
        "action": {"pools": [{"pool": "spare"}]},
    }
    save_object(actor=acme, kind="Pool", name="spare", spec={"protocol": "http", "backends": []})
    target = {"change": {"object": {"kind": "Route", "name": "sale", "spec": route}}}
    row = save_object(actor=acme, kind="Schedule", name="s", spec=NEVER | {"target": target})
    Pool.objects.filter(name="spare").delete()
    made = run_now(actor=acme, schedule_id=row.pk)
    work_off(seconds=10)
    made.refresh_from_db()
    assert (made.state, made.message) == ("dead", "There is no pool spare.")
    assert not Entry.objects.filter(object_label="acme/sale").exists()


@pytest.mark.usefixtures("tutorial_env")
def test_a_suspended_account_changes_nothing(acme: Actor) -> None:
    row = save_object(actor=acme, kind="Schedule", name="s", spec=NEVER | {"target": shop(acme, balance="random")})
    made = run_now(actor=acme, schedule_id=row.pk)
    Account.objects.filter(pk=acme.account.pk).update(suspended_at=now())
    run = ScheduleRun.objects.select_related("schedule__account").get(pk=made.pk)
    with pytest.raises(TargetFailed, match="suspended"):
        TARGETS["change"].act(run, now())
    assert Pool.objects.get(account=acme.account, name="shop").balance != "random"


@pytest.mark.usefixtures("tutorial_env")
def test_a_push_is_wanted_once_per_fire(operator: Actor) -> None:
    made = executed(operator, {"rollout": {"fleet": "us-central1"}})
    assert made.state == "done", made.message
    assert Entry.objects.filter(object_kind="Fleet", action="push_again").count() == 1
    assert made.result["fleet"] == Fleet.objects.get(name="us-central1").name


def test_a_capacity_test_that_is_gone_is_said(acme: Actor) -> None:
    row = save_object(actor=acme, kind="Schedule", name="s", spec=NEVER | {"target": {"topic": {"topic": "t"}}})
    Schedule.objects.filter(pk=row.pk).update(target_kind="capacity_test", target={"name": "gone"})
    made = run_now(actor=acme, schedule_id=row.pk)
    run = ScheduleRun.objects.select_related("schedule__account").get(pk=made.pk)
    with pytest.raises(TargetFailed, match="capacity test gone no longer exists") as failure:
        capacity_test.act(run, now())
    assert failure.value.final


def test_what_is_sent_holds_what_the_caller_of_a_trigger_sent(acme: Actor, receiver: Receiver) -> None:
    made = executed(acme, {"webhook": {"url": receiver.url}})
    run = ScheduleRun.objects.select_related("schedule__account").get(pk=made.pk)
    run.body = '{"ref": "main"}'
    assert json.loads(webhook.body_of(run))["data"]["sent"] == '{"ref": "main"}'


def test_a_policy_is_closed_and_opened_again(acme: Actor) -> None:
    def closed(enabled: bool) -> dict[str, Any]:
        return {"rules": {"maintenance": {"enabled": enabled}}}

    policy = save_object(actor=acme, kind="Policy", name="closed", spec=closed(False))
    target = {"object": {"kind": "Policy", "name": "closed", "spec": closed(True)}, "restore_after_s": 60}
    assert executed(acme, {"change": target}).state == "done"
    policy.refresh_from_db()
    assert policy.rules == closed(True)["rules"]
    assert due_now().state == "done"
    policy.refresh_from_db()
    assert policy.rules == closed(False)["rules"]
