"""Sends what waits for channels, from threads of `manage.py schedule`: without Redis and without workers.

Alerts are needed most when other parts are down, so nothing else stands between a stored message and its receiver.
1. Claim a channel with a lease; one thread at a time speaks to one channel, and accounts share the threads fairly.
2. Send what is due, the oldest first; nothing is locked meanwhile.
3. Write down what came of it. What was not taken is tried again, ever later, for about a day.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from django import db
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from apps.alerts.models import ChannelState, Notification, Told
from apps.alerts.sending import alertmanager, chat, mail, pagers, signed
from apps.alerts.sending.contract import Parcel
from apps.alerts.telling.messages import message_of
from apps.core.clock import database_now, now
from apps.core.concurrency.fairness import Owners, Seats, in_turns
from apps.core.concurrency.leases import Lease, LeaseLost, take
from apps.core.secrets.sealing import unseal
from apps.definitions.models import AlertChannel
from apps.definitions.shapes.operations.alert_channel import (
    ALERTMANAGER,
    DISCORD,
    EMAIL,
    MATTERMOST,
    OPSGENIE,
    PAGERDUTY,
    SLACK,
    TEAMS,
    WEBHOOK,
)
from apps.webhooks import backoff
from apps.webhooks.delivering import Outcome

THREADS = 4
LEASE = timedelta(seconds=30)
TURN_S = 2.0
KEPT_FOR = timedelta(days=30)
DELAYS = tuple(
    timedelta(seconds=seconds) for seconds in (5, 15, 60, 300, 900, 1800, 3600, 3600, 4 * 3600, 6 * 3600, 6 * 3600)
)
ATTEMPTS_KEPT = len(DELAYS) + 1

SENDERS: dict[str, Callable[[Parcel], Outcome]] = {
    EMAIL: mail.send,
    WEBHOOK: signed.send,
    SLACK: chat.slack,
    MATTERMOST: chat.slack,
    DISCORD: chat.discord,
    TEAMS: chat.teams,
    PAGERDUTY: pagers.pagerduty,
    OPSGENIE: pagers.opsgenie,
    ALERTMANAGER: alertmanager.send,
}
SEATS: Seats[int] = Seats(count=lambda: THREADS)


class Deliverer:
    """The threads; `wake` starts as many as there is use for and never waits for one."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="alerts")
        self._lock = threading.Lock()
        self._running = 0

    def wake(self) -> None:
        """Let a thread send what is due, if anything is and one is free."""
        due = len(due_channels())
        with self._lock:
            wanted = min(due, THREADS - self._running)
            self._running += wanted
        for _ in range(wanted):
            self._threads.submit(self._work)

    def _work(self) -> None:
        try:
            deliver_in_turns()
        finally:
            db.connections.close_all()
            with self._lock:
                self._running -= 1

    def stop(self) -> None:
        """End after what is under way."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def due_channels() -> list[int]:
    """Channels (primary keys) for which something is due and nobody is at work."""
    return list(_due().values_list("pk", flat=True))


def deliver_in_turns() -> int:
    """Send what is due, account by account, as long as there are seats; how many channels had their turn."""

    def choose(owners: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        return _due().exclude(account__in=owners).exclude(pk__in=done).values_list("account", "pk").first()

    return in_turns(SEATS, choose, deliver)


def _due() -> QuerySet[AlertChannel]:
    instant = database_now()
    free = Q(state=None) | Q(state__claimed_until=None) | Q(state__claimed_until__lt=instant)
    rested = Q(state=None) | Q(state__not_before=None) | Q(state__not_before__lte=instant)
    waiting = Notification.objects.filter(state=Notification.State.WAITING, next_at__lte=instant)
    rows = AlertChannel.objects.filter(free, rested, account__suspended_at=None, pk__in=waiting.values("channel"))
    return rows.order_by("state__failures", "pk")


def deliver(channel_id: int) -> float:
    """Send what is due for the channel; leave after some seconds, a failure, or when there is no more.

    Returns how many seconds the slowest message took.
    """
    lease, longest = take(ChannelState, LEASE, channel_id=channel_id), 0.0
    if lease is None:
        return longest
    ends, more = time.monotonic() + TURN_S, True
    try:
        while more and time.monotonic() < ends:
            began = time.monotonic()
            more = _send_next(channel_id, lease)
            longest = max(longest, time.monotonic() - began)
    except LeaseLost:
        return longest
    lease.release()
    return longest


def _send_next(channel_id: int, lease: Lease[ChannelState]) -> bool:
    """Send the oldest that is due; False when there is none or it was not taken."""
    lease.renew()
    due = Notification.objects.filter(channel=channel_id, state=Notification.State.WAITING, next_at__lte=database_now())
    found = due.select_related("channel").order_by("next_at", "id").first()
    if found is None:
        return False
    outcome = attempt(found)
    with transaction.atomic():
        _note(lease.lock(), found, outcome, now())
    return outcome.delivered


def attempt(notification: Notification) -> Outcome:
    """One try; never raises for what the other side does or is."""
    channel = notification.channel
    message = message_of(notification.content)
    parcel = Parcel(
        message=message,
        key=f"alert-message-{notification.pk}",
        made_at=notification.created_at,
        link=f"{settings.CONSOLE_URL}{message.page}",
        to=tuple(channel.to),
        url=channel.url or "",
        secret=unseal(channel.sealed_secret).decode() if channel.sealed_secret else "",
    )
    return SENDERS[channel.type](parcel)


def _note(state: ChannelState, sent: Notification, outcome: Outcome, moment: datetime) -> None:
    """What came of it. One that arrived although it was dropped meanwhile needs its end again."""
    row = Notification.objects.select_for_update().filter(pk=sent.pk).first()
    if row is None:
        return
    entry: dict[str, Any] = {
        "at": moment.isoformat(timespec="milliseconds"),
        "status": outcome.status,
        "milliseconds": outcome.milliseconds,
        "error": outcome.error,
        "answer": outcome.answer[:200],
    }
    row.tries, row.attempts = row.tries + 1, [*row.attempts, entry][-ATTEMPTS_KEPT:]
    if outcome.delivered:
        row.state, row.next_at, row.finished_at = Notification.State.DELIVERED, None, moment
        _note_told(row, moment)
        state.failures, state.failing_since, state.not_before, state.error = 0, None, None, ""
    else:
        _note_failure(state, row, outcome, moment)
    row.save(update_fields=("tries", "attempts", "state", "next_at", "finished_at"))
    state.save(update_fields=("failures", "failing_since", "not_before", "error"))


def _note_told(row: Notification, moment: datetime) -> None:
    if row.event == Notification.Event.FIRING:
        Told.objects.filter(channel=row.channel_id, thread=row.thread).update(delivered_at=moment, closed=False)


def _note_failure(state: ChannelState, row: Notification, outcome: Outcome, moment: datetime) -> None:
    state.failures, state.failing_since = state.failures + 1, state.failing_since or moment
    state.error = (outcome.error or f"It answered {outcome.status}.")[:400]
    state.not_before = moment + backoff.pause(state.failures, outcome.wish)
    if row.state != Notification.State.WAITING:
        return
    row.next_at = backoff.next_attempt(row.tries, moment, outcome.wish, DELAYS)
    if row.next_at is None:
        row.state, row.finished_at = Notification.State.FAILED, moment


def prune(instant: datetime, limit: int = 5000) -> None:
    """Forget messages that ended long ago, some at a time."""
    old = Notification.objects.filter(finished_at__lt=instant - KEPT_FOR).order_by("finished_at")
    Notification.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:limit])).delete()
