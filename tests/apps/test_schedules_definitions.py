"""Schedules: what is read is what is stored, the next instant, what may be booked, and what keeps one there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid
from apps.definitions.models import Pool, Schedule
from apps.definitions.reading.describing import describe
from apps.definitions.services import apply_document, delete_object, save_object
from apps.schedules.models import ScheduleRun

TOPIC = {"topic": {"topic": "nightly", "message": "go"}}
HOURLY: dict[str, Any] = {"when": {"cron": "0 * * * *"}, "target": TOPIC}


def book(actor: Actor, spec: dict[str, Any], name: str = "nightly", **more: Any) -> Schedule:
    """A schedule of the actor."""
    row: Schedule = save_object(actor=actor, kind="Schedule", name=name, spec=spec, **more)
    return row


def change(**spec: Any) -> dict[str, Any]:
    """A schedule that changes the pool shop of acme."""
    wanted = {"kind": "Pool", "name": "shop", "spec": spec}
    return HOURLY | {"target": {"change": {"object": wanted, "restore_after_s": 60}}}


def pointers(found: Any) -> list[str]:
    """Where the errors are."""
    return [field_error.pointer for field_error in found.value.field_errors]


@pytest.mark.parametrize(
    "when",
    [{"cron": "0 30 2 * * *"}, {"every_s": 90}, {"at": "2199-12-01T10:00:00"}, {"trigger": True}],
)
def test_a_schedule_reads_back_as_it_was_written(acme: Actor, when: dict[str, Any]) -> None:
    spec = {
        "when": when,
        "zone": "Europe/Berlin",
        "starts_at": "2026-01-01T00:00:00Z",
        "ends_at": "2199-12-31T00:00:00Z",
        "window_s": 10,
        "jitter_s": 5,
        "overlap": "queue",
        "catch_up": {"policy": "all", "window_s": 60},
        "retries": {"attempts": 4, "backoff_s": 7},
        "timeout_s": 9,
        "paused": False,
        "target": TOPIC,
    }
    row = book(acme, spec)
    assert describe(row) == spec
    assert (row.next_at is None) == ("trigger" in when)
    assert book(acme, spec).version == 1  # the same again changes nothing


def test_the_next_instant_stays_unless_the_time_has_changed(acme: Actor) -> None:
    row = book(acme, HOURLY)
    assert row.next_at is not None
    assert now() < row.next_at <= now() + timedelta(hours=1)
    booked = row.next_at + timedelta(hours=5)
    Schedule.objects.filter(pk=row.pk).update(next_at=booked)
    assert book(acme, HOURLY | {"timeout_s": 9}).next_at == booked
    assert book(acme, HOURLY | {"zone": "Asia/Kolkata"}).next_at != booked


def test_what_goes_on_after_a_pause_begins_anew(acme: Actor) -> None:
    row = book(acme, HOURLY | {"paused": True})
    Schedule.objects.filter(pk=row.pk).update(next_at=now() - timedelta(days=3))
    assert book(acme, HOURLY | {"timeout_s": 9}).paused  # nothing said: it stays so
    found = book(acme, HOURLY | {"paused": False}).next_at
    assert found is not None
    assert found > now()


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"when": {"cron": "61 * * * *"}}, "/spec/when/cron"),
        ({"when": {"cron": "0 * * * *", "every_s": 5}}, "/spec/when"),
        ({"when": {}}, "/spec/when"),
        ({"when": {"trigger": False}}, "/spec/when/trigger"),
        ({"when": {"every_s": 0}}, "/spec/when/every_s"),
        ({"when": {"at": "2026-02-30T00:00:00"}}, "/spec/when/at"),
        ({"when": {"at": "0001-01-01T00:00:00"}, "zone": "Asia/Tokyo"}, "/spec/when/at"),
        ({"when": {"at": "9999-12-31T23:59:59"}, "zone": "America/New_York"}, "/spec/when/at"),
        ({"starts_at": "0001-01-01T00:00:00Z"}, "/spec/starts_at"),
        ({"zone": "Mars/Olympus"}, "/spec/zone"),
        ({"starts_at": "2027-01-01T00:00:00Z", "ends_at": "2026-01-01T00:00:00Z"}, "/spec/ends_at"),
        ({"catch_up": {"policy": "sometimes"}}, "/spec/catch_up/policy"),
        ({"retries": {"attempts": 0}}, "/spec/retries/attempts"),
        ({"timeout_s": 301}, "/spec/timeout_s"),
        ({"target": {}}, "/spec/target"),
        ({"target": TOPIC | {"rollout": {"fleet": "f"}}}, "/spec/target"),
        ({"target": {"webhook": {"url": "https://169.254.169.254/x"}}}, "/spec/target/webhook/url"),
        ({"target": {"webhook": {"url": "https://a.example/x", "verb": "GET"}}}, "/spec/target/webhook/verb"),
        ({"target": {"topic": {"topic": "A b"}}}, "/spec/target/topic/topic"),
        ({"target": {"capacity_test": {"name": "none"}}}, "/spec/target/capacity_test/name"),
    ],
)
def test_every_error_is_named_where_it_stands(acme: Actor, spec: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Invalid) as found:
        book(acme, HOURLY | spec)
    assert pointer in pointers(found)
    assert not Schedule.objects.exists()


@pytest.mark.usefixtures("tutorial_env")
def test_a_change_is_tried_when_it_is_booked_and_changes_nothing_then(acme: Actor) -> None:
    before = describe(Pool.objects.get(account=acme.account, name="shop"))
    book(acme, change(**(before | {"balance": "random"})))
    assert describe(Pool.objects.get(account=acme.account, name="shop")) == before
    with pytest.raises(Invalid) as found:
        book(acme, change(protocol="tcp", backends=[]), "other")
    assert pointers(found) == ["/spec/target/change/object/spec/protocol"]


@pytest.mark.usefixtures("tutorial_env")
def test_a_schedule_changes_only_what_its_account_may_change(acme: Actor, globex: Actor, operator: Actor) -> None:
    foreign = change()
    foreign["target"]["change"]["object"]["account"] = "globex"
    with pytest.raises(Invalid) as found:
        book(acme, foreign)
    assert pointers(found) == ["/spec/target/change/object/account"]
    region = {"kind": "Region", "name": "us-central1", "spec": {"title": "Mine"}}
    with pytest.raises(Forbidden):
        book(acme, HOURLY | {"target": {"change": {"object": region}}})
    # An operator who books in a customer's account lends it no rights.
    with pytest.raises(Invalid):
        book(operator, HOURLY | {"target": {"change": {"object": region}}}, account="acme")
    with pytest.raises(Invalid):
        book(operator, HOURLY | {"target": {"rollout": {"fleet": "us-central1"}}}, account="acme")
    with pytest.raises(Forbidden):
        book(acme, HOURLY | {"target": {"rollout": {"fleet": "us-central1"}}})
    book(operator, HOURLY | {"target": {"rollout": {"fleet": "us-central1"}}})


@pytest.mark.usefixtures("tutorial_env")
def test_a_token_for_schedules_books_no_change_of_what_it_may_not_write(acme: Actor) -> None:
    narrow = Actor("token", acme.account, "editor", scopes=frozenset({"schedules:write"}))
    book(narrow, HOURLY)
    with pytest.raises(Forbidden, match="pools:write"):
        book(narrow, change(), "other")
    wider = Actor("token", acme.account, "editor", scopes=frozenset({"schedules:write", "pools:write"}))
    book(wider, change(**describe(Pool.objects.get(account=acme.account, name="shop"))), "other")


@pytest.mark.parametrize("kind", ["Account", "Certificate", "Schedule"])
def test_keys_accounts_and_schedules_are_not_changed_by_schedules(operator: Actor, kind: str) -> None:
    spec = {
        "Account": {"title": "x"},
        "Certificate": {"chain": "x"},
        "Schedule": HOURLY,
    }[kind]
    wanted = {"kind": kind, "name": "x", "spec": spec}
    with pytest.raises(Invalid) as found:
        book(operator, HOURLY | {"target": {"change": {"object": wanted}}})
    assert "/spec/target/change/object/kind" in pointers(found)


def test_a_schedule_and_what_it_changes_come_in_one_document(acme: Actor) -> None:
    pool = {"kind": "Pool", "name": "late", "spec": {"protocol": "http", "backends": []}}
    changed = pool | {"spec": pool["spec"] | {"balance": "random"}}  # type: ignore[operator] # a dict
    schedule = {"kind": "Schedule", "name": "s", "spec": HOURLY | {"target": {"change": {"object": changed}}}}
    plan = apply_document(actor=acme, objects=[schedule, pool], manager="pipeline")
    assert plan.counts["create"] == 2
    assert apply_document(actor=acme, objects=[schedule, pool], manager="pipeline").counts["unchanged"] == 2
    assert apply_document(actor=acme, objects=[], manager="pipeline", prune=True).counts["delete"] == 2


def test_no_account_has_more_schedules_than_its_quota(acme: Actor) -> None:
    acme.account.quotas = {"schedules": 1}
    acme.account.save()
    book(acme, HOURLY)
    with pytest.raises(Invalid, match="1 schedules"):
        book(acme, HOURLY, "second")


def test_a_schedule_goes_with_its_history_but_not_while_it_owes_a_change(acme: Actor) -> None:
    row, moment = book(acme, HOURLY), now()
    fields = {"schedule": row, "account": acme.account, "due_at": moment, "next_try_at": moment}
    ScheduleRun.objects.create(scheduled_at=moment, **fields)
    owed = ScheduleRun.objects.create(
        scheduled_at=moment + timedelta(seconds=1), cause=ScheduleRun.Cause.RESTORE, **fields
    )
    with pytest.raises(Conflict, match="restores"):
        delete_object(actor=acme, kind="Schedule", name="nightly")
    ScheduleRun.objects.filter(pk=owed.pk).update(state=ScheduleRun.State.DONE)
    delete_object(actor=acme, kind="Schedule", name="nightly")
    assert not ScheduleRun.objects.exists()
