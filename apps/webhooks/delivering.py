"""Second half: send what waits for one endpoint, in order, and write down what came of it.

1. Claim the endpoint with a lease (compare and set, by the database's clock). One worker at a time speaks to one
   endpoint, so a slow one keeps one worker; nobody else's waits for that, its own account's for one time-out.
2. Send what is due, oldest first. Nothing is locked while the request is under way.
3. Write the outcome, if the claim is still ours: 2xx is delivered, 410 switches the endpoint off, everything else is
   tried again later. After a failure the endpoint is left alone for a while and the worker goes.
4. A worker that dies is missed when its lease ends; the sweep wakes another one, which sends the same message again.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.audit.exporting import visible
from apps.core import outbound
from apps.core.called_urls import Refused
from apps.core.clock import database_now, now
from apps.core.concurrency.backoff import retry_after
from apps.core.concurrency.fairness import Owners, Seats, in_turns
from apps.core.queue import enqueue
from apps.webhooks import backoff, events, services
from apps.webhooks.models import Attempt, Delivery, Webhook
from apps.webhooks.signing import signed_headers

TIMEOUT_S = 10.0
LEASE = timedelta(seconds=15)
TURN_S = 2.0  # as long as a quick one may keep others from a seat
ANSWER_BYTES = 1024
KEPT_FOR = timedelta(days=30)
GONE = 410


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one attempt; `wish` is how long the receiver asks us to wait."""

    status: int | None
    milliseconds: int
    error: str = ""
    answer: str = ""
    wish: timedelta | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver took it."""
        return self.status is not None and 200 <= self.status < 300


SEATS: Seats[int] = Seats()


def due_webhooks() -> list[int]:
    """Endpoints for which something is due and nobody is at work."""
    return list(_due().values_list("pk", flat=True))


def deliver_in_turns() -> int:
    """Send what is due, account by account, as long as there are seats; the number of endpoints that had their turn."""

    def choose(owners: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        return _due().exclude(account__in=owners).exclude(pk__in=done).values_list("account", "pk").first()

    return in_turns(SEATS, choose, lambda webhook_id: deliver(webhook_id=webhook_id))


def _due() -> QuerySet[Webhook]:
    instant = database_now()
    waiting = Delivery.objects.filter(state=Delivery.State.WAITING, next_at__lte=instant)
    # Who failed last goes last: an account has few seats, and its dead endpoints would keep its others from them.
    return _free(instant).filter(pk__in=waiting.values("webhook")).order_by("failures", "pk")


def deliver(*, webhook_id: int) -> float:
    """Send what is due for the endpoint; leave after some seconds, a failure, or when there is no more.

    Returns how many seconds the slowest delivery took.
    """
    turn, longest = _claim(webhook_id), 0.0
    if turn is None:
        return longest
    ends, more = time.monotonic() + TURN_S, True
    while more and time.monotonic() < ends:
        began = time.monotonic()
        more = _send_next(webhook_id, turn)
        longest = max(longest, time.monotonic() - began)
    Webhook.objects.filter(pk=webhook_id, turn=turn).update(claimed_until=None)
    if more or webhook_id in due_webhooks():
        enqueue(services.DELIVER_TASK, webhook_id)
    return longest


def prune(moment: datetime, *, limit: int = 5000) -> None:
    """Forget deliveries that ended long ago, some at a time."""
    old = Delivery.objects.filter(finished_at__lt=moment - KEPT_FOR).order_by("finished_at")
    Delivery.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:limit])).delete()


def _free(instant: datetime) -> QuerySet[Webhook]:
    free = Q(claimed_until=None) | Q(claimed_until__lt=instant)
    rested = Q(not_before=None) | Q(not_before__lte=instant)
    active = Account.objects.filter(suspended_at=None)
    # Columns of the row itself, no join: so that of two updates at once the second looks again and finds it taken.
    return Webhook.objects.filter(free, rested, enabled=True, account__in=active)


def _claim(webhook_id: int) -> int | None:
    """The number of our turn, None when somebody else is at it or nothing may be sent now."""
    with transaction.atomic():
        instant = database_now()
        if not _free(instant).filter(pk=webhook_id).update(claimed_until=instant + LEASE, turn=F("turn") + 1):
            return None
        return Webhook.objects.values_list("turn", flat=True).get(pk=webhook_id)


def _send_next(webhook_id: int, turn: int) -> bool:
    """Send the oldest that is due; False when there is none, it failed, or the claim is another's."""
    mine = Webhook.objects.filter(pk=webhook_id, turn=turn, enabled=True)
    if not mine.update(claimed_until=database_now() + LEASE):
        return False
    due = Delivery.objects.filter(webhook=webhook_id, state=Delivery.State.WAITING, next_at__lte=database_now())
    found = due.select_related("webhook__account", "entry__account").order_by("next_at", "id").first()
    if found is None:
        return False
    outcome = attempt(found)
    return _note(found, turn, outcome) and outcome.delivered


def attempt(delivery: Delivery) -> Outcome:
    """One request; never raises for what the other side does or is."""
    webhook, began = delivery.webhook, time.monotonic()
    body = _body(delivery)
    headers = {"Content-Type": "application/json", "User-Agent": "Spillway-Webhooks/1"}
    headers |= signed_headers(delivery.message_id, now(), body, services.live_secrets(webhook))
    try:
        answer = outbound.fetch(
            webhook.url,
            method="POST",
            headers=headers,
            body=body,
            timeout=TIMEOUT_S,
            limit=ANSWER_BYTES,
            schemes=services.schemes(),
        )
    except (Refused, outbound.Unreachable) as error:
        return Outcome(None, round((time.monotonic() - began) * 1000), error=str(error)[:400])
    text = visible(answer.body.decode(errors="replace"))
    return Outcome(answer.status, answer.milliseconds, "", text, retry_after(answer.headers, now()))


def _body(delivery: Delivery) -> bytes:
    if delivery.entry is None:
        return events.body_of_test(delivery.created_at.isoformat(), delivery.webhook.name)
    return events.body_of(delivery.entry)


def _note(delivery: Delivery, turn: int, outcome: Outcome) -> bool:
    """Write down what came of it; False when the claim went to somebody else meanwhile, who sends it again."""
    with transaction.atomic():
        row = Webhook.objects.select_for_update(of=("self",)).select_related("account")
        webhook = row.filter(pk=delivery.webhook_id, turn=turn).first()
        if webhook is None:
            return False
        goes_on = webhook.failures > 0 and _tried_since(webhook, now() - backoff.SILENCE)
        Attempt.objects.create(
            delivery=delivery,
            status=outcome.status,
            milliseconds=outcome.milliseconds,
            error=outcome.error,
            answer=outcome.answer,
        )
        moment = now()
        if outcome.delivered:
            _note_success(webhook, delivery, moment)
        else:
            if not goes_on:
                webhook.failures, webhook.failing_since = 0, None
            _note_failure(webhook, delivery, outcome, moment)
    return True


def _tried_since(webhook: Webhook, moment: datetime) -> bool:
    return Attempt.objects.filter(delivery__webhook=webhook, at__gte=moment).exists()


def _note_success(webhook: Webhook, delivery: Delivery, moment: datetime) -> None:
    _end(Delivery.objects.filter(pk=delivery.pk), Delivery.State.DELIVERED, moment)
    if webhook.failures:
        Webhook.objects.filter(pk=webhook.pk).update(failures=0, failing_since=None, not_before=None)


def _note_failure(webhook: Webhook, delivery: Delivery, outcome: Outcome, moment: datetime) -> None:
    again = backoff.next_attempt(delivery.tries + 1, moment, outcome.wish)
    # Who switched the endpoint off meanwhile has ended it, and who sent it again has begun it anew: that stays.
    waiting = Delivery.objects.filter(pk=delivery.pk, state=Delivery.State.WAITING, next_at=delivery.next_at)
    if again is None:
        _end(waiting, Delivery.State.FAILED, moment)
    else:
        waiting.update(tries=F("tries") + 1, next_at=again)
    if webhook.version == delivery.webhook.version:  # else it is not the endpoint any more that failed
        _blame(webhook, outcome, moment)


def _blame(webhook: Webhook, outcome: Outcome, moment: datetime) -> None:
    """Leave the endpoint alone for a while, or switch it off."""
    failures, since = webhook.failures + 1, webhook.failing_since or moment
    pause = backoff.pause(failures, outcome.wish)
    Webhook.objects.filter(pk=webhook.pk).update(failures=failures, failing_since=since, not_before=moment + pause)
    if outcome.status == GONE:
        _switch_off(webhook, "The receiver answered 410 Gone.")
    elif moment - since >= backoff.GIVE_UP_AFTER:
        _switch_off(webhook, "Every attempt failed for five days.")


def _end(rows: QuerySet[Delivery], state: Delivery.State, moment: datetime) -> None:
    rows.update(state=state, tries=F("tries") + 1, next_at=None, finished_at=moment)


def _switch_off(webhook: Webhook, reason: str) -> None:
    """Stop sending and say so: on the page of the endpoint and in the audit log of its account."""
    before = services.document(webhook)
    webhook.enabled, webhook.disabled_reason, webhook.version = False, reason, webhook.version + 1
    webhook.save(update_fields=("enabled", "disabled_reason", "version"))
    services.end_waiting(webhook)
    spillway = Actor("spillway", webhook.account, Membership.Role.ADMIN)
    services.record_change(spillway, "disable", webhook, before, reason)
