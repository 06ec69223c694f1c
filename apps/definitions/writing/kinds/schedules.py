"""Writes of schedules: stored when its author may book what it does; the next instant is computed here.

A change is tried at the end of the transaction, when every object of the same document is stored, and undone
(objects.py); it is checked again when it runs.
"""

from __future__ import annotations

from datetime import datetime

from apps.accounts.models import Account
from apps.calendars import next_after
from apps.core.clock import now
from apps.definitions.freezing.timing import timing_of
from apps.definitions.models import CapacityTest, Schedule
from apps.definitions.shapes.base.writing import Document, copy_plain, write
from apps.definitions.shapes.operations.schedule import ScheduleSpec, TargetSpec
from apps.definitions.writing.change_set import ChangeSet, ScheduledChange
from apps.definitions.writing.rules.passwords import names_secrets
from apps.fleet.models import Fleet


def store_schedule(changes: ChangeSet, owner: Account, row: Schedule, spec: ScheduleSpec) -> None:
    """The schedule; its next instant stays as it is unless what it says about time has changed, or it goes on again."""
    ((kind, target),) = write(TargetSpec, spec.target).items()
    if row.pk is None or (kind, target) != (row.target_kind, row.target):
        _check_target(changes, owner, row, kind, target)
        if row.pk is not None and (owed := owed_by(row)):
            detail = f"It will restore an earlier value at {owed:%Y-%m-%d %H:%M:%S} UTC; change the target after that."
            changes.add_error("/spec/target", "owed", detail)
    changes.field_errors.raise_any()
    paused = row.paused if spec.paused is None else spec.paused
    afresh = row.pk is None or timing_of(row) != spec.timing or (row.paused and not paused)
    copy_plain(spec, row)
    copy_plain(spec.retries, row)
    row.cron, row.every_s, row.at = spec.when.cron, spec.when.every_s, spec.when.at
    row.catch_up, row.catch_up_window_s = spec.catch_up.policy, spec.catch_up.window_s
    row.account, row.paused, row.target_kind, row.target = owner, paused, kind, target
    if afresh:
        row.next_at = next_after(timing_of(row), now())
    if row.pk is None:
        row.save()
        return
    # Schedulers move these two at any time; what was read a moment ago must not undo that.
    moving = {"missed"} if afresh else {"missed", "next_at"}
    row.save(update_fields=[field.name for field in row._meta.concrete_fields if field.name not in {"id", *moving}])


def owed_by(row: Schedule) -> datetime | None:
    """When the schedule takes back a change that it made, None when it owes nothing."""
    owed = row.runs.filter(cause="restore", state__in=("waiting", "running"))
    found: datetime | None = owed.order_by("due_at").values_list("due_at", flat=True).first()
    return found


def _check_target(changes: ChangeSet, owner: Account, row: Schedule, kind: str, document: Document) -> None:
    """Whether the author may have this done, and the account may do it."""
    pointer = f"/spec/target/{kind}"
    if kind == Schedule.TargetKind.CAPACITY_TEST:
        changes.actor.may_write("capacity-tests")
        changes.owned(CapacityTest, owner, document["name"], f"{pointer}/name")
    elif kind == Schedule.TargetKind.ROLLOUT:
        changes.actor.may_write("fleets")
        changes.actor.must_operate("what fleets run")
        if not owner.is_operator:
            changes.add_error(
                pointer,
                "operators",
                "Only schedules of the operator account can push fleets; create it in the operator account.",
            )
        changes.named(Fleet, document["fleet"], f"{pointer}/fleet")
    elif kind == Schedule.TargetKind.CHANGE:
        pointer, wanted = changes.field_errors.pointer, document["object"]
        if names_secrets(wanted):
            detail = "Leave passwords and keys out of a schedule: it keeps the change as it was sent."
            changes.add_error("/spec/target/change/object", "secret", detail)
        change = ScheduledChange(pointer, owner, row.name, wanted, row.manager)
        changes.deferred.scheduled_changes.append(change)
