"""What is stored arrives: by mail and signed, again until it is taken, in order, and with nothing added on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings
from standardwebhooks import Webhook as Standard

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname, Membership, User
from apps.alerts import services
from apps.alerts.models import Alert, ChannelState, Notification, Told
from apps.alerts.sending import delivering
from apps.alerts.telling.messages import one_line
from apps.core.clock import now
from apps.core.errors import Conflict, Invalid
from apps.core.secrets.sealing import unseal
from apps.definitions.models import AlertChannel, Pool, Server
from apps.definitions.reading.describing import describe
from apps.definitions.services import save_object
from apps.observe.evaluate.conditions import Reason, Type
from tests.apps.alerts_env import Installation, hook, mailing, make_pool
from tests.receiver import Receiver, receiving
from tests.smtp_sink import Sink


@pytest.fixture
def installation(tutorial_env: Actor) -> Installation:
    """The tutorial's installation."""
    return Installation()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who listens."""
    with receiving() as found:
        yield found


@pytest.fixture
def sink(settings: Settings) -> Iterator[Sink]:
    """The installation's mail server."""
    with mailing(settings) as found:
        yield found


def mailbox(actor: Actor, *to: str, name: str = "mail") -> AlertChannel:
    """A channel of mail."""
    row: AlertChannel = save_object(
        actor=actor, kind="AlertChannel", name=name, spec={"type": "email", "to": list(to or ("ops@acme.example",))}
    )
    return row


def test_a_mail_says_cause_since_when_what_it_affects_and_where_to_look(
    installation: Installation, operator: Actor, sink: Sink, settings: Settings
) -> None:
    settings.CONSOLE_URL = "https://console.example"
    mailbox(operator)
    pool = make_pool(operator, "basket", "10.1.0.1")
    installation.pool(pool)
    installation.tick()
    installation.deliver()
    (mail,) = sink.mails
    assert mail.recipients == ("ops@acme.example",)
    assert mail.message["Subject"] == "[Critical] Pool basket is down"
    assert mail.message["Auto-Submitted"] == "auto-generated"
    alert = Alert.objects.get(account=operator.account)
    assert f"Since: {alert.since:%Y-%m-%d %H:%M:%S} UTC" in mail.text
    assert "* Pool basket is down: No server is up: a (L4CON)." in mail.text
    assert f"https://console.example/alerts/{alert.pk}" in mail.text
    installation.healthy(pool)
    installation.tick(4, times=4)
    installation.deliver()
    begun, over = sink.mails
    assert over.message["Subject"] == "[Resolved] Pool basket is down"
    assert over.message["References"] == begun.message["References"]  # one thread in the mailbox


@pytest.mark.parametrize(
    "words", ["x\r\nBcc: victim@example.com", "x\nSubject: y", "x\u2028y\u0001z", "\r\n.\r\nMAIL FROM:<x@y>", "é" * 500]
)
def test_no_text_of_a_server_adds_a_header_a_line_or_a_recipient(
    installation: Installation, operator: Actor, sink: Sink, words: str
) -> None:
    mailbox(operator)
    pool = make_pool(operator, "basket", "10.1.0.1")
    installation.pool(pool)
    installation.tick()
    row = Notification.objects.get(channel__name="mail")
    row.content |= {"title": words, "lines": [one_line(words)]}  # as if a title could hold it
    row.save()
    installation.deliver()
    (mail,) = sink.mails
    assert mail.recipients == ("ops@acme.example",)
    assert mail.message["Bcc"] is None
    assert len(mail.message.get_all("Subject") or ()) == 1


def test_what_a_check_answered_is_one_line_of_a_message(
    installation: Installation, operator: Actor, sink: Sink
) -> None:
    mailbox(operator)
    pool = make_pool(operator, "basket", "10.1.0.1")
    message = "No server is up: a (x\r\n\r\nSince: never\r\n.\r\nMAIL FROM:<x@y>\u2028\x01z)."
    installation.verdict("pool", pool.pk, Type.HEALTHY, False, Reason.NO_SERVER_UP, message)
    installation.tick()
    installation.deliver()
    (mail,) = sink.mails
    lines = [line for line in mail.text.splitlines() if "MAIL FROM" in line]
    assert lines == ["* Pool basket is down: No server is up: a (x Since: never . MAIL FROM:<x@y> z)."]


@pytest.mark.parametrize(
    "address",
    ["ops@acme.example\nBcc: x@y.example", "a b@acme.example", "ops@acme", "<ops@acme.example>", "", "\x00@a.b"],
)
def test_what_is_no_address_is_refused_by_its_field(operator: Actor, sink: Sink, address: str) -> None:
    with pytest.raises(Invalid) as refusal:
        mailbox(operator, address)
    assert refusal.value.field_errors[0].pointer == "/spec/to/0"


def test_a_customer_mails_its_own_people_and_domains_alone(installation: Installation, acme: Actor, sink: Sink) -> None:
    with pytest.raises(Invalid) as refusal:
        mailbox(acme, "victim@elsewhere.example")
    assert refusal.value.field_errors[0].code == "stranger"
    person = User.objects.create(username="ann", email="Ann@elsewhere.example")
    Membership.objects.create(account=acme.account, user=person, role="viewer")
    mailbox(acme, "ann@elsewhere.example")
    Hostname.objects.create(account=acme.account, name="acme.net", verification="dns", verified_at=now())
    mailbox(acme, "ops@acme.net", "ops@mail.acme.net", name="own")
    with pytest.raises(Invalid):
        mailbox(acme, "ops@notacme.net", name="other")


def test_a_signed_message_is_verified_by_any_library_of_the_standard(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    channel = hook(acme, url=receiver.url)
    secret = unseal(bytes(channel.sealed_secret or b"")).decode()
    installation.pool(make_pool(acme, "mine", "10.1.0.1"))
    installation.tick()
    installation.deliver()
    (heard,) = receiver.heard
    message = Standard(secret).verify(heard.body, dict(heard.headers))
    assert message["type"] == "alert.firing"
    assert message["data"]["title"] == "Pool mine is down"
    told = Told.objects.get(channel=channel)
    assert told.delivered_at is not None


def test_what_is_not_taken_is_tried_again_with_the_same_key_and_given_up_in_the_end(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    channel = hook(acme, url=receiver.url)
    receiver.answer(500)
    installation.pool(make_pool(acme, "mine", "10.1.0.1"))
    installation.tick()
    for _ in range(len(delivering.DELAYS) + 3):
        Notification.objects.filter(state="waiting").update(next_at=now() - timedelta(seconds=1))
        installation.deliver()
    row = Notification.objects.get(channel=channel)
    assert (row.state, row.tries) == ("failed", len(delivering.DELAYS) + 1)
    assert len({heard.headers["webhook-id"] for heard in receiver.heard}) == 1
    state = ChannelState.objects.get(channel=channel)
    assert (state.failures, state.error) == (row.tries, "It answered 500.")


def test_a_failing_channel_is_told_of_by_the_others_and_not_by_itself(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    bad, good = hook(acme, url=receiver.url, name="bad"), hook(acme, name="good")
    receiver.answer(500)
    installation.pool(make_pool(acme, "mine", "10.1.0.1"))
    installation.tick()
    for _ in range(2):
        Notification.objects.filter(channel=bad).update(next_at=now() - timedelta(seconds=1))
        ChannelState.objects.update(not_before=None)
        delivering.deliver(bad.pk)
    installation.tick(11, times=2)
    assert "Channel bad does not take messages" in [each["title"] for each in installation.messages(good)]
    assert "Channel bad does not take messages" not in [each["title"] for each in installation.messages(bad)]


def test_a_slow_receiver_is_spoken_to_by_one_thread_at_a_time(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    channel = hook(acme, url=receiver.url)
    installation.pool(make_pool(acme, "mine", "10.1.0.1"))
    installation.tick()
    ChannelState.objects.create(channel=channel, claimed_until=now() + timedelta(seconds=20), attempt=1)
    assert delivering.due_channels() == []
    assert delivering.deliver(channel.pk) == 0.0
    assert receiver.heard == []
    # The control: when that thread's process died, its lease ends and another one goes on.
    ChannelState.objects.update(claimed_until=now() - timedelta(seconds=1))
    installation.deliver()
    assert len(receiver.heard) == 1


def test_one_that_arrived_although_it_was_dropped_meanwhile_gets_its_end(
    installation: Installation, acme: Actor, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, pool = hook(acme, url=receiver.url), make_pool(acme, "mine", "10.1.0.1")
    installation.pool(pool)
    installation.tick()
    send = delivering.attempt

    def meanwhile(row: Notification) -> object:
        outcome = send(row)
        if row.event == "firing":
            installation.healthy(pool)
            installation.tick(4, times=4)  # resolved and dropped while the request is under way
        return outcome

    monkeypatch.setattr(delivering, "attempt", meanwhile)
    installation.deliver()
    installation.tick()
    installation.deliver()
    assert [json.loads(heard.body)["type"] for heard in receiver.heard] == ["alert.firing", "alert.resolved"]
    assert Told.objects.get(channel=channel).closed


def test_a_test_says_that_it_is_one_and_is_not_sent_again_and_again(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    channel = hook(acme, url=receiver.url)
    services.send_test(actor=acme, channel_id=channel.pk)
    with pytest.raises(Conflict):
        services.send_test(actor=acme, channel_id=channel.pk)
    installation.deliver()
    assert json.loads(receiver.heard[0].body)["type"] == "alert.test"


def test_a_test_does_not_wait_for_the_pause_after_a_failure(installation: Installation, acme: Actor) -> None:
    channel = hook(acme)
    later = now() + timedelta(hours=1)
    ChannelState.objects.create(channel=channel, failures=9, failing_since=now(), not_before=later)
    waiting = {"event": "firing", "thread": "x", "content": {}, "next_at": now(), "created_at": now()}
    Notification.objects.create(channel=channel, **waiting)
    assert delivering.due_channels() == []
    services.send_test(actor=acme, channel_id=channel.pk)
    assert delivering.due_channels() == [channel.pk]


def test_private_addresses_are_not_called(
    installation: Installation, acme: Actor, settings: Settings, receiver: Receiver
) -> None:
    settings.OUTBOUND_NETWORKS = []
    with pytest.raises(Invalid) as refusal:
        hook(acme, url="https://10.0.0.1/x")
    assert refusal.value.field_errors[0].pointer == "/spec/url"
    with pytest.raises(Invalid):
        hook(acme, url="https://127.0.0.1/x")


def test_a_secret_is_sealed_and_stands_in_no_document(acme: Actor) -> None:
    channel = hook(acme)
    row = AlertChannel.objects.get(pk=channel.pk)
    assert "secret" not in describe(row)
    assert b"whsec_" not in bytes(row.sealed_secret or b"")


def test_a_schedule_keeps_no_secret_of_a_channel(installation: Installation, acme: Actor) -> None:
    spec = {"type": "webhook", "url": "https://hooks.example/x", "secret": "whsec_" + "QUJD" * 10}
    change = {"object": {"kind": "AlertChannel", "name": "later", "spec": spec}}
    with pytest.raises(Invalid) as refusal:
        save_object(
            actor=acme,
            kind="Schedule",
            name="later",
            spec={"when": {"trigger": True}, "target": {"change": change}},
        )
    assert "secret" in {error.code for error in refusal.value.field_errors}


def test_mail_needs_a_mail_server(operator: Actor, settings: Settings) -> None:
    settings.MAILS = False
    with pytest.raises(Invalid) as refusal:
        mailbox(operator)
    assert refusal.value.field_errors[0].code == "no_mail"


def test_a_mail_server_that_refuses_is_a_failure_in_plain_words(
    installation: Installation, operator: Actor, sink: Sink
) -> None:
    sink.refuses = "554 no"
    channel = mailbox(operator)
    services.send_test(actor=operator, channel_id=channel.pk)
    installation.deliver()
    row = Notification.objects.get(channel=channel)
    assert row.state == "waiting"
    assert row.attempts[0]["error"] == "The mail server did not take it (SMTPDataError)."


def worsened(installation: Installation, acme: Actor, number: int) -> list[Pool]:
    """So many pools, each with a server that failed long enough to be told of, and then with none that is up."""
    pools = [make_pool(acme, f"p{each}", f"10.1.{each}.1", f"10.1.{each}.2") for each in range(number)]
    first = {pool: Server.objects.filter(backend__pool=pool).earliest("name") for pool in pools}
    for pool in pools:
        installation.pool(pool, down=False, failing=(first[pool],))
    installation.tick(10, times=7)
    for pool in pools:
        installation.pool(pool, failing=(first[pool],))
    return pools


def test_what_got_worse_and_is_told_elsewhere_ends_in_every_thread_that_began(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    """Incidents of pagers are threads: four pools are told of alone, four together, and then all of them once more."""
    channel = hook(acme, url=receiver.url)
    pools = worsened(installation, acme, 7)
    installation.deliver()
    installation.tick(61, times=2)
    installation.deliver()
    installation.healthy(*pools)
    installation.tick(61, times=3)
    begun = {thread for message in installation.messages(channel) for thread in message["threads"]}
    ended = [thread for message in installation.messages(channel, "resolved") for thread in message["threads"]]
    assert len(begun) == 5
    assert sorted(ended) == sorted(begun)


def test_what_nobody_heard_in_an_earlier_thread_is_not_sent_when_it_is_over(
    installation: Installation, acme: Actor
) -> None:
    channel = hook(acme)
    pools = worsened(installation, acme, 4)
    installation.tick(61, times=2)
    installation.healthy(*pools)
    installation.tick(61, times=4)
    assert set(Notification.objects.filter(channel=channel).values_list("state", flat=True)) == {"dropped"}
