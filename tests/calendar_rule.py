"""The rule of calendars, written down a second time, by walking: nothing here is taken from apps.calendars.

Every second of UTC is looked at: what do the clocks of the zone show, and does the expression name that? It runs at the
first second that shows a named time, and at the first second after a change that jumped over a named time. The sets of
the fields are given as plain sets of numbers, not as text, so that reading an expression is not shared either.
"""

from __future__ import annotations

import random
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Rule:
    """Numbers of each field, weekdays from Sunday = 0; None for days that are not restricted; `text` says the same."""

    text: str
    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int] | None
    months: frozenset[int]
    weekdays: frozenset[int] | None
    last_day: bool = False
    nearest: int | None = None
    last_weekday: int | None = None
    nth: tuple[int, int] | None = None

    def names(self, wall: datetime) -> bool:
        """Whether the expression names this local time."""
        if wall.second not in self.seconds or wall.minute not in self.minutes or wall.hour not in self.hours:
            return False
        return wall.month in self.months and self._names_day(wall.date())

    def _names_day(self, day: date) -> bool:
        of_month = self.days is not None or self.last_day or self.nearest is not None
        of_week = self.weekdays is not None or self.last_weekday is not None or self.nth is not None
        if not of_month and not of_week:
            return True
        return (of_month and self._by_month(day)) or (of_week and self._by_week(day))

    def _by_month(self, day: date) -> bool:
        if self.days is not None and day.day in self.days:
            return True
        if self.last_day and (day + timedelta(days=1)).day == 1:
            return True
        return self.nearest is not None and day == _working_day_nearest(day.year, day.month, self.nearest)

    def _by_week(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        if self.weekdays is not None and weekday in self.weekdays:
            return True
        if self.last_weekday == weekday and (day + timedelta(days=7)).month != day.month:
            return True
        return self.nth is not None and self.nth[0] == weekday and (day.day - 1) // 7 + 1 == self.nth[1]


def _working_day_nearest(year: int, month: int, number: int) -> date | None:
    """Monday to Friday of the month with the smallest distance to the day; None in a month without that day."""
    length = monthrange(year, month)[1]
    if number > length:
        return None
    working = [date(year, month, day) for day in range(1, length + 1) if date(year, month, day).isoweekday() <= 5]
    return min(working, key=lambda day: abs(day.day - number))


def walk(rule: Rule, zone: ZoneInfo, first: datetime, seconds: int, step: int = 1) -> Iterator[datetime]:
    """Every instant in [first, first + seconds) at which the rule runs, looking each `step` seconds."""
    local = (first - SECOND * step).astimezone(zone)
    for offset in range(0, seconds, step):
        before, instant = local, first + SECOND * offset
        local = instant.astimezone(zone)
        if local.fold:
            continue  # these times were shown before
        wall = local.replace(tzinfo=None)
        if rule.names(wall) or any(rule.names(each) for each in _jumped_over(before, wall, step)):
            yield instant


def _jumped_over(before: datetime, wall: datetime, step: int) -> Iterator[datetime]:
    """Local times between two looks that no clock showed."""
    shown = before.replace(tzinfo=None) + SECOND * step
    while shown < wall:
        yield shown
        shown += SECOND * step


def random_rule(dice: random.Random, *, whole_minutes: bool) -> Rule:
    """An expression and, beside it, what it means."""
    second_text, seconds = ("0", frozenset({0})) if whole_minutes else _field(dice, 0, 59)
    minute_text, minutes = _field(dice, 0, 59)
    hour_text, hours = _field(dice, 0, 23)
    month_text, months = ("*", frozenset(range(1, 13))) if dice.random() < 0.8 else _field(dice, 1, 12)
    day_text, day_parts = _day_field(dice)
    week_text, week_parts = _week_field(dice)
    text = f"{second_text} {minute_text} {hour_text} {day_text} {month_text} {week_text}"
    return Rule(text, seconds, minutes, hours, months=months, **day_parts, **week_parts)


def croniter_means_the_same(rule: Rule) -> bool:
    """Whether croniter reads the expression by the rule: no W there, other ways of ?, FRIL and 1-1."""
    special = rule.nth is not None or rule.last_weekday is not None
    of_month = rule.days is not None or rule.last_day
    one_day = rule.weekdays is not None and len(rule.weekdays) == 1
    written = any(sign in rule.text for sign in ("?", "NL", "EL", "DL", "UL", "IL", "TL"))
    return rule.nearest is None and not written and not one_day and not (special and of_month)


def _day_field(dice: random.Random) -> tuple[str, dict[str, Any]]:
    kind = dice.random()
    if kind < 0.55:
        return dice.choice("***?"), {"days": None}
    if kind < 0.65:
        return "L", {"days": None, "last_day": True}
    if kind < 0.75:
        number = dice.randint(1, 31)
        return f"{number}W", {"days": None, "nearest": number}
    text, days = _field(dice, 1, 31)
    return (text, {"days": days}) if text != "*" else (text, {"days": None})


def _week_field(dice: random.Random) -> tuple[str, dict[str, Any]]:
    kind, day = dice.random(), dice.randint(0, 6)
    name = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")[day]
    if kind < 0.55:
        return dice.choice("***?"), {"weekdays": None}
    if kind < 0.65:
        return dice.choice((f"{name}L", f"L{day}")), {"weekdays": None, "last_weekday": day}
    if kind < 0.75:
        nth = dice.randint(1, 5)
        return f"{day}#{nth}", {"weekdays": None, "nth": (day, nth)}
    first, last = sorted((dice.randint(0, 6), day))
    return f"{first}-{last}", {"weekdays": frozenset(range(first, last + 1))}


def _field(dice: random.Random, low: int, high: int) -> tuple[str, frozenset[int]]:
    """One of: everything, a number, a list, a range, a range over the end, a step."""
    kind = dice.randint(0, 5)
    first, last = sorted(dice.sample(range(low, high + 1), 2))
    step = dice.randint(2, 15)
    if kind == 0:
        return "*", frozenset(range(low, high + 1))
    if kind == 1:
        return str(first), frozenset({first})
    if kind == 2:
        return f"{last},{first}", frozenset({first, last})
    if kind == 3:
        return f"{first}-{last}", frozenset(range(first, last + 1))
    if kind == 4:
        return f"{last}-{first}", frozenset([*range(last, high + 1), *range(low, first + 1)])
    step = min(step, high - low)
    return f"{first}-{last}/{step}", frozenset(range(first, last + 1, step))


def zones() -> list[str]:
    """Every zone of the database on this machine that is a place or an offset."""
    skipped = ("posix/", "right/", "SystemV/", "localtime", "posixrules", "Factory", "leapseconds")
    return sorted(name for name in available_timezones() if not name.startswith(skipped))


def changes(zone: ZoneInfo, first_year: int, last_year: int) -> list[datetime]:
    """Every instant at which the offset of the zone changes in these years, the last included."""
    instant, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    found = []
    while instant < end:
        later = instant + timedelta(hours=6)
        if instant.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            found.append(_exact(zone, instant, later))
        instant = later
    return found


def _exact(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    while after - before > SECOND:
        middle = before + ((after - before) // 2 // SECOND or 1) * SECOND
        same = middle.astimezone(zone).utcoffset() == before.astimezone(zone).utcoffset()
        before, after = (middle, after) if same else (before, middle)
    return after
