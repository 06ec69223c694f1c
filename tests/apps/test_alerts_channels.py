"""Every type of channel speaks as its receiver wants it, and passes nothing on that could do something there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.alerts import services
from apps.alerts.models import Notification, Told
from apps.alerts.sending.delivering import SENDERS
from apps.alerts.telling.planning import AGAIN_AFTER
from apps.core.errors import Invalid
from apps.definitions.models import AlertChannel
from apps.definitions.services import save_object
from apps.definitions.shapes.operations.alert_channel import CHATS, NEEDS, TYPES
from apps.observe.evaluate.conditions import Reason, Type
from tests.apps.alerts_env import Installation, make_pool
from tests.receiver import Receiver, receiving

HOSTILE = "a (<!channel> @everyone [x](https://evil.example) *b* &amp; <https://evil.example|ok>)"


@pytest.fixture
def installation(tutorial_env: Actor) -> Installation:
    """The tutorial's installation."""
    return Installation()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who listens."""
    with receiving() as found:
        found.answer(202)
        yield found


def channel(actor: Actor, type_: str, receiver: Receiver) -> AlertChannel:
    """A channel of the type that leads to the receiver."""
    spec: dict[str, Any] = {"type": type_, "secret": receiver.url if type_ in CHATS else "key-1"}
    if type_ not in CHATS:
        spec["url"] = receiver.url
    row: AlertChannel = save_object(actor=actor, kind="AlertChannel", name=type_, spec=spec)
    return row


def tell(installation: Installation, actor: Actor, receiver: Receiver, message: str = "No server is up.") -> Any:
    """A pool goes down and comes back; what the receiver heard in between and in the end."""
    pool = make_pool(actor, "mine", "10.1.0.1")
    installation.verdict("pool", pool.pk, Type.HEALTHY, False, Reason.NO_SERVER_UP, message)
    installation.tick()
    installation.deliver()
    begun = len(receiver.heard)
    installation.healthy(pool)
    installation.tick(times=12)
    installation.deliver()
    bodies = [json.loads(each.body) for each in receiver.heard]
    return bodies[:begun], bodies[begun:]


def test_every_type_has_a_sender_and_says_what_it_needs() -> None:
    assert set(SENDERS) == set(TYPES) == set(NEEDS)


@pytest.mark.parametrize("type_", ["slack", "mattermost"])
def test_chats_of_slacks_kind_mention_nobody_and_hide_no_link(
    installation: Installation, acme: Actor, receiver: Receiver, type_: str
) -> None:
    channel(acme, type_, receiver)
    (begun,), (over,) = tell(installation, acme, receiver, HOSTILE)
    assert begun["text"].startswith("*[Critical] Pool mine is down*\n")
    assert over["text"].startswith("*[Resolved] Pool mine is down*\n")
    assert "<!channel>" not in begun["text"]
    assert "@everyone" not in begun["text"]
    assert begun["text"].count("<") == 1  # the link to the page, which is ours


def test_discord_mentions_nobody_and_stays_within_its_length(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    channel(acme, "discord", receiver)
    (begun,), _ = tell(installation, acme, receiver, HOSTILE * 20)
    assert begun["allowed_mentions"] == {"parse": []}
    assert "@everyone" not in begun["content"]
    assert "[x](" not in begun["content"]
    assert len(begun["content"]) <= 2000
    assert "/alerts/" in begun["content"].splitlines()[-1]


def test_teams_gets_a_card_with_the_page_as_its_button(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    channel(acme, "teams", receiver)
    (begun,), _ = tell(installation, acme, receiver, HOSTILE)
    card = begun["attachments"][0]["content"]
    assert card["body"][0]["text"] == "\\[Critical\\] Pool mine is down"
    assert card["actions"][0]["url"].endswith(f"/alerts/{Told.objects.get().alert_id}")
    assert "[x](" not in json.dumps(card["body"]).replace("\\\\", "\\").replace("\\[", "")


def test_pagerduty_begins_and_ends_one_incident(installation: Installation, acme: Actor, receiver: Receiver) -> None:
    channel(acme, "pagerduty", receiver)
    (begun,), (over,) = tell(installation, acme, receiver)
    assert (begun["event_action"], over["event_action"]) == ("trigger", "resolve")
    assert begun["dedup_key"] == over["dedup_key"] == f"spillway-{Told.objects.get().thread}"
    assert begun["routing_key"] == "key-1"
    assert begun["payload"]["severity"] == "critical"
    assert begun["payload"]["summary"] == "Pool mine is down"


def test_opsgenie_opens_and_closes_one_alert(installation: Installation, acme: Actor, receiver: Receiver) -> None:
    channel(acme, "opsgenie", receiver)
    (begun,), _ = tell(installation, acme, receiver)
    alias = f"spillway-{Told.objects.get().thread}"
    assert (begun["alias"], begun["priority"]) == (alias, "P1")
    assert [each.headers["Authorization"] for each in receiver.heard] == ["GenieKey key-1"] * 2
    assert receiver.heard[1].path == f"/hook/{alias}/close?identifierType=alias"


def test_alertmanager_hears_how_long_it_holds_and_again_before_that(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    row = channel(acme, "alertmanager", receiver)
    pool = make_pool(acme, "mine", "10.1.0.1")
    installation.pool(pool)
    installation.tick()
    installation.deliver()
    alerts = json.loads(receiver.heard[0].body)
    holding = [
        alert for alert in alerts if alert["endsAt"] > alert["startsAt"] and alert["labels"]["severity"] == "critical"
    ]
    assert len(holding) == 1
    assert len({json.dumps(alert["labels"], sort_keys=True) for alert in alerts}) == 3
    Told.objects.update(delivered_at=installation.at - AGAIN_AFTER)
    installation.tick()
    installation.tick()
    assert Notification.objects.filter(channel=row).count() == 2


@pytest.mark.parametrize("type_", ["pagerduty", "opsgenie"])
def test_a_test_wakes_nobody_for_long(installation: Installation, acme: Actor, receiver: Receiver, type_: str) -> None:
    services.send_test(actor=acme, channel_id=channel(acme, type_, receiver).pk)
    installation.deliver()
    assert len(receiver.heard) == 2  # begun, and ended at once


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"type": "slack"}, "/spec/secret"),
        ({"type": "slack", "secret": "no-url"}, "/spec/secret"),
        ({"type": "slack", "secret": "https://10.0.0.1/x"}, "/spec/secret"),
        ({"type": "slack", "secret": "https://chat.example/x", "url": "https://a.example"}, "/spec/url"),
        ({"type": "email", "to": ["a@b.example"], "secret": "x"}, "/spec/secret"),
        ({"type": "alertmanager"}, "/spec/url"),
        ({"type": "webhook", "url": "https://a.example", "secret": "short"}, "/spec/secret"),
        ({"type": "webhook", "url": "https://a.example", "secret": "x", "severities": []}, "/spec/severities"),
        ({"type": "pigeon"}, "/spec/type"),
    ],
)
def test_what_a_type_does_not_take_is_refused_by_its_field(acme: Actor, spec: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Invalid) as refusal:
        save_object(actor=acme, kind="AlertChannel", name="x", spec=spec)
    assert pointer in [error.pointer for error in refusal.value.field_errors]
    assert "no-url" not in str(refusal.value.field_errors)
