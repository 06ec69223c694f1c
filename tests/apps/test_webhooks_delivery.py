"""Signed as the standard says, in order, again until it is taken, to nobody who may not know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from pytest_django.fixtures import Settings
from standardwebhooks import Webhook as Standard
from standardwebhooks import WebhookVerificationError

from apps.accounts.actors import Actor
from apps.audit import chain
from apps.audit.models import Entry
from apps.audit.services import record
from apps.core.clock import now
from apps.core.concurrency.backoff import retry_after
from apps.core.errors import Conflict
from apps.webhooks import backoff, delivering, events, following, services
from apps.webhooks.models import Attempt, Delivery, Follower, Webhook
from apps.webhooks.signing import new_secret
from tests.apps.at_once import at_once
from tests.receiver import Heard, Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who listens."""
    with receiving() as found:
        yield found


def listen(actor: Actor, receiver: Receiver, *types: str, name: str = "hook") -> tuple[Webhook, str]:
    """An endpoint of the actor's account, and its secret; its own making is not told."""
    spec = {"url": receiver.url, "event_types": list(types or ("route.*",))}
    return services.make_webhook(actor=actor, name=name, spec=spec)


def happen(actor: Actor, *labels: str, kind: str = "Route", action: str = "update", **more: Any) -> None:
    """Entries of the audit log, linked and followed."""
    for label in labels:
        record(actor=actor, action=action, kind=kind, object_id=1, label=label, **more)
    while chain.link_pending() or following.follow():
        continue


def deliver() -> None:
    """What the workers would do now."""
    for webhook_id in delivering.due_webhooks():
        delivering.deliver(webhook_id=webhook_id)


def later(**span: float) -> None:
    """Let time pass for everything that waits."""
    back = timedelta(**span)
    for row in Delivery.objects.exclude(next_at=None):
        Delivery.objects.filter(pk=row.pk).update(next_at=(row.next_at or now()) - back)
    for hook in Webhook.objects.all():
        moved = {
            field: value - back
            for field in ("not_before", "failing_since", "claimed_until", "previous_until")
            if (value := getattr(hook, field))
        }
        Webhook.objects.filter(pk=hook.pk).update(**moved)
    Attempt.objects.update(at=F("at") - back)


def told(heard: list[Heard]) -> list[str]:
    """The objects of what was heard."""
    return [json.loads(each.body)["data"]["object"] for each in heard]


def test_a_message_is_what_the_standard_says_and_its_own_library_verifies_it(acme: Actor, receiver: Receiver) -> None:
    _, secret = listen(acme, receiver)
    happen(acme, "acme/shop", before={"path": "/a"}, after={"path": "/b"}, version=2, reason="moved")
    deliver()
    (heard,) = receiver.heard
    message = Standard(secret).verify(heard.body, dict(heard.headers))
    assert set(message) == {"type", "timestamp", "data"}
    assert message["type"] == "route.updated"
    data = message["data"]
    assert (data["object"], data["before"], data["after"]) == ("acme/shop", {"path": "/a"}, {"path": "/b"})
    assert (data["actor"], data["reason"], data["version"]) == ("somebody of acme", "moved", 2)
    assert heard.headers["Content-Type"] == "application/json"
    assert heard.path == "/hook"
    with pytest.raises(WebhookVerificationError):
        Standard(secret).verify(heard.body.replace(b"/b", b"/c"), dict(heard.headers))
    with pytest.raises(WebhookVerificationError):
        Standard(new_secret()).verify(heard.body, dict(heard.headers))


def test_two_secrets_sign_for_a_day_after_a_rotation(acme: Actor, receiver: Receiver) -> None:
    hook, old = listen(acme, receiver)
    new = services.rotate_secret(actor=acme, webhook_id=hook.pk)
    happen(acme, "acme/shop")
    deliver()
    for secret in (old, new):
        Standard(secret).verify(receiver.heard[0].body, dict(receiver.heard[0].headers))
    later(hours=24)
    happen(acme, "acme/shop")
    deliver()
    Standard(new).verify(receiver.heard[1].body, dict(receiver.heard[1].headers))
    with pytest.raises(WebhookVerificationError):
        Standard(old).verify(receiver.heard[1].body, dict(receiver.heard[1].headers))


def test_secrets_are_sealed_in_the_database_and_nowhere_in_the_record(acme: Actor, receiver: Receiver) -> None:
    hook, secret = listen(acme, receiver)
    services.rotate_secret(actor=acme, webhook_id=hook.pk)
    stored = Webhook.objects.get(pk=hook.pk)
    assert secret.encode() not in bytes(stored.previous_secret or b"")
    texts = json.dumps([[row.before, row.after, row.object_label] for row in Entry.objects.all()])
    assert "whsec" not in texts


def test_messages_come_in_the_order_of_the_record_and_each_once(acme: Actor, receiver: Receiver) -> None:
    listen(acme, receiver)
    labels = [f"acme/{number}" for number in range(30)]
    happen(acme, *labels)
    deliver()
    deliver()
    assert told(receiver.heard) == labels
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}


def test_customers_are_told_of_their_own_account_only_and_operators_of_all(
    acme: Actor, globex: Actor, operator: Actor, receiver: Receiver
) -> None:
    with receiving() as house:
        listen(acme, receiver, "*")
        listen(operator, house, "route.*")
        happen(globex, "globex/secret")
        happen(acme, "acme/shop")
        deliver()
    assert "globex" not in str([each.body for each in receiver.heard])
    assert told(house.heard) == ["globex/secret", "acme/shop"]


@pytest.mark.parametrize(
    ("types", "told_of"),
    [
        (["*"], {"route.updated", "limit.changed", "rollout.finished", "token.deleted"}),
        (["route.*"], {"route.updated"}),
        (["route.created"], set()),
        (["limit.changed", "token.*"], {"limit.changed", "token.deleted"}),
    ],
)
def test_only_what_was_asked_for_is_told(acme: Actor, receiver: Receiver, types: list[str], told_of: set[str]) -> None:
    listen(acme, receiver, *types)
    happen(acme, "x", kind="Route")
    happen(acme, "x", kind="Backend")
    happen(acme, "x", kind="Rollout", action="finish")
    happen(acme, "x", kind="Token", action="delete")
    deliver()
    heard = {json.loads(each.body)["type"] for each in receiver.heard}
    assert heard - {"webhook.created"} == told_of


def test_what_was_before_an_endpoint_is_not_told_to_it(acme: Actor, receiver: Receiver) -> None:
    record(actor=acme, action="update", kind="Route", object_id=1, label="acme/old")
    listen(acme, receiver)
    happen(acme, "acme/new")
    deliver()
    assert told(receiver.heard) == ["acme/new"]


def test_a_failure_is_tried_again_with_the_same_id_until_it_is_taken(acme: Actor, receiver: Receiver) -> None:
    hook, _ = listen(acme, receiver)
    receiver.answer(500, 302, 204)
    happen(acme, "acme/shop")
    for _ in range(3):
        deliver()
        deliver()  # nothing is due twice
        later(hours=1)
    assert len(receiver.heard) == 3
    assert len({each.headers["webhook-id"] for each in receiver.heard}) == 1
    delivery = Delivery.objects.get()
    assert (delivery.state, [each.status for each in delivery.attempts.all()]) == ("delivered", [500, 302, 204])
    hook.refresh_from_db()
    assert (hook.failures, hook.failing_since) == (0, None)


def test_after_the_last_attempt_a_delivery_is_over_and_can_be_sent_again_by_hand(
    acme: Actor, receiver: Receiver
) -> None:
    hook, _ = listen(acme, receiver)
    receiver.answer(500)
    happen(acme, "acme/shop")
    for _ in range(12):
        deliver()
        later(hours=11)
    delivery = Delivery.objects.get()
    assert (delivery.state, len(receiver.heard), delivery.tries) == ("failed", 8, 8)
    receiver.answer(200)
    services.redeliver(actor=acme, webhook_id=hook.pk, delivery_id=delivery.pk)
    deliver()
    delivery.refresh_from_db()
    assert delivery.state == "delivered"
    assert len({each.headers["webhook-id"] for each in receiver.heard}) == 1


def test_an_endpoint_that_fails_for_five_days_is_switched_off_and_the_record_says_so(
    acme: Actor, receiver: Receiver
) -> None:
    hook, _ = listen(acme, receiver)
    receiver.answer(500)
    for number in range(13):
        happen(acme, f"acme/{number}")
        deliver()
        later(hours=10)
    hook.refresh_from_db()
    assert (hook.enabled, hook.disabled_reason) == (False, "Every attempt failed for five days.")
    entry = Entry.objects.get(action="disable")
    assert (entry.actor, entry.account, entry.object_label) == ("spillway", acme.account, "acme/hook")
    assert not Delivery.objects.filter(state="waiting").exists()
    heard = len(receiver.heard)
    happen(acme, "acme/later")
    deliver()
    assert len(receiver.heard) == heard


def test_410_switches_an_endpoint_off_at_once(acme: Actor, receiver: Receiver) -> None:
    hook, _ = listen(acme, receiver)
    receiver.answer(410)
    happen(acme, "acme/a", "acme/b")
    deliver()
    later(days=1)
    deliver()
    hook.refresh_from_db()
    assert (len(receiver.heard), hook.enabled) == (1, False)
    assert "410" in hook.disabled_reason


def test_switched_on_again_an_endpoint_starts_afresh(acme: Actor, receiver: Receiver) -> None:
    hook, _ = listen(acme, receiver)
    receiver.answer(410, 204)
    happen(acme, "acme/a")
    deliver()
    services.change_webhook(actor=acme, webhook_id=hook.pk, spec={"enabled": True})
    happen(acme, "acme/b")
    deliver()
    assert told(receiver.heard) == ["acme/a", "acme/b"]


def test_retry_after_is_respected(acme: Actor, receiver: Receiver) -> None:
    listen(acme, receiver)
    receiver.answers[:] = [(429, {"Retry-After": "3600"}, b""), (204, {}, b"")]
    happen(acme, "acme/a")
    deliver()
    later(minutes=50)
    deliver()
    assert len(receiver.heard) == 1
    later(minutes=11)
    deliver()
    assert len(receiver.heard) == 2


@pytest.mark.both_engines
def test_an_endpoint_that_is_slow_does_not_delay_another(acme: Actor, receiver: Receiver) -> None:
    with receiving() as slow:
        first, _ = listen(acme, slow, name="slow")
        listen(acme, receiver, name="quick")
        happen(acme, "acme/a", "acme/b")
        assert delivering._claim(first.pk) is not None  # somebody is busy with the slow one
        assert delivering._claim(first.pk) is None
        deliver()
    assert (len(slow.heard), len(receiver.heard)) == (0, 2)


def test_what_waits_behind_a_failure_is_left_alone_for_a_while(acme: Actor, receiver: Receiver) -> None:
    listen(acme, receiver)
    receiver.answer(500, 204)
    happen(acme, *(f"acme/{number}" for number in range(5)))
    deliver()
    deliver()
    assert len(receiver.heard) == 1
    later(seconds=7)
    deliver()
    assert len(receiver.heard) == 6
    assert not Delivery.objects.exclude(state="delivered").exists()


@pytest.mark.both_engines
def test_a_worker_that_died_is_missed_when_its_lease_ends_and_the_message_is_the_same(
    acme: Actor, receiver: Receiver
) -> None:
    hook, _ = listen(acme, receiver)
    happen(acme, "acme/a")
    delivery = Delivery.objects.get()
    assert delivering._claim(hook.pk) == 1
    assert delivering.attempt(delivery).delivered  # sent, but it died before it wrote that down
    deliver()
    assert len(receiver.heard) == 1
    later(seconds=16)
    deliver()
    assert len(receiver.heard) == 2
    assert receiver.heard[0].headers["webhook-id"] == receiver.heard[1].headers["webhook-id"]
    assert receiver.heard[0].body == receiver.heard[1].body
    assert Delivery.objects.get().state == "delivered"


@pytest.mark.both_engines
def test_a_worker_that_was_taken_for_dead_writes_nothing(acme: Actor, receiver: Receiver) -> None:
    hook, _ = listen(acme, receiver)
    happen(acme, "acme/a")
    delivery = Delivery.objects.get()
    late = delivering._claim(hook.pk)
    assert late is not None
    later(seconds=16)
    deliver()
    assert not delivering._note(delivery, late, delivering.Outcome(500, 1))
    assert Attempt.objects.count() == 1


@pytest.mark.both_engines
def test_following_twice_makes_nothing_twice_and_a_step_that_failed_is_made_again(
    acme: Actor, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen(acme, receiver)
    chain.link_pending()
    following.follow()
    record(actor=acme, action="update", kind="Route", object_id=1, label="acme/a")
    chain.link_pending()
    with monkeypatch.context() as patch:
        patch.setattr(Follower, "save", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            following.follow()
    assert not Delivery.objects.exists()
    following.follow()
    following.follow()
    assert Delivery.objects.count() == 1


def test_a_private_address_is_refused_when_it_is_called_and_the_log_says_why(
    acme: Actor, receiver: Receiver, settings: Settings
) -> None:
    listen(acme, receiver)
    settings.OUTBOUND_NETWORKS = []
    happen(acme, "acme/a")
    deliver()
    assert receiver.heard == []
    assert "loopback" in Attempt.objects.get().error


def test_a_redirect_to_the_metadata_service_is_a_failure_and_is_not_followed(acme: Actor, receiver: Receiver) -> None:
    listen(acme, receiver)
    receiver.answers[:] = [(307, {"Location": "http://169.254.169.254/latest/meta-data"}, b"")]
    happen(acme, "acme/a")
    deliver()
    assert [each.status for each in Attempt.objects.all()] == [307]


def test_only_the_printable_beginning_of_an_answer_is_kept(acme: Actor, receiver: Receiver) -> None:
    listen(acme, receiver)
    receiver.answers[:] = [(500, {}, b"\x1b[31mno\x00\xff" + b"x" * 5000)]
    happen(acme, "acme/a")
    deliver()
    answer = Attempt.objects.get().answer
    assert answer.startswith("\\x1b[31mno\\x00\ufffdxxx")
    assert answer.count("x") < 1030


def test_a_document_that_is_too_large_for_a_message_is_left_out_and_said_so(acme: Actor, receiver: Receiver) -> None:
    listen(acme, receiver)
    happen(acme, "acme/a", after={"text": "x" * 300_000})
    deliver()
    data = json.loads(receiver.heard[0].body)["data"]
    assert (data["after"], data["shortened"]) == (None, True)


def test_a_suspended_account_is_told_nothing_until_it_is_resumed(acme: Actor, receiver: Receiver) -> None:
    listen(acme, receiver)
    happen(acme, "acme/a")
    acme.account.suspended_at = now()
    acme.account.save()
    deliver()
    assert receiver.heard == []
    acme.account.suspended_at = None
    acme.account.save()
    deliver()
    assert told(receiver.heard) == ["acme/a"]


def test_a_test_event_is_signed_like_any_other_and_refused_by_an_endpoint_that_is_off(
    acme: Actor, receiver: Receiver
) -> None:
    hook, secret = listen(acme, receiver)
    services.send_test(actor=acme, webhook_id=hook.pk)
    deliver()
    message = Standard(secret).verify(receiver.heard[0].body, dict(receiver.heard[0].headers))
    assert message["type"] == "webhook.test"
    services.change_webhook(actor=acme, webhook_id=hook.pk, spec={"enabled": False})
    with pytest.raises(Conflict):
        services.send_test(actor=acme, webhook_id=hook.pk)


def test_what_ended_long_ago_is_forgotten(acme: Actor, receiver: Receiver) -> None:
    listen(acme, receiver)
    happen(acme, "acme/a")
    deliver()
    delivering.prune(now() + timedelta(days=29))
    assert Delivery.objects.count() == 1
    delivering.prune(now() + timedelta(days=31))
    assert (Delivery.objects.count(), Attempt.objects.count()) == (0, 0)


def test_the_delays_are_those_of_the_standard_with_a_little_chance() -> None:
    moment = now()
    delays = [((backoff.next_attempt(tries, moment) or moment) - moment).total_seconds() for tries in range(1, 8)]
    wanted = [5, 300, 1800, 7200, 18000, 36000, 36000]
    assert all(plain <= delay <= plain * 1.1 for plain, delay in zip(wanted, delays, strict=True))
    assert backoff.next_attempt(8, moment) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("120", 120), ("0", 0), ("99999999", 86400), ("-1", None), ("soon", None), ("", None), ("٣", None)),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Fri, 31 Dec 2999 23:59:59 GMT", 86400),
        ("Wed, 21 Oct 2015 07:28:00 +99999999999999999999", None),
    ],
)
def test_retry_after_is_read_in_both_forms_and_never_for_more_than_a_day(text: str, seconds: int | None) -> None:
    found = retry_after({"retry-after": text}, now())
    assert (None if found is None else found.total_seconds()) == seconds


def test_every_named_event_can_be_asked_for() -> None:
    named = [*events._NAMED.values(), events.type_of(Entry(object_kind="StaticIP", action="update"))]
    for event in named:
        noun, _, verb = event.partition(".")
        assert verb in events.CATALOGUE[noun]


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_workers_that_race_for_an_endpoint_send_each_message_once(acme: Actor, receiver: Receiver) -> None:
    hook, _ = listen(acme, receiver)
    happen(acme, *(f"acme/{number}" for number in range(8)))

    at_once(*[lambda: delivering.deliver(webhook_id=hook.pk)] * 4)
    deliver()
    assert told(receiver.heard) == [f"acme/{number}" for number in range(8)]


# What services, interfaces and commands write today; an action without a word in the catalogue cannot be asked for.
RECORDED = {
    "Route": "create update delete take_back share_again",
    "Pool": "create update delete",
    "Server": "update",
    "Backend": "update",
    "Region": "create update delete drain undrain",
    "Fleet": "create update delete roll_back resume push_again",
    "Hostname": "claim verify release end_cooldown lose_verification",
    "Account": "create update delete impersonate stop_impersonating",
    "Membership": "update delete accept",
    "Person": "create sign_in sign_out end_sessions change_password add_second_factor remove_second_factor"
    " fail_second_factor renew_recovery_codes connect_provider disconnect_provider",
    "Webhook": "create update delete rotate disable",
    "Token": "create delete",
    "Invitation": "create delete",
    "Grant": "create update delete",
    "LoadBalancer": "create update delete",
    "Rollout": "finish",
    "CapacityTest": "create update delete",
    "Run": "request approve stop finish",
    "Comparison": "compare",
    "Blackout": "create delete",
}


@pytest.mark.parametrize("kind", RECORDED)
def test_whatever_is_recorded_can_be_asked_for_by_name(kind: str) -> None:
    for action in RECORDED[kind].split():
        noun, _, verb = events.type_of(Entry(object_kind=kind, action=action)).partition(".")
        assert verb in events.CATALOGUE[noun], action
