"""A stored schedule as the calendar reads it."""

from __future__ import annotations

from apps.calendars import Timing
from apps.definitions.models import Schedule


def timing_of(schedule: Schedule) -> Timing:
    """When the schedule falls due; never by itself when only its trigger runs it."""
    return Timing(
        cron=schedule.cron,
        every_s=schedule.every_s,
        at=schedule.at,
        zone=schedule.zone,
        starts_at=schedule.starts_at,
        ends_at=schedule.ends_at,
    )
