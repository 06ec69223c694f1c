"""A timing in one sentence."""

from __future__ import annotations

from apps.calendars.cron import MONTH_NAMES, Cron, Days, Weekdays, parse
from apps.calendars.timing import Timing, local_time

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ORDINALS = ("first", "second", "third", "fourth", "fifth")
ALL_MONTHS = (2 << len(MONTH_NAMES)) - 2
ALL_MINUTES = (1 << 60) - 1
ALL_HOURS = (1 << 24) - 1
WORKING_WEEK = 0b0111110
MOST_TIMES = 6


def describe(timing: Timing) -> str:
    """What the timing says, as in "At 02:30 every day, Europe/Berlin"; times are local times of its zone."""
    if timing.every_s is not None:
        return _rate(timing.every_s)
    if timing.at:
        once = local_time(timing.at)
        return f"Once, on {once.day} {MONTHS[once.month - 1]} {once.year} at {once:%H:%M:%S}, {timing.zone}"
    if not timing.cron:
        return "When its trigger is called"
    cron = parse(timing.cron)
    words = f"{_times(cron)} {_which_days(cron)}".strip()
    return f"{words[0].upper()}{words[1:]}, {timing.zone}"


def _rate(seconds: int) -> str:
    for length, name in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds % length == 0:
            return _every(seconds // length, name)
    raise AssertionError("every whole number of seconds is a multiple of one")


def _every(count: int, name: str) -> str:
    return f"Every {name}" if count == 1 else f"Every {count} {name}s"


def _values(bits: int) -> list[int]:
    return [value for value in range(bits.bit_length()) if bits >> value & 1]


def _listed(words: list[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _times(cron: Cron) -> str:
    """The part about the time of day: points of time while they are few, else beats."""
    seconds, minutes, hours = _values(cron.seconds), _values(cron.minutes), _values(cron.hours)
    if len(seconds) * len(minutes) * len(hours) <= MOST_TIMES:
        points = [_clock(hour, minute, second) for hour in hours for minute in minutes for second in seconds]
        return f"at {_listed(points)}"
    parts = [_beat(cron.seconds, "second", 60), _beat(cron.minutes, "minute", 60), _hour_part(cron)]
    if seconds == [0]:
        parts.pop(0)
    elif cron.minutes == ALL_MINUTES:
        parts.pop(1)
    return " ".join(part for part in parts if part)


def _clock(hour: int, minute: int, second: int) -> str:
    return f"{hour:02}:{minute:02}:{second:02}" if second else f"{hour:02}:{minute:02}"


def _beat(bits: int, name: str, size: int) -> str:
    """Bits as "every 5 minutes" where they are a beat of the whole field, else as "at minutes 5, 20 and 35"."""
    values = _values(bits)
    step = values[1] - values[0] if len(values) > 1 else size
    if values == list(range(0, size, step)) and size % step == 0 and step < size:
        return _every(step, name).lower()
    return f"at {name}{'s' * (len(values) > 1)} {_ranges(values)}"


def _hour_part(cron: Cron) -> str:
    if cron.hours == ALL_HOURS:
        return "of every hour" if cron.minutes != ALL_MINUTES and not _is_beat(cron.minutes) else ""
    values = _values(cron.hours)
    if values == list(range(values[0], values[-1] + 1)):
        return f"from {values[0]:02}:00 to {values[-1]:02}:59"
    words = _beat(cron.hours, "hour", 24)
    return words if words.startswith("every") and not _is_beat(cron.minutes) else f"in hours {_ranges(values)}"


def _is_beat(bits: int) -> bool:
    values = _values(bits)
    return len(values) > 1 and values == list(range(0, 60, values[1] - values[0]))


def _ranges(values: list[int]) -> str:
    """Numbers with neighbours drawn together: 1–5, 9 and 12."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    words = []
    for run in runs:
        words += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(value) for value in run]
    return _listed(words)


def _which_days(cron: Cron) -> str:
    kinds = []
    if cron.days is not None:
        kinds.append(_days_of_month(cron.days))
    if cron.weekdays is not None:
        kinds.append(_days_of_week(cron.weekdays))
    days = _listed(kinds, "or") if kinds else ("every day" if _few_times(cron) else "")
    return f"{days} {_months(cron.months)}".strip()


def _few_times(cron: Cron) -> bool:
    return len(_values(cron.seconds)) * len(_values(cron.minutes)) * len(_values(cron.hours)) <= MOST_TIMES


def _months(bits: int) -> str:
    if bits == ALL_MONTHS:
        return ""
    return f"in {_listed([MONTHS[value - 1] for value in _values(bits)])}"


def _days_of_month(days: Days) -> str:
    words = []
    if days.plain:
        values = _values(days.plain)
        words.append(f"day{'s' * (len(values) > 1)} {_ranges(values)} of the month")
    for before in days.before_last:
        last = "the last day of the month"
        words.append(f"{before} day{'s' * (before > 1)} before {last}" if before else last)
    words += [f"the working day nearest to day {day}" for day in days.nearest]
    if days.last_working:
        words.append("the last working day of the month")
    return f"on {_listed(words)}"


def _days_of_week(weekdays: Weekdays) -> str:
    words = []
    if weekdays.plain == WORKING_WEEK:
        words.append("Monday to Friday")
    elif weekdays.plain:
        # The week begins on Monday for the eye.
        words += [WEEKDAYS[day % 7] for day in range(1, 8) if weekdays.plain >> (day % 7) & 1]
    words += [f"the {ORDINALS[nth - 1]} {WEEKDAYS[day]} of the month" for day, nth in weekdays.nth]
    words += [f"the last {WEEKDAYS[day]} of the month" for day in weekdays.last]
    return f"on {_listed(words)}"
