"""The reads: alerts, silences, rules and messages, narrowed to the actor's own account.

An operator account has alerts of its own, which speak of everybody's objects. Those of customers are theirs, as are
their silences; operators see them as they see everything of a customer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Prefetch, Q, QuerySet

from apps.accounts.actors import Actor
from apps.alerts.models import Alert, ChannelState, Finding, Notification, Silence
from apps.alerts.rules import Rule, rules_of
from apps.alerts.telling.planning import silenced_alerts
from apps.core.clock import now
from apps.definitions.models import AlertChannel, AlertRule
from apps.definitions.selectors import alert_channels, only


def alerts(actor: Actor) -> QuerySet[Alert]:
    """Alerts with their findings, newest first; operators also see those of customers."""
    findings = Prefetch("findings", Finding.objects.order_by("ended_at", "id"))
    return actor.visible(Alert.objects.select_related("account")).prefetch_related(findings).order_by("-id")


def own_alerts(actor: Actor) -> QuerySet[Alert]:
    """The alerts of the actor's own account: what its people have to do something about."""
    return alerts(actor).filter(account=actor.account)


def alert(actor: Actor, pk: int) -> Alert:
    """One alert. Raises NotFound."""
    return only(alerts(actor), pk)


def silenced(rows: Iterable[Alert]) -> frozenset[int]:
    """Which of these alerts (primary keys) a silence covers now."""
    found = [row for row in rows if row.resolved_at is None]
    return silenced_alerts(found, {row.pk: active_findings(row) for row in found}, now())


def active_findings(row: Alert) -> list[Finding]:
    """What is still wrong; of an alert that is over, what was."""
    found = list(row.findings.all())
    return [each for each in found if each.ended_at is None] or found


def own_findings(actor: Actor, objects: Iterable[tuple[str, int]], since: datetime) -> QuerySet[Finding]:
    """What alerts of the actor's own account found on these objects (kind, primary key) and was so since then."""
    named = Q(pk__in=())
    for kind, pk in objects:
        named |= Q(object_kind=kind, object_id=pk)
    rows = Finding.objects.filter(named, Q(ended_at=None) | Q(ended_at__gte=since), account=actor.account)
    return rows.filter(alert__isnull=False).order_by("-id")


def silences(actor: Actor) -> QuerySet[Silence]:
    """Silences that have not ended."""
    rows = Silence.objects.select_related("account").filter(ends_at__gt=now())
    return actor.visible(rows).order_by("ends_at", "id")


def silence(actor: Actor, pk: int) -> Silence:
    """One silence that has not ended. Raises NotFound."""
    return only(silences(actor), pk)


def rules(actor: Actor) -> list[Rule]:
    """Every rule of the actor's account, those that are built in first."""
    return rules_of(actor.account, AlertRule.objects.filter(account=actor.account).order_by("name"))


def notifications(channel: AlertChannel) -> QuerySet[Notification]:
    """What was sent to a channel that the actor may see, newest first."""
    return Notification.objects.filter(channel=channel).order_by("-id")


def channel(actor: Actor, pk: int) -> AlertChannel:
    """One channel. Raises NotFound."""
    return only(alert_channels(actor), pk)


def states(channels: Iterable[AlertChannel]) -> Mapping[int, ChannelState]:
    """How channels do, by primary key; one that was never sent anything is not there."""
    rows = ChannelState.objects.filter(channel__in=[each.pk for each in channels])
    return {row.channel_id: row for row in rows}
