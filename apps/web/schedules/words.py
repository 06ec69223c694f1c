"""Schedules in words: when, what, how the last time went, and the next instants with what clocks do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apps.calendars import CalendarError, Timing, describe, next_after, upcoming
from apps.definitions.freezing.timing import timing_of
from apps.definitions.models import Schedule
from apps.schedules.models import ScheduleRun

UNREADABLE = "This schedule is no longer valid. Edit it."
ONE_SECOND = timedelta(seconds=1)


class Mark(NamedTuple):
    """A state as kind, shape and word of `components/mark.html`."""

    kind: str
    shape: str
    word: str


SCHEDULE_RUNS = {
    ScheduleRun.State.WAITING: Mark("idle", "behind", "Waiting"),
    ScheduleRun.State.RUNNING: Mark("busy", "busy", "Running"),
    ScheduleRun.State.DONE: Mark("good", "check", "Done"),
    ScheduleRun.State.DEAD: Mark("bad", "bad", "Failed"),
    ScheduleRun.State.SKIPPED: Mark("idle", "stop", "Skipped"),
    ScheduleRun.State.MISSED: Mark("warn", "unknown", "Missed"),
}
CAUSES = {
    ScheduleRun.Cause.TIME: "",
    ScheduleRun.Cause.CATCH_UP: "caught up",
    ScheduleRun.Cause.BY_HAND: "by hand",
    ScheduleRun.Cause.TRIGGER: "by a trigger",
    ScheduleRun.Cause.RESTORE: "restores",
}
ON = Mark("good", "good", "Active")
PAUSED = Mark("idle", "pause", "Paused")
ENDED = Mark("idle", "stop", "No upcoming runs")
LISTENING = Mark("good", "good", "Waiting for a call")


@dataclass(frozen=True, slots=True)
class Instant:
    """When it falls due: in UTC, as a clock of its zone shows it, and what a clock change does to it."""

    at: datetime
    local: str
    note: str


def zone_of(name: str) -> ZoneInfo:
    """The zone of a schedule; UTC for one that is stored but that this machine does not know."""
    try:
        return ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError):
        return ZoneInfo("UTC")


def is_timed(timing: Timing) -> bool:
    """Whether it falls due by itself; else only triggers and people make it run."""
    return bool(timing.cron or timing.every_s or timing.at)


def sentence(row: Schedule) -> str:
    """When it falls due, in words; stored values that nobody can read say so."""
    timing = timing_of(row)
    if not is_timed(timing):
        return "When a trigger is called"
    try:
        return describe(timing)
    except CalendarError:
        return UNREADABLE


def state_of(row: Schedule) -> Mark:
    """Whether the schedule is on."""
    if row.paused:
        return PAUSED
    if not is_timed(timing_of(row)):
        return LISTENING
    return ON if row.next_at else ENDED


def target_of(kind: str, target: Mapping[str, Any]) -> str:
    """What it does, in a few words, from the stored document of the target."""
    match kind:
        case "webhook":
            return f"POST to {target.get('url', '')}"
        case "topic":
            return f"Message to topic {target.get('topic', '')}"
        case "capacity_test":
            return f"Capacity test {target.get('name', '')}"
        case "rollout":
            return f"Push of fleet {target.get('fleet', '')}"
    changed = target.get("object")
    changed = changed if isinstance(changed, dict) else {}
    return f"Change of {changed.get('kind', 'an object')} {changed.get('name', '')}".rstrip()


def span(seconds: int) -> str:
    """Whole seconds as people say them: `90 s`, `15 min`, `2 h`, `3 days`."""
    for unit, word in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds and seconds % unit == 0:
            count = seconds // unit
            return f"{count} {word}{'s' if word == 'day' and count != 1 else ''}"
    return f"{seconds} s"


def next_instants(timing: Timing, moment: datetime, count: int = 10) -> list[Instant]:
    """The next instants after a moment. Raises CalendarError for a timing that cannot be read."""
    found = upcoming(timing, moment, count)
    zone = ZoneInfo(timing.zone)
    return [Instant(at, local_text(at, zone), _note(timing, at, zone)) for at in found]


def local_text(at: datetime, zone: ZoneInfo) -> str:
    """What a clock in the zone shows: `Sun 2026-03-29 03:00:00 CEST`."""
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M:%S %Z}"


def _note(timing: Timing, at: datetime, zone: ZoneInfo) -> str:
    """What a clock change does to this instant; rates count seconds, which no clock change touches."""
    if not (timing.cron or timing.at):
        return ""
    local = at.astimezone(zone)
    before = (at - ONE_SECOND).astimezone(zone)
    jump = (local.utcoffset() or timedelta()) - (before.utcoffset() or timedelta())
    if jump > timedelta():
        return _moved(timing, local, jump)
    early, late = (local.replace(fold=fold, tzinfo=zone).utcoffset() for fold in (0, 1))
    if early and late and early > late:
        return f"Clocks show {local:%H:%M} twice on that day. The schedule runs once, the first time."
    return ""


def _moved(timing: Timing, local: datetime, jump: timedelta) -> str:
    """What of the hour that clocks leave out falls on the first instant after it."""
    first = (local.replace(tzinfo=UTC) - jump).replace(fold=0)
    plain = replace(timing, zone="UTC", starts_at=None, ends_at=None)
    skipped: list[datetime] = []
    after = first - ONE_SECOND
    while len(skipped) < 2:
        after_next = next_after(plain, after)
        if after_next is None or after_next >= first + jump:
            break
        skipped.append(after_next)
        after = after_next
    if not skipped:
        return ""
    times = f"{skipped[0]:%H:%M}" + (" and what follows" if len(skipped) > 1 else "")
    due_then = next_after(plain, first + jump - ONE_SECOND) == first + jump
    verb = "joins" if due_then else "moves to"
    return f"Clocks skip {first:%H:%M}–{local:%H:%M} on that day: {times} {verb} {local:%H:%M}."
