"""Which failures count against an endpoint: those of days in which it was tried, and of no others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.clock import now
from apps.webhooks import backoff
from apps.webhooks.models import Delivery
from tests.apps.test_webhooks_delivery import deliver, happen, later, listen
from tests.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who listens."""
    with receiving() as found:
        yield found


@pytest.mark.parametrize("waits", [True, False])
def test_days_in_which_nothing_was_sent_switch_no_endpoint_off(acme: Actor, receiver: Receiver, waits: bool) -> None:
    hook, _ = listen(acme, receiver)
    receiver.answer(500)
    happen(acme, "acme/before")
    for _ in range(1 if waits else len(backoff.DELAYS) + 1):
        deliver()
        later(hours=11)
    assert Delivery.objects.filter(state="waiting").exists() is waits
    Account.objects.filter(pk=acme.account.pk).update(suspended_at=now())
    later(days=6)
    deliver()
    Account.objects.filter(pk=acme.account.pk).update(suspended_at=None)
    happen(acme, "acme/after")
    deliver()
    hook.refresh_from_db()
    assert (hook.enabled, hook.failures) == (True, 1)
    assert hook.failing_since
    assert hook.failing_since > now() - timedelta(minutes=1)
    for _ in range(12):
        later(hours=10)
        happen(acme, "acme/more")
        deliver()
    hook.refresh_from_db()
    assert hook.disabled_reason == "Every attempt failed for five days."
