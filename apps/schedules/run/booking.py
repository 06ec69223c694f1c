"""First half: turn instants that have come into rows, once, however many schedulers look.

Each takes other schedules (SKIP LOCKED; SQLite has one writer at a time). Should two ever book the same instant all
the same, the key (schedule, instant) lets one row in. The time is the database's, so all schedulers read one clock.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Count, F, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.audit import services as audit
from apps.core.clock import database_now
from apps.definitions.freezing.timing import timing_of
from apps.definitions.models import Schedule
from apps.schedules.models import ScheduleRun
from apps.schedules.run.claims import open_in_turn
from apps.schedules.run.deciding import Decision, Gap, Open, Planned, Policy, decide

logger = logging.getLogger(__name__)
BATCH = 500


@dataclass(frozen=True, slots=True)
class Booked:
    """What one turn did: schedules looked at, runs that may run, and whether more schedules are due already."""

    schedules: int
    waiting: int
    more: bool


def book() -> Booked:
    """Book what is due of at most `BATCH` schedules: runs, gaps, the next instants; one transaction."""
    with transaction.atomic():
        moment = database_now()
        schedules = list(
            due_schedules(moment)
            .select_related("account")
            .order_by("next_at")
            .select_for_update(skip_locked=True, of=("self",))[:BATCH]
        )
        opened = open_runs(schedules)
        decisions = [_decide(schedule, moment, opened[schedule.pk]) for schedule in schedules]
        runs = [run for schedule, decision in decisions for run in _runs(schedule, decision, moment)]
        ScheduleRun.objects.bulk_create(runs, ignore_conflicts=True)
        _move_on(decisions)
        for schedule, decision in decisions:
            if decision.gap is not None:
                _note_gap(schedule, decision.gap)
    waiting = sum(run.state == ScheduleRun.State.WAITING for run in runs)
    more = len(schedules) == BATCH or any(_is_due(decision, moment) for _, decision in decisions)
    return Booked(len(schedules), waiting, more)


def due_schedules(moment: datetime) -> QuerySet[Schedule]:
    """Schedules of which an instant has come that nobody has booked."""
    active = Account.objects.filter(suspended_at=None)
    return Schedule.objects.filter(paused=False, next_at__lte=moment, account__in=active)


def open_runs(schedules: Sequence[Schedule]) -> defaultdict[int, Open]:
    """How many runs of each schedule wait and run; not asked where it makes no difference."""
    found: defaultdict[int, Open] = defaultdict(Open)
    asked = [schedule.pk for schedule in schedules if schedule.overlap != Schedule.Overlap.ALLOW]
    if asked:
        rows = open_in_turn().filter(schedule__in=asked).order_by()
        for schedule_id, state, count in rows.values_list("schedule", "state").annotate(count=Count("pk")):
            setattr(found[schedule_id], state, count)
    return found


def policy_of(schedule: Schedule) -> Policy:
    """What the stored schedule says about its instants; a capacity test is never begun late."""
    return Policy(
        schedule_id=schedule.pk,
        timing=timing_of(schedule),
        window_s=schedule.window_s,
        jitter_s=schedule.jitter_s,
        overlap=schedule.overlap,
        catch_up=schedule.catch_up,
        catch_up_window_s=schedule.catch_up_window_s,
        never_late=schedule.target_kind == Schedule.TargetKind.CAPACITY_TEST,
    )


def _decide(schedule: Schedule, moment: datetime, opened: Open) -> tuple[Schedule, Decision]:
    assert schedule.next_at is not None, "only schedules with an instant are due"  # noqa: S101
    return schedule, decide(policy_of(schedule), schedule.next_at, moment, opened)


def _is_due(decision: Decision, moment: datetime) -> bool:
    return decision.next_at is not None and decision.next_at <= moment


def _runs(schedule: Schedule, decision: Decision, moment: datetime) -> list[ScheduleRun]:
    runs = [_run(schedule, planned, moment) for planned in decision.runs]
    if decision.gap is not None:
        runs.append(_missed(schedule, decision.gap, moment))
    return runs


def _run(schedule: Schedule, planned: Planned, moment: datetime) -> ScheduleRun:
    run = ScheduleRun(
        schedule=schedule,
        account_id=schedule.account_id,
        scheduled_at=planned.scheduled_at,
        due_at=planned.due_at,
        next_try_at=planned.due_at,
        cause=ScheduleRun.Cause.CATCH_UP if planned.late else ScheduleRun.Cause.TIME,
    )
    if planned.skipped:
        run.state, run.message, run.finished_at = ScheduleRun.State.SKIPPED, planned.skipped, moment
    return run


def _missed(schedule: Schedule, gap: Gap, moment: datetime) -> ScheduleRun:
    """One row for the whole gap, at its first instant."""
    return ScheduleRun(
        schedule=schedule,
        account_id=schedule.account_id,
        scheduled_at=gap.first,
        due_at=gap.first,
        next_try_at=gap.first,
        state=ScheduleRun.State.MISSED,
        finished_at=moment,
        message=_words(gap),
        result={"missed": gap.count, "from": gap.first.isoformat(), "to": gap.last.isoformat()},
    )


def _words(gap: Gap) -> str:
    """Nobody noted why: whoever would have booked it was away, or left out the schedules of a suspended account."""
    why = "no scheduler was running, or the account was suspended"
    if gap.count == 1:
        return f"Missed at {gap.first:%Y-%m-%d %H:%M:%S} UTC: {why}. This time is not caught up."
    span = f"from {gap.first:%Y-%m-%d %H:%M:%S} to {gap.last:%Y-%m-%d %H:%M:%S} UTC"
    return f"Missed {gap.count} times {span}: {why}. These times are not caught up."


def _move_on(decisions: Sequence[tuple[Schedule, Decision]]) -> None:
    """Store the next instants: one statement for all, because this is the most frequent write of the product."""
    if connection.vendor == "postgresql":
        ids = [schedule.pk for schedule, _ in decisions]
        instants = [decision.next_at for _, decision in decisions]
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE definitions_schedule AS s SET next_at = n.at"
                " FROM unnest(%s::bigint[], %s::timestamptz[]) AS n(id, at) WHERE s.id = n.id",
                (ids, instants),
            )
        return
    for schedule, decision in decisions:
        Schedule.objects.filter(pk=schedule.pk).update(next_at=decision.next_at)


def _note_gap(schedule: Schedule, gap: Gap) -> None:
    """Count what was missed and say so in the audit log, from where webhooks of the account hear of it."""
    words = _words(gap)
    logger.warning("schedule %s of %s: %s", schedule.name, schedule.account.name, words)
    Schedule.objects.filter(pk=schedule.pk).update(missed=F("missed") + gap.count)
    audit.record(
        actor=Actor("spillway", schedule.account, Membership.Role.ADMIN),
        action="miss",
        kind="Schedule",
        object_id=schedule.pk,
        label=f"{schedule.account.name}/{schedule.name}",
        after={"missed": gap.count, "from": gap.first.isoformat(), "to": gap.last.isoformat()},
        version=schedule.version,
        reason=words,
    )
