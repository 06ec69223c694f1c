"""The beat of the sweep process: book what is due, wake workers, sleep until the next instant."""

from __future__ import annotations

from datetime import datetime

from apps.core.clock import database_now
from apps.core.queue import enqueue
from apps.definitions.models import Schedule
from apps.schedules.models import ScheduleRun
from apps.schedules.run import claims, working
from apps.schedules.run.booking import book

WORK_TASK = "apps.schedules.tasks.work"
LONGEST_SLEEP_S = 1.0
SHORTEST_SLEEP_S = 0.01
MOST_WAKES = 8
# A wake-up that nobody took in this time is old news: by then there are newer ones.
WAKE_EXPIRES_S = 5.0
ALONE_S = 1.0


def schedules_tick() -> float:
    """Do what is due now; the seconds until something is due again, at most one."""
    working.recover()
    woken, more = False, True
    while more:
        booked = book()
        more = booked.more
        if booked.waiting:
            woken = True
            _wake_workers(booked.waiting)
    if not woken:
        _wake_for_others()
    return _until_next(database_now())


def _wake_for_others() -> None:
    """Wake workers for runs that were booked earlier: jitter, another try, a worker that died."""
    waiting = claims.due_runs(database_now())[: MOST_WAKES * claims.AT_ONCE].count()
    if waiting:
        _wake_workers(waiting)


def _wake_workers(waiting: int) -> None:
    """A wake-up for each batch; without a broker the runs are worked off here."""
    for _ in range(min(-(-waiting // claims.AT_ONCE), MOST_WAKES)):
        if not enqueue(WORK_TASK, expires_s=WAKE_EXPIRES_S):
            working.work_off(seconds=ALONE_S)
            return


def _until_next(moment: datetime) -> float:
    """Seconds to the next instant that is to be booked, or run that is to be tried; at most one second."""
    coming = Schedule.objects.filter(paused=False, next_at__gt=moment).order_by("next_at")
    waiting = ScheduleRun.objects.filter(state=ScheduleRun.State.WAITING, next_try_at__gt=moment).order_by(
        "next_try_at"
    )
    firsts = (coming.values_list("next_at", flat=True).first(), waiting.values_list("next_try_at", flat=True).first())
    pauses = [(first - moment).total_seconds() for first in firsts if first is not None]
    return min(max(min(pauses, default=LONGEST_SLEEP_S), SHORTEST_SLEEP_S), LONGEST_SLEEP_S)
