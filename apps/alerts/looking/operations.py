"""Looks at what accounts run and have: certificates, runs, schedules, quotas, metrics, forwards, channels."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, Max, OuterRef

from apps.accounts.models import Account
from apps.accounts.quotas import quotas_of
from apps.alerts.looking.contract import Look, Seen
from apps.alerts.models import Alert, ChannelState, Finding, Told
from apps.capacity.measure.results import result_of
from apps.capacity.models import Run
from apps.core.written.numbers import measured
from apps.definitions.issuing.orders import in_words, is_kept_fresh
from apps.definitions.models import AlertChannel, Certificate, RoutePool
from apps.definitions.shapes.operations.alert_watches import CRITICAL, WATCHES
from apps.definitions.sharing import taken_back
from apps.definitions.writing.rules.quotas import counts_of_all
from apps.logs import saved
from apps.logs.models import LogForward, SavedSearch
from apps.observe.evaluate.lost_pools import sentence
from apps.schedules.models import ScheduleRun

# One failure may be a receiver's restart.
FAILURES = 2
_DAY = timedelta(days=1)
_SOONEST = timedelta(days=WATCHES["certificate_expiring"].threshold.highest)  # type: ignore[union-attr]


def look_at_certificates(instant: datetime) -> Look:
    """Certificates and how many days they are still valid; automatic ones that are not renewed in time."""
    rows = Certificate.objects.filter(not_after__lte=instant + _SOONEST).select_related("account", "order")
    return Look(
        tuple(
            _certificate(row, row.not_after, instant)
            for row in rows
            if row.not_after and not is_kept_fresh(row, instant)
        )
    )


def _certificate(row: Certificate, ends: datetime, instant: datetime) -> Seen:
    days = (ends - instant) / _DAY
    words = "has expired" if days <= 0 else f"expires on {ends:%d %b %Y}"
    detail = f"It is for {', '.join(row.hostnames[:5])}."
    if row.automatic:  # why it is not renewed
        detail += f" {in_words(row, instant)[1]}"
    causes, page = (f"certificate:{row.pk}",), "/certificates"
    title, whose = f"Certificate {{}} {words}", (row.account_id, row.account.name, row.name)
    return Seen("certificate", row.pk, *whose, title, detail, instant, page, causes, value=days)


def look_at_lost_pools(instant: datetime) -> Look:
    """Routes whose pool is not shared with their account any more."""
    uses = taken_back(RoutePool.objects.order_by("route_id", "pool__name"))
    fields = ("route_id", "route__account_id", "route__account__name", "route__name")
    lost: dict[tuple[int, int, str, str], list[str]] = {}
    for *route, owner, pool in uses.values_list(*fields, "pool__account__name", "pool__name"):
        lost.setdefault((route[0], route[1], route[2], route[3]), []).append(f"{owner}/{pool}")
    return Look(tuple(_lost_pool(*route, pools, instant) for route, pools in lost.items()))


def _lost_pool(pk: int, account_id: int, account: str, name: str, pools: list[str], instant: datetime) -> Seen:
    return Seen(
        *("route", pk, account_id, account, name, "Route {} lost a shared pool", sentence(pools), instant),
        *(f"/routes/{pk}", tuple(f"shared:{pool}" for pool in pools)),
    )


def look_at_runs() -> Look:
    """Capacity tests whose last run failed, was refused, or could not tell."""
    last = Run.objects.filter(test__isnull=False, ended_at__isnull=False).values("test").annotate(last=Max("pk"))
    rows = Run.objects.filter(pk__in=last.values("last")).select_related("test", "account")
    found = []
    for run in rows:
        refused = run.state in (Run.State.REFUSED, Run.State.FAILED)
        if run.test is None or run.ended_at is None:
            continue
        if refused or (run.result and result_of(run.result).inconclusive):
            title = "Capacity test {} has no result"
            test, page = run.test, f"/capacity-tests/{run.test_id}"
            found.append(
                Seen(
                    *("capacity test", test.pk, run.account_id, run.account.name, test.name, title),
                    *(run.message, run.ended_at, page, (f"test:{test.pk}",)),
                )
            )
    return Look(tuple(found))


def look_at_schedules() -> Look:
    """Schedules whose last run was missed or given up."""
    ended = ScheduleRun.objects.exclude(state__in=ScheduleRun.OPEN).values("schedule").annotate(last=Max("pk"))
    bad = (ScheduleRun.State.MISSED, ScheduleRun.State.DEAD)
    rows = ScheduleRun.objects.filter(pk__in=ended.values("last"), state__in=bad).select_related("schedule__account")
    return Look(tuple(_schedule(run) for run in rows))


def _schedule(run: ScheduleRun) -> Seen:
    schedule = run.schedule
    words = "was missed" if run.state == ScheduleRun.State.MISSED else "gave up"
    return Seen(
        *("schedule", schedule.pk, schedule.account_id, schedule.account.name, schedule.name),
        *(f"Schedule {{}} {words}", run.message, run.finished_at or run.due_at),
        *(f"/schedules/{schedule.pk}", (f"schedule:{schedule.pk}",)),
    )


def look_at_quotas(instant: datetime) -> Look:
    """Accounts and the share of the quota that they have used most of."""
    accounts = list(Account.objects.filter(kind=Account.Kind.CUSTOMER))
    counts = counts_of_all([account.pk for account in accounts])
    found = []
    for account in accounts:
        used = [
            (100 * counts[name].get(account.pk, 0) / most, name, most)
            for name, most in quotas_of(account).items()
            if most and name in counts
        ]
        share, name, most = max(used, default=(0.0, "", 0))
        if share > 0:
            words, count = name.replace("_", " "), counts[name].get(account.pk, 0)
            title = f"Account {account.name} has used {count:,} of {most:,} {words}"
            page, causes = f"/accounts/{account.name}", (f"quota:{account.pk}",)
            found.append(
                Seen(
                    *("account", account.pk, account.pk, account.name, account.name, title),
                    *("Delete some, or ask an operator to raise the quota.", instant, page, causes),
                    value=share,
                )
            )
    return Look(tuple(found))


def look_at_metrics() -> Look:
    """Saved searches that are measured, with the value of their last minute; some have none."""
    rows = list(saved.measured(SavedSearch.objects.select_related("account")))
    known = ((row, value, minute) for row, value, minute in rows if value is not None and minute is not None)
    return Look(
        tuple(_metric(*each) for each in known),
        frozenset(("search", row.pk) for row, value, _ in rows if value is None),
    )


def _metric(row: SavedSearch, value: float, minute: datetime) -> Seen:
    detail = f"{saved.title(row)}: {measured(value, saved.unit(row))} in the minute from {minute:%H:%M} UTC."
    return Seen(
        *("search", row.pk, row.account_id, row.account.name, row.name, "Metric {} is too high", detail, minute),
        *(f"/requests/saved/{row.pk}", (f"search:{row.pk}",)),
        value=value,
    )


def look_at_forwards() -> Look:
    """Log forwards whose receiver takes nothing; the account itself is told."""
    rows = LogForward.objects.filter(failures__gte=FAILURES, failing_since__isnull=False, enabled=True)
    failing = [(row, row.failing_since) for row in rows.select_related("account")]
    return Look(tuple(_forward(row, since) for row, since in failing if since is not None))


def _forward(row: LogForward, since: datetime) -> Seen:
    lost = f" {row.skipped:,} {row.sends} were dropped so far." if row.skipped else ""
    detail = f"{row.error} {row.lines_waiting:,} lines wait.{lost}".strip()
    return Seen(
        *("log forward", row.pk, row.account_id, row.account.name, row.name),
        *("Log forward {} does not reach its receiver", detail, since, f"/log-forwards#forward-{row.pk}"),
        (f"forward:{row.pk}",),
        own=True,
    )


def look_at_channels() -> Look:
    """Channels that did not take the last messages; the account itself is told, by its other channels."""
    rows = ChannelState.objects.filter(failures__gte=FAILURES, failing_since__isnull=False, channel__enabled=True)
    failing = [(row, row.failing_since) for row in rows.select_related("channel__account")]
    return Look(tuple(_channel(row, since) for row, since in failing if since is not None))


def _channel(row: ChannelState, since: datetime) -> Seen:
    channel = row.channel
    return Seen(
        *("channel", channel.pk, channel.account_id, channel.account.name, channel.name),
        *("Channel {} does not take messages", row.error, since, f"/alerts/channels/{channel.pk}"),
        (f"channel:{channel.pk}",),
        own=True,
    )


def look_at_untold() -> Look:
    """Accounts with critical alerts of which no message arrived anywhere.

    Operators hear of an account that has a channel: one without wanted none.
    """
    told = Told.objects.filter(alert=OuterRef("pk"), delivered_at__isnull=False)
    others = Finding.objects.filter(alert=OuterRef("pk"), ended_at=None).exclude(watches="nobody_told")
    rows = Alert.objects.filter(Exists(others), resolved_at=None, severity=CRITICAL, acknowledged_at=None)
    untold: dict[int, list[Alert]] = {}
    for alert in rows.exclude(Exists(told)).select_related("account").order_by("opened_at"):
        untold.setdefault(alert.account_id, []).append(alert)
    having = set(AlertChannel.objects.filter(enabled=True).values_list("account_id", flat=True))
    return Look(tuple(_untold(alerts, alerts[0].account_id in having) for alerts in untold.values()))


def _untold(alerts: list[Alert], has_channels: bool) -> Seen:
    account, first = alerts[0].account, alerts[0]
    more = f" and of {len(alerts) - 1} more" if len(alerts) > 1 else ""
    detail = f"No message arrived of “{first.title}”{more}."
    detail += " Look at the log of the channels." if has_channels else " Create a channel."
    return Seen(
        *("account", account.pk, account.pk, account.name, account.name),
        *(f"Nobody in {account.name} was told of a critical alert", detail, first.opened_at),
        *("/alerts/channels", (f"untold:{account.pk}",)),
        own=not has_channels,
    )
