"""Which channel is told what now: messages are stored here, and sent by sending/delivering.py.

A channel gets a few messages without delay and then one a minute; what waits meanwhile goes into one message. So a
thousand conditions at once are a handful of messages, and the first of them comes at once.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from apps.alerts.models import Alert, Finding, Notification, Silence, Told
from apps.alerts.telling.messages import content_of
from apps.alerts.telling.quiet import is_quiet
from apps.definitions.models import AlertChannel
from apps.definitions.shapes.operations.alert_channel import ALERTMANAGER
from apps.definitions.shapes.operations.alert_rule import pattern_fits
from apps.definitions.shapes.operations.alert_watches import CRITICAL

# Alertmanager is told for how long an alert holds (sending/alertmanager.py): twice as long.
AGAIN_AFTER = timedelta(hours=12)
BURST, WINDOW, PAUSE = 4, timedelta(minutes=5), timedelta(minutes=1)
_SOLO = "alert-"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something to say about alerts in one thread, the worst of them first."""

    thread: str
    alerts: tuple[Alert, ...]


def plan_messages(instant: datetime) -> None:
    """Store what every channel has to be told. Two queries while nothing is wrong."""
    channels = list(
        AlertChannel.objects.filter(enabled=True, account__suspended_at=None).defer("sealed_secret").order_by("pk")
    )
    told = _open_told(channels)
    alerts = Alert.objects.filter(resolved_at=None, account__in={channel.account_id for channel in channels})
    by_account: dict[int, list[Alert]] = defaultdict(list)
    for alert in alerts.select_related("account").order_by("-weight", "pk") if channels else ():
        by_account[alert.account_id].append(alert)
    findings = _findings(by_account.values())
    silent = silenced_alerts([alert for each in by_account.values() for alert in each], findings, instant)
    for channel in channels:
        mine = told[channel.pk]
        fresh = [
            alert
            for alert in by_account[channel.account_id]
            if alert.pk not in silent and _wants(channel, alert, mine.get(alert.pk), instant)
        ]
        _tell(channel, fresh, mine, findings, instant)
        if channel.type == ALERTMANAGER:
            _remind(channel, mine, findings, instant)
        _close(channel, mine, instant)


def _remind(
    channel: AlertChannel, told: Mapping[int, Told], findings: Mapping[int, Sequence[Finding]], instant: datetime
) -> None:
    """Say again what still holds, before Alertmanager ends it by itself."""
    threads: dict[str, list[Told]] = defaultdict(list)
    for row in told.values():
        if row.alert.resolved_at is None and row.delivered_at and instant - row.delivered_at >= AGAIN_AFTER:
            threads[row.thread].append(row)
    for thread, rows in threads.items():
        pairs = [(row.alert, findings[row.alert_id]) for row in rows]
        _store(channel, Notification.Event.FIRING, thread, content_of("firing", pairs, [thread]), instant)
        Told.objects.filter(pk__in=[row.pk for row in rows]).update(delivered_at=instant)


def _open_told(channels: Iterable[AlertChannel]) -> Mapping[int, dict[int, Told]]:
    found: dict[int, dict[int, Told]] = defaultdict(dict)
    rows = Told.objects.filter(closed=False, channel__in=[channel.pk for channel in channels])
    for row in rows.select_related("alert__account"):
        found[row.channel_id][row.alert_id] = row
    return found


def _findings(alerts: Iterable[Sequence[Alert]]) -> Mapping[int, list[Finding]]:
    found: dict[int, list[Finding]] = defaultdict(list)
    pks = [alert.pk for each in alerts for alert in each]
    for row in Finding.objects.filter(alert__in=pks, ended_at=None) if pks else ():
        found[row.alert_id or 0].append(row)
    return found


def silenced_alerts(
    alerts: Sequence[Alert], findings: Mapping[int, Sequence[Finding]], instant: datetime
) -> frozenset[int]:
    """Primary keys of the alerts of which every finding is covered by a silence of their account. One query."""
    if not alerts:
        return frozenset()
    silences: dict[int, list[Silence]] = defaultdict(list)
    for row in Silence.objects.filter(ends_at__gt=instant, account__in={alert.account_id for alert in alerts}):
        silences[row.account_id].append(row)
    return frozenset(
        alert.pk
        for alert in alerts
        if silences[alert.account_id]
        and all(any(covers(each, row) for each in silences[alert.account_id]) for row in findings[alert.pk])
    )


def covers(silence: Silence, row: Finding) -> bool:
    """Whether a silence covers a finding."""
    of_rule = not silence.rule or silence.rule == row.rule
    return of_rule and (not silence.objects_named or pattern_fits(silence.objects_named, row.owner, row.name))


def _wants(channel: AlertChannel, alert: Alert, told: Told | None, instant: datetime) -> bool:
    """Whether the channel is told of the alert now: its severities, its quiet hours, its wait; worse is told again."""
    if alert.severity not in channel.severities or alert.keys == [f"channel:{channel.pk}"]:
        return False
    if alert.severity != CRITICAL and is_quiet(channel.quiet, instant):
        return False
    if told is not None:
        return alert.weight > told.weight
    if not channel.wait_minutes:
        return True
    return alert.acknowledged_at is None and instant - alert.opened_at >= timedelta(minutes=channel.wait_minutes)


def _tell(
    channel: AlertChannel,
    fresh: Sequence[Alert],
    told: Mapping[int, Told],
    findings: Mapping[int, Sequence[Finding]],
    instant: datetime,
) -> None:
    for each in _shared(fresh, _allowance(channel, Notification.Event.FIRING, instant) if fresh else 0):
        pairs = [(alert, findings[alert.pk]) for alert in each.alerts]
        _store(channel, Notification.Event.FIRING, each.thread, content_of("firing", pairs, [each.thread]), instant)
        rows = [
            Told(
                channel=channel,
                alert=alert,
                thread=each.thread,
                earlier=_earlier(told.get(alert.pk), each.thread),
                weight=alert.weight,
            )
            for alert in each.alerts
        ]
        Told.objects.bulk_create(
            rows,
            batch_size=200,
            update_conflicts=True,
            unique_fields=["channel", "alert"],
            update_fields=["thread", "earlier", "weight", "closed"],
        )


def _earlier(told: Told | None, thread: str) -> list[str]:
    """In which other threads the channel heard of an alert before."""
    return [each for each in told.threads if each != thread] if told else []


def _shared(fresh: Sequence[Alert], allowed: int) -> list[Waiting]:
    """One message for each alert as far as that is allowed; the last one is for all that are left."""
    if not fresh or allowed <= 0:
        return []
    alone = fresh if len(fresh) <= allowed else fresh[: allowed - 1]
    found = [Waiting(f"{_SOLO}{alert.pk}", (alert,)) for alert in alone]
    if rest := tuple(fresh[len(alone) :]):
        found.append(Waiting(f"many-{secrets.token_hex(8)}", rest))
    return found


def _allowance(channel: AlertChannel, event: Notification.Event, instant: datetime) -> int:
    """How many messages the channel may get now."""
    recent = Notification.objects.filter(channel=channel, event=event, created_at__gt=instant - WINDOW)
    times = list(recent.values_list("created_at", flat=True))
    if len(times) < BURST:
        return BURST - len(times)
    return 1 if instant - max(times) >= PAUSE else 0


def _close(channel: AlertChannel, told: Mapping[int, Told], instant: datetime) -> None:
    """Say that threads are over whose alerts are all resolved; of what nobody heard yet nothing is said at all."""
    threads: dict[str, list[Told]] = defaultdict(list)
    for row in told.values():
        threads[row.thread].append(row)
    over = [name for name, rows in threads.items() if all(row.alert.resolved_at is not None for row in rows)]
    rest = [row for row in told.values() if row.thread not in over]
    waiting = _waiting(channel, over)
    unheard = {
        name
        for name in (over and waiting.values_list("thread", flat=True))
        if not any(row.delivered_at for row in threads[name])
    }
    if unheard:
        silent = [row for name in unheard for row in threads[name]]
        _drop(channel, [*unheard, *_left(silent, rest)], instant)
        _mark_closed(silent)
    heard = [name for name in over if name not in unheard and any(row.delivered_at for row in threads[name])]
    # What failed for good, or was told nobody, needs no end either.
    _mark_closed(row for name in over if name not in unheard and name not in heard for row in threads[name])
    if heard and not (_softly(channel, threads, heard) and is_quiet(channel.quiet, instant)):
        _say_resolved(channel, {name: threads[name] for name in heard}, rest, instant)


def _waiting(channel: AlertChannel, threads: Iterable[str]) -> QuerySet[Notification]:
    """Messages of these threads that did not arrive yet."""
    return Notification.objects.filter(channel=channel, thread__in=threads, state=Notification.State.WAITING)


def _drop(channel: AlertChannel, threads: Iterable[str], instant: datetime) -> None:
    """Send nothing more of these threads."""
    waiting = _waiting(channel, threads)
    waiting.update(state=Notification.State.DROPPED, next_at=None, finished_at=instant)


def _left(rows: Iterable[Told], others: Iterable[Told]) -> list[str]:
    """Threads in which these alerts were told before, and none of the others ever was: they end with them."""
    taken = {thread for row in others for thread in row.threads}
    return sorted({thread for row in rows for thread in row.earlier} - taken)


def _softly(channel: AlertChannel, threads: Mapping[str, Sequence[Told]], names: Iterable[str]) -> bool:
    """Whether none of these was critical, so that its end may wait for the morning."""
    return bool(channel.quiet) and all(row.alert.severity != CRITICAL for name in names for row in threads[name])


def _say_resolved(
    channel: AlertChannel, threads: Mapping[str, Sequence[Told]], rest: Sequence[Told], instant: datetime
) -> None:
    """`rest` is what the channel was told of other alerts."""
    allowed = _allowance(channel, Notification.Event.RESOLVED, instant)
    if allowed <= 0:
        return
    names = sorted(threads)
    alone = names if len(names) <= allowed else names[: allowed - 1]
    groups = [[name] for name in alone] + ([names[len(alone) :]] if len(alone) < len(names) else [])
    for at, group in enumerate(groups, start=1):
        rows = sorted((row for name in group for row in threads[name]), key=lambda row: -row.weight)
        later = [row for names in groups[at:] for name in names for row in threads[name]]
        left = _left(rows, [*rest, *later])
        _drop(channel, left, instant)
        pairs = [(row.alert, list(row.alert.findings.all()[:20]) if len(rows) == 1 else []) for row in rows]
        content = content_of("resolved", pairs, [*group, *left])
        _store(channel, Notification.Event.RESOLVED, group[0], content, instant)
        _mark_closed(rows)


def _mark_closed(rows: Iterable[Told]) -> None:
    Told.objects.filter(pk__in=[row.pk for row in rows]).update(closed=True)


def _store(
    channel: AlertChannel, event: Notification.Event, thread: str, content: dict[str, object], instant: datetime
) -> None:
    Notification.objects.create(
        channel=channel, event=event, thread=thread, content=content, next_at=instant, created_at=instant
    )
