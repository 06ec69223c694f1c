"""Clock changes: which instant a local time is.

A local time that the clocks skip is the first instant after the change; one that comes twice is the first of the two.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from apps.calendars.errors import CalendarError

SECOND = timedelta(seconds=1)
NOTHING = timedelta()
_NOT_LOCATIONS = ("posix/", "right/", "SystemV/")
_NOT_ZONES = frozenset({"localtime", "posixrules", "Factory", "leapseconds"})


@cache
def zone_names() -> frozenset[str]:
    """The names that `zone` may have, of the time zone database on this machine."""
    return frozenset(
        name for name in available_timezones() if name not in _NOT_ZONES and not name.startswith(_NOT_LOCATIONS)
    )


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo:
    """The zone of that name; CalendarError (field `zone`) when there is none."""
    if name == "UTC":
        return UTC
    if name not in zone_names():
        raise CalendarError("zone", "unknown_zone", "Name a time zone as Europe/Berlin, America/New_York or UTC.")
    return ZoneInfo(name)


def to_wall(moment: datetime, zone: tzinfo) -> datetime:
    """What the clocks of the zone show at the instant: naive, whole seconds; `fold` is 1 the second time."""
    return moment.astimezone(zone).replace(tzinfo=None, microsecond=0)


def to_instant(wall: datetime, zone: tzinfo) -> datetime:
    """The instant (UTC) at which the clocks of the zone show `wall` for the first time."""
    instant = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if zone is UTC or instant.astimezone(zone).replace(tzinfo=None) == wall:
        return instant
    # Skipped: read with the offset from before the change it lies after the change, with the one from after, before.
    return _change_between(wall.replace(tzinfo=zone, fold=1).astimezone(UTC), instant, zone)


def end_of_repetition(moment: datetime, zone: tzinfo) -> datetime:
    """The first local time that does not come twice, for an instant within the second time."""
    local = moment.astimezone(zone)
    first_offset, second_offset = _offset(local.replace(fold=0)), _offset(local)
    change = _change_between(moment - (first_offset - second_offset), moment, zone)
    return (change + first_offset).replace(tzinfo=None)


def _change_between(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first instant in (before, after] with the offset that the zone has at `after`."""
    wanted = after.astimezone(zone).utcoffset()
    low, high = 0, int((after - before) / SECOND)
    while high - low > 1:
        middle = (low + high) // 2
        if (before + middle * SECOND).astimezone(zone).utcoffset() == wanted:
            high = middle
        else:
            low = middle
    return before + high * SECOND


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or NOTHING
