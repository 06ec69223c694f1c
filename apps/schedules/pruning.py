"""Forget runs that ended long ago, but always keep some of every schedule."""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.schedules.models import ScheduleRun

KEPT_FOR = timedelta(days=30)
KEPT_OF_EACH = 100
SCHEDULES_AT_ONCE = 500


def prune(moment: datetime) -> int:
    """Delete what is older than thirty days and not among the newest hundred of its schedule; how many went."""
    old = ScheduleRun.objects.filter(scheduled_at__lt=moment - KEPT_FOR).exclude(state__in=ScheduleRun.OPEN).order_by()
    return sum(_prune_one(pk, moment) for pk in old.values_list("schedule", flat=True).distinct()[:SCHEDULES_AT_ONCE])


def _prune_one(schedule_id: int, moment: datetime) -> int:
    newest = (
        ScheduleRun.objects.filter(schedule=schedule_id)
        .order_by("-scheduled_at")
        .values_list("scheduled_at", flat=True)
    )
    first_kept = newest[KEPT_OF_EACH - 1 : KEPT_OF_EACH].first()
    if first_kept is None:
        return 0
    old = ScheduleRun.objects.filter(schedule=schedule_id, scheduled_at__lt=min(first_kept, moment - KEPT_FOR))
    return old.exclude(state__in=ScheduleRun.OPEN).delete()[0]
