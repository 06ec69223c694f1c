"""One evaluation: look, compare, group, and note what channels have to be told. Done each second, by lease.

1. Hold the lease; whoever does not leaves. A process that dies is missed when its lease ends.
2. Look at everything that rules watch.
3. In one transaction: findings begin, change and end; those that lasted long enough become alerts or join one; alerts
   whose findings have all ended are resolved; messages are stored for whom they concern.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Model

from apps.accounts.models import Account
from apps.alerts.evaluate import causes
from apps.alerts.evaluate.findings import Moved, compare, identity_of, wanted
from apps.alerts.looking.contract import Look
from apps.alerts.looking.watching import Watcher
from apps.alerts.models import Alert, Evaluation, Finding
from apps.alerts.rules import rules_by_watch
from apps.alerts.telling.planning import plan_messages
from apps.core.clock import database_now
from apps.core.concurrency.leases import Lease, LeaseLost, take

LEASE = timedelta(seconds=10)
KEPT_FOR = timedelta(days=30)
_CHANGED = ["owner", "name", "title", "detail", "page", "keys", "severity", "due_at", "gone_at"]


class Evaluator:
    """Evaluates while it holds the lease, and forgets what it saw when it loses it."""

    def __init__(self) -> None:
        self._lease: Lease[Evaluation] | None = None
        self._watcher = Watcher()

    def tick(self) -> bool:
        """One evaluation; False while another process does it. Raises django.db.Error."""
        try:
            if self._lease is not None:
                self._lease.renew()
        except LeaseLost:
            self._lease = None
        if self._lease is None:
            self._lease, self._watcher = take(Evaluation, LEASE, name="alerts"), Watcher()
        if self._lease is None:
            return False
        instant = database_now()
        looks = self._watcher.look(instant)
        try:
            with transaction.atomic():
                row = self._lease.lock()
                store(looks, instant)
                row.evaluated_at = instant
                row.save(update_fields=("evaluated_at",))
        except LeaseLost:
            self._lease = None
            return False
        return True

    def release(self) -> None:
        """Let another process begin at once."""
        if self._lease is not None:
            self._lease.release()
            self._lease = None


def store(looks: dict[str, Look], instant: datetime) -> None:
    """What these looks lead to; the caller holds the lease and the transaction."""
    accounts = list(Account.objects.filter(suspended_at=None))
    rules = rules_by_watch(accounts)
    stored = {identity_of(row): row for row in Finding.objects.filter(ended_at=None)}
    moved = compare(wanted(looks, rules, accounts), stored, looks, rules, instant)
    _write(moved, instant)
    gone = {row.pk for row in moved.dropped}
    active = [row for row in (*stored.values(), *moved.begun) if row.ended_at is None and row.pk not in gone]
    touched = _assign(active, instant) | {row.alert_id for row in (*moved.changed, *moved.ended) if row.alert_id}
    if touched:
        _describe(touched, instant)
    plan_messages(instant)


def _write(moved: Moved, instant: datetime) -> None:
    Finding.objects.bulk_create(moved.begun, batch_size=500)
    _update(Finding, moved.changed, _CHANGED)
    Finding.objects.filter(pk__in=[row.pk for row in moved.gone]).update(gone_at=instant)
    Finding.objects.filter(pk__in=[row.pk for row in moved.ended]).update(ended_at=instant)
    Finding.objects.filter(pk__in=[row.pk for row in moved.dropped]).delete()


def _update(model: type[Model], rows: Sequence[Model], fields: Sequence[str]) -> None:
    """Store these fields of many rows that are there, in few statements."""
    model._default_manager.bulk_create(
        rows, batch_size=500, update_conflicts=True, unique_fields=["id"], update_fields=fields
    )


def _assign(active: Collection[Finding], instant: datetime) -> set[int]:
    """Findings that lasted long enough join the alert that shares a cause with them, the oldest, or make one."""
    due = [row for row in active if row.alert_id is None and row.gone_at is None and row.due_at <= instant]
    if not due:
        return set()
    joined: dict[tuple[int, str], int] = {}
    for row in active:
        for key in row.keys if row.alert_id else ():
            caused = row.account_id, key
            joined[caused] = min(row.alert_id or 0, joined.get(caused, row.alert_id or 0))
    by_identity = {identity_of(row): row for row in due}
    keys = {each: [f"{row.account_id} {key}" for key in row.keys] for each, row in by_identity.items()}
    begun: list[tuple[Alert, list[Finding]]] = []
    touched = set()
    for group in causes.groups(keys):
        rows = [by_identity[each] for each in group]
        known = [joined[row.account_id, key] for row in rows for key in row.keys if (row.account_id, key) in joined]
        if known:
            touched.add(min(known))
            _join(rows, min(known))
        else:
            begun.append((_new(rows, instant), rows))
    Alert.objects.bulk_create([alert for alert, _ in begun], batch_size=500)
    for alert, rows in begun:
        _join(rows, alert.pk)
    _update(Finding, [row for row in due if row.alert_id], ["alert"])
    return touched | {alert.pk for alert, _ in begun}


def _join(rows: Iterable[Finding], alert_id: int) -> None:
    for row in rows:
        row.alert_id = alert_id


def _new(rows: list[Finding], instant: datetime) -> Alert:
    since, first = min(row.since for row in rows), rows[0]
    return Alert(account_id=first.account_id, since=since, opened_at=instant, severity=first.severity)


def _describe(alert_ids: Iterable[int], instant: datetime) -> None:
    """What alerts are called, how bad they are, and that they are over, by their findings."""
    found: dict[int, list[Finding]] = defaultdict(list)
    for row in Finding.objects.filter(alert__in=alert_ids, ended_at=None):
        found[row.alert_id or 0].append(row)
    alerts = list(Alert.objects.filter(pk__in=alert_ids, resolved_at=None))
    for alert in alerts:
        rows = found[alert.pk]
        if rows:
            alert.keys, alert.title = causes.keys_of(rows), causes.title_of(rows)
            alert.severity, alert.weight = causes.severity_of(rows), causes.weight_of(rows)
        else:
            alert.resolved_at = instant
    _update(Alert, alerts, ["keys", "title", "severity", "weight", "resolved_at"])


def prune(instant: datetime, limit: int = 1000) -> None:
    """Forget alerts that were resolved long ago, with all that was said of them, some at a time."""
    old = Alert.objects.filter(resolved_at__lt=instant - KEPT_FOR).order_by("pk").values_list("pk", flat=True)
    Alert.objects.filter(pk__in=list(old[:limit])).delete()
