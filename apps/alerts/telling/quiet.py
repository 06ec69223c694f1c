"""Whether a channel has its quiet hours; pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from apps.calendars.errors import CalendarError
from apps.calendars.zones import to_wall, zone_of


def is_quiet(hours: Mapping[str, str] | None, instant: datetime) -> bool:
    """Whether `instant` is within the hours `{start, end, zone}`; they may pass midnight, the end is not within.

    A zone that this machine does not know any more means no quiet: rather told than not.
    """
    if not hours:
        return False
    try:
        local = to_wall(instant, zone_of(hours["zone"])).strftime("%H:%M")
    except CalendarError:
        return False
    start, end = hours["start"], hours["end"]
    return start <= local < end if start < end else local >= start or local < end
