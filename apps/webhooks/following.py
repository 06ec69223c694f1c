"""First half: follow the audit log in the order of its positions and note who is to be told.

The deliveries of an entry and the follower's step past it are one transaction: an entry is either not followed yet, or
all its deliveries are there. `manage.py schedule` does this each second; Redis, workers and it may die at any time, it
goes on from the row.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from apps.accounts.models import Account
from apps.audit.chain import head
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.concurrency.locks import try_word
from apps.core.queue import enqueue
from apps.webhooks import events
from apps.webhooks.models import Delivery, Follower, Webhook
from apps.webhooks.services import DELIVER_TASK

AT_ONCE = 500


def follow(*, limit: int = AT_ONCE) -> bool:
    """Go at most `limit` entries on, and wake a worker for each endpoint that has something new.

    True when there may be more. Never waits: False as well when somebody else is at it in this moment.
    """
    last = head().position
    if Follower.objects.filter(pk=1, position__gte=last).exists():
        return False
    with transaction.atomic():
        told, more = _step(last, limit) if try_word("webhooks follower") else (set(), False)
    for webhook_id in sorted(told):
        enqueue(DELIVER_TASK, webhook_id)
    return more


def _step(last: int, limit: int) -> tuple[set[int], bool]:
    follower, _ = Follower.objects.select_for_update().get_or_create(pk=1)
    listening = list(Webhook.objects.filter(enabled=True).select_related("account").defer("secret", "previous_secret"))
    until = min(last, follower.position + limit) if listening else last
    found: list[Delivery] = []
    if listening:
        rows = Entry.objects.filter(position__gt=follower.position, position__lte=until).order_by("position")
        found = [delivery for entry in rows.defer("before", "after") for delivery in _deliveries(entry, listening)]
        Delivery.objects.bulk_create(found, batch_size=500)
    follower.position = max(until, follower.position)
    follower.save(update_fields=("position",))
    return {delivery.webhook_id for delivery in found}, until < last


def _deliveries(entry: Entry, listening: Iterable[Webhook]) -> list[Delivery]:
    """One for each endpoint that asked for it and may know: operators of everything, customers of their own."""
    event, message = events.type_of(entry), f"msg_{entry.digest[:32]}"
    return [
        Delivery(webhook=each, entry=entry, message_id=message, type=event[:80], next_at=now())
        for each in listening
        if _may_know(each.account, entry) and entry.at >= each.created_at and events.wanted(each.event_types, event)
    ]


def _may_know(account: Account, entry: Entry) -> bool:
    return account.is_operator or account.pk == entry.account_id
