"""Target change: save an object as its account may save it now, and take that back later if it says so.

Act and finish are one transaction (contract.py), so the change is made once; the run that takes it back is booked in
the same transaction. It refuses when the object has moved meanwhile: somebody's later decision counts more.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError

from apps.core.errors import Conflict, Forbidden, InProgress, Invalid, NotFound, Stale
from apps.definitions.reading.documents import read_object
from apps.definitions.services import KINDS, Change, delete_object, managing, save_object
from apps.definitions.writing.change_set import ScheduledChange, actor_of_schedule
from apps.definitions.writing.transactions import change_for_schedule
from apps.schedules.models import ScheduleRun
from apps.schedules.targets.contract import Outcome, TargetFailed


def act(run: ScheduleRun, now: datetime) -> Outcome:
    """Make the change, or take back an earlier one.

    Raises TargetFailed, for good when it may not be made; whoever only met somebody else's write tries again.
    """
    if run.schedule.account.suspended:
        raise TargetFailed("The account is suspended, so nothing was changed.", final=True)
    try:
        return _take_back(run) if run.cause == ScheduleRun.Cause.RESTORE else _make(run, now)
    except (Conflict, Forbidden, Invalid, NotFound) as error:
        met = isinstance(error, Stale | InProgress) or isinstance(error.__cause__, IntegrityError)
        raise TargetFailed(error.detail, final=not met) from error


def _make(run: ScheduleRun, now: datetime) -> Outcome:
    schedule = run.schedule
    wanted = read_object(schedule.target["object"])
    booked = ScheduledChange("", schedule.account, schedule.name, schedule.target["object"], schedule.manager)
    reason = f"Schedule {schedule.name}, schedule run {run.pk}"
    row, change, before, kept = change_for_schedule(booked, wanted, reason=reason)
    stays = "".join(f" {line[0].upper()}{line[1:].partition(';')[0]}." for line in kept)
    label = f"{change.kind} {change.name}"
    if change.action == "unchanged":
        return Outcome(f"{label} already had this value.{stays}", _link(row, change))
    message = f"{label} was {'created' if change.action == 'create' else 'changed'}.{stays}"
    if after_s := schedule.target["restore_after_s"]:
        at = now + timedelta(seconds=after_s)
        _book_restoring(run, at, _link(row, change) | {"before": before})
        message = f"{message} It will be restored at {at:%Y-%m-%d %H:%M:%S} UTC."
    return Outcome(message, _link(row, change))


def _link(row: Any, change: Change) -> dict[str, Any]:
    """What was changed, and the version that it got."""
    return {
        "kind": change.kind,
        "account": change.account,
        "name": change.name,
        "id": row.pk,
        "version": row.version,
    }


def _book_restoring(run: ScheduleRun, at: datetime, restore: dict[str, Any]) -> None:
    while ScheduleRun.objects.filter(schedule=run.schedule_id, scheduled_at=at).exists():
        at += timedelta(microseconds=1)
    ScheduleRun.objects.create(
        schedule_id=run.schedule_id,
        account_id=run.account_id,
        scheduled_at=at,
        due_at=at,
        next_try_at=at,
        cause=ScheduleRun.Cause.RESTORE,
        result={"restores": run.pk, **restore},
    )


def _take_back(run: ScheduleRun) -> Outcome:
    """Save what was there before, or delete what was not; in the version that the change made, and in no other."""
    schedule, held = run.schedule, run.result
    label = f"{held['kind']} {held['name']}"
    _must_not_have_moved(held, label)
    which = {"kind": held["kind"], "name": held["name"], "account": held["account"] or None}
    actor = actor_of_schedule(schedule.account, schedule.name)
    how: dict[str, Any] = {
        "expected_version": held["version"],
        "reason": f"Schedule {schedule.name} takes back schedule run {held['restores']}",
    }
    link = {name: held[name] for name in ("restores", "kind", "account", "name")}
    with managing(break_glass=True):  # the same pipeline's, or nobody's: asked when the change was made
        if held["before"] is None:
            delete_object(actor=actor, **which, **how)
            return Outcome(f"{label} was deleted again.", link)
        row = save_object(actor=actor, **which, spec=held["before"], **how)
    return Outcome(f"{label} has its previous value again.", link | {"id": row.pk, "version": row.version})


def _must_not_have_moved(held: dict[str, Any], label: str) -> None:
    row = KINDS[held["kind"]].model._default_manager.filter(pk=held["id"]).first()
    if row is None:
        raise Conflict(f"{label} was deleted after the change, so there is nothing to restore.")
    if row.version != held["version"]:
        detail = f"{label} has been changed since (version {row.version}, not {held['version']}). It is left unchanged."
        raise Conflict(f"{detail} Change it manually to restore the old value.")
