"""What somebody does to an endpoint or a delivery while a message is under way stays so, whatever comes of that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from django.db import transaction

from apps.accounts.actors import Actor
from apps.core.errors import NotFound
from apps.webhooks import backoff, delivering, services
from apps.webhooks.models import Delivery
from tests.apps.at_once import PATIENCE_S, at_once, wait_for
from tests.apps.test_webhooks_delivery import deliver, happen, later, listen, told
from tests.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who listens."""
    with receiving() as found:
        yield found


def failing_while(monkeypatch: pytest.MonkeyPatch, status: int, happens: Callable[[], object]) -> None:
    """The next attempt fails, and something happens while it is under way."""

    def attempt(_delivery: Delivery) -> delivering.Outcome:
        happens()
        return delivering.Outcome(status, 3)

    with monkeypatch.context() as patch:
        patch.setattr(delivering, "attempt", attempt)
        deliver()


@pytest.mark.parametrize("on_again", [False, True])
def test_what_was_under_way_when_its_endpoint_was_switched_off_is_over(
    on_again: bool, acme: Actor, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, _ = listen(acme, receiver)
    happen(acme, "acme/shop")

    def off() -> None:
        for enabled in (False, True)[: 1 + on_again]:
            services.change_webhook(actor=acme, webhook_id=hook.pk, spec={"enabled": enabled})

    failing_while(monkeypatch, 410, off)
    hook.refresh_from_db()
    assert (hook.enabled, hook.disabled_reason, hook.failures) == (on_again, "", 0)
    found = Delivery.objects.get()
    assert (found.state, found.next_at, found.attempts.count()) == (Delivery.State.FAILED, None, 1)


def test_a_url_that_is_gone_does_not_switch_off_the_one_in_its_place(
    acme: Actor, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, _ = listen(acme, receiver)
    happen(acme, "acme/shop")
    spec = {"url": f"{receiver.url}/new"}
    failing_while(monkeypatch, 410, lambda: services.change_webhook(actor=acme, webhook_id=hook.pk, spec=spec))
    later(seconds=10)
    deliver()
    assert [each.path for each in receiver.heard] == ["/hook/new"]


def test_what_is_sent_again_by_hand_while_it_fails_begins_anew(
    acme: Actor, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, _ = listen(acme, receiver)
    happen(acme, "acme/shop")
    found = Delivery.objects.get()
    Delivery.objects.update(tries=len(backoff.DELAYS))  # the last attempt
    failing_while(monkeypatch, 500, lambda: services.redeliver(actor=acme, webhook_id=hook.pk, delivery_id=found.pk))
    later(minutes=5)
    deliver()
    assert told(receiver.heard) == ["acme/shop"]


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_an_endpoint_that_goes_while_somebody_changes_it_is_not_found(acme: Actor, receiver: Receiver) -> None:
    hook, _ = listen(acme, receiver)
    gone, refused = threading.Event(), threading.Event()

    def delete() -> None:
        with transaction.atomic():
            services.delete_webhook(actor=acme, webhook_id=hook.pk)
            gone.set()
            wait_for(refused)

    def change() -> None:
        assert gone.wait(PATIENCE_S)
        with pytest.raises(NotFound):
            services.change_webhook(actor=acme, webhook_id=hook.pk, spec={"enabled": False})
        refused.set()

    at_once(delete, change)
