"""What people and callers do: run one now, pause, resume, try a dead run again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit import services as audit
from apps.calendars import next_after
from apps.core.clock import database_now
from apps.core.errors import Conflict, NotFound, Stale, there
from apps.core.queue import enqueue_on_commit
from apps.definitions.freezing.timing import timing_of
from apps.definitions.models import Schedule
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.objects import save_partial
from apps.definitions.writing.transactions import change_set
from apps.schedules.models import ScheduleRun
from apps.schedules.run.booking import open_runs
from apps.schedules.run.deciding import why_skipped
from apps.schedules.run.ticking import WORK_TASK

NO_SCHEDULE = "There is no such schedule."


def run_now(*, actor: Actor, schedule_id: int, reason: str = "") -> ScheduleRun:
    """Book a run for this instant, also of a paused schedule.

    Raises NotFound, Forbidden, and Conflict while an open run of the schedule does not let another in.
    """
    with transaction.atomic():
        schedule = _taken(actor, schedule_id)
        skipped = why_skipped(schedule.overlap, open_runs([schedule])[schedule.pk])
        if skipped:
            raise Conflict("A run of the schedule is still active. Wait until it ends, or allow overlapping runs.")
        run = _booked(schedule, ScheduleRun.Cause.BY_HAND, actor.name)
        _record(actor, "run", schedule, reason)
    return run


def run_by_trigger(*, schedule_id: int, caller: str, body: str = "", **columns: Any) -> ScheduleRun:
    """Book a run for a call from outside, which has proved itself already; it may come out skipped (overlap).

    `body` is what the caller sent, `columns` further columns of the row. Raises NotFound for a schedule that is gone
    and Conflict for a paused one.
    """
    with transaction.atomic():
        schedule = there(_locked().filter(pk=schedule_id).first(), NO_SCHEDULE)
        if schedule.paused:
            raise Conflict("The schedule is paused: resume it, then call again.")
        skipped = why_skipped(schedule.overlap, open_runs([schedule])[schedule.pk])
        return _booked(schedule, ScheduleRun.Cause.TRIGGER, caller, skipped=skipped, body=body, **columns)


def pause(*, actor: Actor, schedule_id: int, expected_version: int | None = None, reason: str = "") -> Schedule:
    """Book no more instants; what is open goes on. Pausing a paused schedule changes nothing.

    Raises NotFound, Forbidden, Stale, Managed.
    """
    with change_set(actor, reason=reason) as changes:
        schedule = _taken(actor, schedule_id, expected_version)
        _change(changes, "pause", schedule, paused=True)
    return schedule


def resume(*, actor: Actor, schedule_id: int, expected_version: int | None = None, reason: str = "") -> Schedule:
    """Book instants again, from now on: what passed while it was paused is neither caught up nor counted as missed."""
    with change_set(actor, reason=reason) as changes:
        schedule = _taken(actor, schedule_id, expected_version)
        following = next_after(timing_of(schedule), database_now())
        _change(changes, "resume", schedule, paused=False, next_at=following)
    return schedule


def retry_run(*, actor: Actor, run_id: int, reason: str = "") -> ScheduleRun:
    """Try a dead run again, under the same key; it has one attempt, whatever came before.

    Raises NotFound, Forbidden, Conflict for a run that is not dead.
    """
    actor.may_write("schedules")
    with transaction.atomic():
        rows = actor.visible(ScheduleRun.objects.select_related("schedule__account")).select_for_update(of=("self",))
        run = there(rows.filter(pk=run_id).first(), "There is no such schedule run.")
        if run.state != ScheduleRun.State.DEAD:
            raise Conflict(f"Only a dead run is tried again; this one is {run.get_state_display().lower()}.")
        run.state, run.next_try_at, run.finished_at = ScheduleRun.State.WAITING, database_now(), None
        run.save(update_fields=("state", "next_try_at", "finished_at"))
        _record(actor, "retry", run.schedule, reason)
        enqueue_on_commit(WORK_TASK)
    return run


def _locked() -> Any:
    return Schedule.objects.select_related("account").select_for_update(of=("self",))


def _taken(actor: Actor, schedule_id: int, expected_version: int | None = None) -> Schedule:
    """The schedule, locked, for an actor who may change it; raises Stale for another version."""
    actor.may_write("schedules")
    schedule: Schedule | None = actor.visible(_locked()).filter(pk=schedule_id).first()
    if schedule is None:
        raise NotFound(NO_SCHEDULE)
    if expected_version is not None and schedule.version != expected_version:
        raise Stale("The schedule has changed since you read it; read it again before you change it.", schedule.version)
    return schedule


def _booked(schedule: Schedule, cause: str, caller: str, *, skipped: str = "", **columns: Any) -> ScheduleRun:
    """A new run of this instant; a microsecond later than one that has the same, as long as it takes."""
    moment = database_now()
    while ScheduleRun.objects.filter(schedule=schedule, scheduled_at=moment).exists():
        moment += timedelta(microseconds=1)
    if skipped:
        columns |= {"state": ScheduleRun.State.SKIPPED, "message": skipped, "finished_at": moment}
    else:
        enqueue_on_commit(WORK_TASK)
    return ScheduleRun.objects.create(
        schedule=schedule,
        account=schedule.account,
        scheduled_at=moment,
        due_at=moment,
        next_try_at=moment,
        cause=cause,
        actor=caller[:150],
        **columns,
    )


def _change(changes: ChangeSet, action: str, schedule: Schedule, *, paused: bool, **columns: Any) -> None:
    def patch() -> tuple[dict[str, Any], dict[str, Any]]:
        before = {"paused": schedule.paused}
        if schedule.paused != paused:
            for name, value in {"paused": paused, **columns}.items():
                setattr(schedule, name, value)
            schedule.save(update_fields=("paused", *columns, "updated_at"))
        return before, {"paused": paused}

    save_partial(changes, schedule, patch, action=action)


def _record(actor: Actor, action: str, schedule: Schedule, reason: str) -> None:
    audit.record(
        actor=actor,
        action=action,
        kind="Schedule",
        object_id=schedule.pk,
        label=f"{schedule.account.name}/{schedule.name}",
        account=schedule.account,
        version=schedule.version,
        reason=reason,
    )
