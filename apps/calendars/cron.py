"""The cron expression: five fields, or six with the seconds first, read into sets of bits.

Fields are second, minute, hour, day of month, month and day of week (0 and 7 are Sunday). Each is a list of `*`, `?`
(days only), a value, a range `a-b` (which may wrap, as FRI-MON), and steps `*/n`, `a/n`, `a-b/n`. Names of months and
weekdays count, in either case. Days of the month also know `L` (the last), `L-3` (three before it), `LW` (the last
working day) and `15W` (the working day nearest to the 15th within the month); weekdays know `5L` (the last Friday) and
`2#1` (the first Tuesday). Where both kinds of day are restricted, a day needs to match one of them, as in Vixie cron; a
field is restricted unless it is exactly `*` or `?`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from apps.calendars.errors import CalendarError

LONGEST = 200
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_PART = re.compile(r"(?P<first>[0-9A-Z]{1,3})(?:-(?P<last>[0-9A-Z]{1,3}))?(?:/(?P<step>[0-9]{1,2}))?")
_EVERY = re.compile(r"[*?](?:/(?P<step>[0-9]{1,2}))?")
_LAST_DAY = re.compile(r"L(?:-(?P<before>[0-9]{1,2}))?")
_NEAREST = re.compile(r"(?P<day>[0-9]{1,2})W")
_LAST_WEEKDAY = re.compile(r"(?P<day>[0-7]|[A-Z]{3})L|L(?P<after>[0-7])")
_NTH_WEEKDAY = re.compile(r"(?P<day>[0-7]|[A-Z]{3})#(?P<nth>[0-9])")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an expression: its name for people, its bounds, and its names of values."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        """The value that the text names; CalendarError when it is none of this field."""
        if text in self.names:
            return self.names.index(text) + self.low
        if text.isdigit() and self.low <= int(text) <= self.high:
            return int(text)
        names = f" or one of {', '.join(self.names)}" if self.names else ""
        raise _error(f"'{text}' is not a {self.name}: write a number from {self.low} to {self.high}{names}.")


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of the month", 1, 31)
MONTH = Field("month", 1, 12, MONTH_NAMES)
WEEKDAY = Field("day of the week", 0, 7, WEEKDAY_NAMES)


@dataclass(frozen=True, slots=True)
class Days:
    """Days of a month: bits 1–31, days before the last one, working days nearest to a day, the last working day."""

    plain: int = 0
    before_last: tuple[int, ...] = ()
    nearest: tuple[int, ...] = ()
    last_working: bool = False


@dataclass(frozen=True, slots=True)
class Weekdays:
    """Days of a week: bits 0–6 from Sunday, the last of a weekday in the month, the nth `(weekday, n)`."""

    plain: int = 0
    last: tuple[int, ...] = ()
    nth: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression that was read: bits of each field; None for days that are not restricted. `texts` as written."""

    seconds: int
    minutes: int
    hours: int
    days: Days | None
    months: int
    weekdays: Weekdays | None
    texts: tuple[str, str, str, str, str, str]


@lru_cache(maxsize=16_384)
def parse(expression: str) -> Cron:
    """Read an expression; CalendarError (field `cron`) names the part that is wrong and what to write instead."""
    texts = _six_fields(expression)
    return Cron(
        seconds=_bits(texts[0], SECOND),
        minutes=_bits(texts[1], MINUTE),
        hours=_bits(texts[2], HOUR),
        days=None if texts[3] in {"*", "?"} else _days(texts[3]),
        months=_bits(texts[4], MONTH),
        weekdays=None if texts[5] in {"*", "?"} else _weekdays(texts[5]),
        texts=texts,
    )


def _error(detail: str, code: str = "bad_cron") -> CalendarError:
    return CalendarError("cron", code, detail)


def _six_fields(expression: str) -> tuple[str, str, str, str, str, str]:
    if not expression.isascii() or not expression.isprintable() or len(expression) > LONGEST:
        raise _error(f"A cron expression is at most {LONGEST} printable ASCII characters.")
    text = expression.strip()
    if text.startswith("@"):
        if text.lower() not in MACROS:
            raise _error(f"'{text}' is not known: write one of {', '.join(MACROS)}, or five or six fields.")
        text = MACROS[text.lower()]
    fields = text.upper().split()
    if len(fields) == 5:
        fields.insert(0, "0")
    if len(fields) != 6:
        raise _error(
            f"A cron expression has five fields (minute, hour, day, month, weekday) or six (second first), "
            f"this one has {len(fields)}.",
            "wrong_number_of_fields",
        )
    second, minute, hour, day, month, weekday = fields
    return second, minute, hour, day, month, weekday


def _bits(text: str, field: Field) -> int:
    bits = 0
    for part in _parts(text, field):
        bits |= _part_bits(part, field)
    return bits


def _parts(text: str, field: Field) -> list[str]:
    parts = text.split(",")
    if not all(parts):
        raise _error(f"The {field.name} '{text}' has an empty part: write values with one comma between them.")
    return parts


def _part_bits(part: str, field: Field) -> int:
    """The bits of `*`, a value or a range, with or without a step."""
    every = _EVERY.fullmatch(part)
    if every:
        if part[0] == "?" and field not in {DAY, WEEKDAY}:
            raise _error(f"'?' stands for days only: write '*' for each {field.name}.")
        return _stepped(field.low, min(field.high, 6) if field is WEEKDAY else field.high, every["step"], field)
    match = _PART.fullmatch(part)
    if match is None:
        raise _error(f"The {field.name} '{part}' cannot be read: write a value, a range a-b, or a step */n.")
    first = field.number(match["first"])
    if match["last"] is not None:
        return _stepped(first, field.number(match["last"]), match["step"], field)
    # `a/n` goes on to the end of the field; a lone value ends where it begins.
    last = (6 if field is WEEKDAY else field.high) if match["step"] else first
    return _stepped(first, max(first, last), match["step"], field)


def _stepped(first: int, last: int, step: str | None, field: Field) -> int:
    """Bits from `first` to `last`, over the end of the field where `last` is smaller; weekday 7 is weekday 0."""
    stride = int(step) if step is not None else 1
    span = 7 if field is WEEKDAY else field.high - field.low + 1
    if not 1 <= stride <= span:
        raise _error(f"A step of {stride} in the {field.name} makes no sense: write a number from 1 to {span}.")
    if last < first:
        last += span
    bits = 0
    for value in range(first, last + 1, stride):
        bits |= 1 << ((value - field.low) % span + field.low)
    return bits


def _days(text: str) -> Days:
    plain, before, nearest, last_working = 0, set[int](), set[int](), False
    for part in _parts(text, DAY):
        if part == "LW":
            last_working = True
        elif match := _LAST_DAY.fullmatch(part):
            before.add(_days_before(match["before"]))
        elif match := _NEAREST.fullmatch(part):
            nearest.add(DAY.number(match["day"]))
        else:
            plain |= _part_bits(part, DAY)
    return Days(plain, tuple(sorted(before)), tuple(sorted(nearest)), last_working)


def _days_before(text: str | None) -> int:
    if text is not None and not 1 <= int(text) <= 30:
        raise _error(f"'L-{text}' is before the month begins: write L-1 to L-30.")
    return int(text or 0)


def _weekdays(text: str) -> Weekdays:
    plain, last, nth = 0, set[int](), set[tuple[int, int]]()
    for part in _parts(text, WEEKDAY):
        if part == "L":
            raise _error("'L' alone is no day of the week: write 5L for the last Friday, or 6 for each Saturday.")
        if match := _LAST_WEEKDAY.fullmatch(part):
            last.add(WEEKDAY.number(match["day"] or match["after"]) % 7)
        elif match := _NTH_WEEKDAY.fullmatch(part):
            nth.add((WEEKDAY.number(match["day"]) % 7, _nth(match["nth"])))
        else:
            plain |= _part_bits(part, WEEKDAY)
    return Weekdays(plain, tuple(sorted(last)), tuple(sorted(nth)))


def _nth(text: str) -> int:
    if not 1 <= int(text) <= 5:
        raise _error(f"A month has no weekday number {text}: write #1 to #5, or L for the last.")
    return int(text)
