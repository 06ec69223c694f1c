"""The actor comes first, and rows that the actor may not see do not exist."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.accounts.actors import Actor
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
