"""Local time: the next time on the wall that a cron expression names; clock changes are not known here."""

from __future__ import annotations

from calendar import monthrange
from datetime import datetime, timedelta

from apps.calendars.cron import Cron, Days, Weekdays

# Every combination of a date and a weekday comes back within 40 years (29 February around 2100).
HORIZON_YEARS = 41
LAST_YEAR = 9998
_EACH_WEEK = tuple(sum(1 << day for day in range(first, 32, 7)) for first in range(1, 8))


def next_wall(cron: Cron, wall: datetime) -> datetime | None:
    """The first matching time strictly after `wall` (both naive, whole seconds), or None when there is none."""
    start = wall + timedelta(seconds=1)
    if cron.months >> start.month & 1 and _days_of(cron, start.year, start.month) >> start.day & 1:
        found = _later_that_day(cron, start)
        if found is not None:
            return found
    return _first_of_later_day(cron, start)


def _lowest(bits: int, at_least: int) -> int | None:
    """The lowest bit that is set from `at_least` on."""
    rest = bits >> at_least
    return at_least + (rest & -rest).bit_length() - 1 if rest else None


def _first(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _later_that_day(cron: Cron, start: datetime) -> datetime | None:
    hour, minute, second = start.hour, start.minute, start.second
    if cron.hours >> hour & 1:
        if cron.minutes >> minute & 1:
            found = _lowest(cron.seconds, second)
            if found is not None:
                return start.replace(second=found)
        found = _lowest(cron.minutes, minute + 1)
        if found is not None:
            return start.replace(minute=found, second=_first(cron.seconds))
    found = _lowest(cron.hours, hour + 1)
    if found is None:
        return None
    return start.replace(hour=found, minute=_first(cron.minutes), second=_first(cron.seconds))


def _first_of_later_day(cron: Cron, start: datetime) -> datetime | None:
    year, month, day = start.year, start.month, start.day + 1
    last_year = min(year + HORIZON_YEARS, LAST_YEAR)
    while year <= last_year:
        if cron.months >> month & 1:
            found = _lowest(_days_of(cron, year, month), day)
            if found is not None:
                times = _first(cron.hours), _first(cron.minutes), _first(cron.seconds)
                return datetime(year, month, found, *times)  # noqa: DTZ001 - local time; zones.py gives it its zone
        later = _lowest(cron.months, month + 1)
        year, month, day = (year + 1, _first(cron.months), 1) if later is None else (year, later, 1)
    return None


def _days_of(cron: Cron, year: int, month: int) -> int:
    """Bits of the days of the month that match: of both kinds of day either, where both are restricted."""
    monday_first, length = monthrange(year, month)
    all_days = (2 << length) - 2
    if cron.days is None and cron.weekdays is None:
        return all_days
    first_weekday = (monday_first + 1) % 7
    bits = 0
    if cron.days is not None:
        bits |= cron.days.plain | _special_days(cron.days, first_weekday, length)
    if cron.weekdays is not None:
        bits |= _weekday_bits(cron.weekdays, first_weekday, length)
    return bits & all_days


def _special_days(days: Days, first_weekday: int, length: int) -> int:
    bits = 0
    for before in days.before_last:
        if before < length:
            bits |= 1 << (length - before)
    for day in days.nearest:
        if day <= length:
            bits |= 1 << _nearest_working(day, first_weekday, length)
    if days.last_working:
        bits |= 1 << _nearest_working(length, first_weekday, length)
    return bits


def _nearest_working(day: int, first_weekday: int, length: int) -> int:
    """Monday to Friday nearest to the day, within the month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _weekday_bits(weekdays: Weekdays, first_weekday: int, length: int) -> int:
    bits = 0
    for weekday in range(7):
        if weekdays.plain >> weekday & 1:
            bits |= _EACH_WEEK[(weekday - first_weekday) % 7]
    for weekday in weekdays.last:
        day = 1 + (weekday - first_weekday) % 7
        bits |= 1 << (day + (length - day) // 7 * 7)
    for weekday, nth in weekdays.nth:
        day = 1 + (weekday - first_weekday) % 7 + 7 * (nth - 1)
        if day <= length:
            bits |= 1 << day
    return bits
