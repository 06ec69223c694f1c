"""The decision: what becomes of the instants of one schedule that have come; pure, no database.

An instant up to `ON_TIME` old is on time. Older ones are late: of those within the catch-up window the policy runs
none, the latest, or all; every other is missed, and counted. A run that meets an open one of its schedule is skipped
where the overlap says so. Runs that catch up are not: they run one after another.

When a run may begin lies within the flexible window, always at the same offset for one schedule, so that the beats
stay even while schedules spread; jitter moves each instant by another, equally reproducible, amount. Whoever decides
about the same instant comes to the same result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apps.calendars import Timing, next_after

ON_TIME = timedelta(seconds=10)
# Of a schedule that is years behind one decision looks at so many instants; the next decision goes on from there.
MOST_INSTANTS = 2000
ANOTHER_OPEN = "Skipped: an earlier run of the schedule was still active."
ANOTHER_WAITS = "Skipped: another run of the schedule was already queued."


@dataclass(frozen=True, slots=True)
class Policy:
    """What a schedule says about its instants; seconds. `never_late`: late instants are missed, whatever it says."""

    schedule_id: int
    timing: Timing
    window_s: int = 0
    jitter_s: int = 0
    overlap: str = "skip"
    catch_up: str = "once"
    catch_up_window_s: int = 300
    never_late: bool = False


@dataclass(slots=True)
class Open:
    """How many runs of the schedule wait and run."""

    waiting: int = 0
    running: int = 0


@dataclass(frozen=True, slots=True)
class Planned:
    """One run to be booked; `skipped` says why it is not run, if it is not."""

    scheduled_at: datetime
    due_at: datetime
    late: bool = False
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Instants that passed without a run, from the first to the last."""

    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Decision:
    """Runs in order, the gap if there is one, and the instant that comes next."""

    next_at: datetime | None
    runs: list[Planned] = field(default_factory=list)
    gap: Gap | None = None


def decide(policy: Policy, next_at: datetime, moment: datetime, opened: Open) -> Decision:
    """What becomes of the instants from `next_at` to `moment`, both included; `opened` counts what is open already."""
    passed, following = _instants(policy.timing, next_at, moment)
    late = [instant for instant in passed if instant < moment - ON_TIME]
    # With more to come, the latest of these is not the latest that was late.
    caught_up = _caught_up(policy, late, moment, more=following is not None and following <= moment - ON_TIME)
    lost = late[: len(late) - len(caught_up)]
    opened = Open(opened.waiting, opened.running)
    runs = [_planned(policy, instant, opened, late=True) for instant in caught_up]
    runs += [_planned(policy, instant, opened, late=False) for instant in passed[len(late) :]]
    return Decision(following, runs, Gap(lost[0], lost[-1], len(lost)) if lost else None)


def why_skipped(overlap: str, opened: Open) -> str:
    """The sentence with which a new run is skipped, blank when it may wait its turn."""
    if overlap == "skip" and opened.waiting + opened.running:
        return ANOTHER_OPEN
    if overlap == "queue" and opened.waiting:
        return ANOTHER_WAITS
    return ""


def due_at(policy: Policy, instant: datetime) -> datetime:
    """When the run of the instant may begin: later by its offset in the window and by its jitter."""
    if not policy.window_s and not policy.jitter_s:
        return instant
    offset = policy.window_s * _share(f"{policy.schedule_id}")
    shift = policy.jitter_s * _share(f"{policy.schedule_id} {instant.isoformat()}")
    return instant + timedelta(milliseconds=round((offset + shift) * 1000))


def _instants(timing: Timing, first: datetime, moment: datetime) -> tuple[list[datetime], datetime | None]:
    """The instants from `first` on that have passed, so many as one decision takes, and the one after them."""
    passed: list[datetime] = []
    following: datetime | None = first
    for following in _from(timing, first):
        if following is None or following > moment or len(passed) == MOST_INSTANTS:
            break
        passed.append(following)
    return passed, following


def _from(timing: Timing, first: datetime) -> Iterator[datetime | None]:
    instant: datetime | None = first
    while instant is not None:
        yield instant
        instant = next_after(timing, instant)
    yield None


def _caught_up(policy: Policy, late: list[datetime], moment: datetime, *, more: bool) -> list[datetime]:
    """Those of the late instants that still run: a tail of them, maybe empty."""
    if policy.never_late or policy.catch_up == "skip" or not late:
        return []
    oldest = moment - max(timedelta(seconds=policy.catch_up_window_s), ON_TIME)
    if policy.catch_up == "once":
        return [] if more or late[-1] < oldest else late[-1:]
    return [instant for instant in late if instant >= oldest]


def _planned(policy: Policy, instant: datetime, opened: Open, *, late: bool) -> Planned:
    skipped = "" if late else why_skipped(policy.overlap, opened)
    if not skipped:
        opened.waiting += 1
    return Planned(instant, due_at(policy, instant), late, skipped)


def _share(text: str) -> float:
    """A number from 0 to 1 (excluded) that depends on the text alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) / (1 << 48)
