"""The actor comes first, and rows that the actor may not see do not exist."""

from __future__ import annotations

from django.db.models import Min, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.models import Schedule
from apps.definitions.selectors import only
from apps.schedules.models import ScheduleRun, Trigger


def runs(actor: Actor) -> QuerySet[ScheduleRun]:
    """Occurrences of schedules, newest first, with schedule, account and trigger."""
    rows = ScheduleRun.objects.select_related("schedule__account", "trigger")
    return actor.visible(rows).order_by("-scheduled_at", "-id")


def run(actor: Actor, pk: int) -> ScheduleRun:
    """One of them. Raises NotFound."""
    return only(runs(actor), pk)


def triggers(actor: Actor) -> QuerySet[Trigger]:
    """Inbound URLs of schedules, never with their secrets."""
    rows = Trigger.objects.select_related("schedule__account").defer("sealed_secret", "previous_secret")
    return actor.visible(rows).order_by("schedule__name", "name")


def trigger(actor: Actor, pk: int) -> Trigger:
    """One of them. Raises NotFound."""
    return only(triggers(actor), pk)


def behind_s() -> float:
    """Age of the oldest instant that nobody booked, seconds; of all accounts."""
    moment, active = now(), Account.objects.filter(suspended_at=None)
    late = Schedule.objects.filter(paused=False, next_at__lte=moment, account__in=active)
    oldest = late.aggregate(at=Min("next_at"))["at"]
    return (moment - oldest).total_seconds() if oldest else 0.0
