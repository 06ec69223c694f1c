"""The question that matters: when next? UTC in, UTC out, whole seconds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

from apps.calendars.cron import Cron, parse
from apps.calendars.timing import Timing, local_time
from apps.calendars.walls import LAST_YEAR, next_wall
from apps.calendars.zones import SECOND, end_of_repetition, to_instant, to_wall, zone_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
END_OF_TIME = datetime(LAST_YEAR, 1, 1, tzinfo=UTC)


def next_after(timing: Timing, moment: datetime) -> datetime | None:
    """The first instant strictly after `moment` (aware), None when there is no more."""
    moment = moment.astimezone(UTC)
    if timing.starts_at is not None:
        moment = max(moment, _just_before(timing.starts_at))
    if moment >= END_OF_TIME:
        return None
    found = _next_unbounded(timing, moment)
    if found is None or (timing.ends_at is not None and found >= timing.ends_at):
        return None
    return found


def instants(timing: Timing, after: datetime, until: datetime) -> Iterator[datetime]:
    """The instants in (after, until], one at a time."""
    found = next_after(timing, after)
    while found is not None and found <= until:
        yield found
        found = next_after(timing, found)


def upcoming(timing: Timing, moment: datetime, count: int = 10) -> list[datetime]:
    """The next `count` instants after `moment`, fewer when there are no more."""
    return list(islice(instants(timing, moment, END_OF_TIME), count))


def _just_before(start: datetime) -> datetime:
    """The latest whole second before `start`, so that an instant at `start` itself is one of those after."""
    start = start.astimezone(UTC)
    return start.replace(microsecond=0) if start.microsecond else start - SECOND


def _next_unbounded(timing: Timing, moment: datetime) -> datetime | None:
    if timing.every_s is not None:
        return _next_of_rate(timing.every_s, timing.starts_at, moment)
    if timing.cron:
        return _next_of_cron(parse(timing.cron), zone_of(timing.zone), moment)
    if timing.at:
        once = to_instant(local_time(timing.at), zone_of(timing.zone))
        return once if once > moment else None
    return None


def _next_of_rate(every_s: int, starts_at: datetime | None, moment: datetime) -> datetime:
    start = EPOCH if starts_at is None else _just_before(starts_at) + SECOND
    step = timedelta(seconds=every_s)
    return start + ((moment - start) // step + 1) * step


def _next_of_cron(cron: Cron, zone: tzinfo, moment: datetime) -> datetime | None:
    wall = to_wall(moment, zone)
    if wall.fold:
        # The second time of an hour that comes twice: all of it has run the first time.
        wall = end_of_repetition(moment, zone) - SECOND
    found = next_wall(cron, wall)
    return None if found is None else to_instant(found, zone)
