"""A change is taken back whole: every object of one request as it was before, by whoever made the change.

It is a change like every other: with the rights of now, under the same manager, refused where something moved since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.audit.selectors import entries_of_change
from apps.core.errors import Conflict
from apps.definitions.reading.describing import describe
from apps.definitions.reading.documents import read_object
from apps.definitions.writing.actions.reverting_parts import revert_parts
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.documents import Plan
from apps.definitions.writing.dry_runs.dry_runs import PARTS
from apps.definitions.writing.kinds.registry import KINDS
from apps.definitions.writing.objects import Change, delete, existing, save
from apps.definitions.writing.transactions import change_set
from apps.fleet.selectors import generations

ORDER = tuple(KINDS)


@dataclass(frozen=True, slots=True)
class Step:
    """One object of the change: how it was before (None: not there), and the last that the change did to it."""

    kind: str
    account: str | None
    name: str
    before: dict[str, Any] | None
    last: Entry

    @property
    def label(self) -> str:
        """What people call it."""
        return f"{self.kind} {self.last.object_label}"


def revert_change(*, actor: Actor, change: str, made_by: Entry | None = None, reason: str = "") -> Plan:
    """Take back what the actor did in the request with this id, all or nothing.

    With `made_by`, an entry that the actor sees, the change of whoever made that one, also of servers or limits
    alone. Raises NotFound for another change, Conflict where an object moved since or was changed in part, and whatever
    saving and deleting by themselves raise.
    """
    entries = entries_of_change(actor, change, made_by)
    if made_by and all(entry.object_kind in PARTS for entry in entries):
        return revert_parts(actor, entries, reason or f"Reverts change {change}")
    steps = _steps(entries)
    with change_set(actor, reason=reason or f"Reverts change {change}") as changes:
        done = [_take_back(changes, step, at) for at, step in enumerate(_in_order(steps))]
    made = tuple(each for each in done if each is not None)
    return Plan(made, generations(changes.affected.fleets.values()), stored=True)


def _steps(entries: Iterable[Entry]) -> list[Step]:
    found: dict[tuple[str, str], Step] = {}
    for entry in entries:
        key = entry.object_kind, entry.object_label
        if entry.object_kind in PARTS:
            raise Conflict(f"{entry.object_label} was changed in part; undo that with the same kind of call.")
        if entry.object_kind not in KINDS:
            continue  # claims and rollouts follow by themselves
        owner, _, name = entry.object_label.rpartition("/")
        before = found[key].before if key in found else entry.before
        found[key] = Step(entry.object_kind, owner or None, name, before, entry)
    return list(found.values())


def _in_order(steps: list[Step]) -> list[Step]:
    """Routes that were made go first: they free their match; then saves in order, then deletes backwards."""

    def position(step: Step) -> tuple[int, int]:
        at = ORDER.index(step.kind)
        if step.before is not None:
            return 1, at
        return (0, at) if step.kind == "Route" else (2, -at)

    return sorted(steps, key=position)


def _take_back(changes: ChangeSet, step: Step, at: int) -> Change | None:
    """Save what was there before, or delete what was not; in the version that the change made, and in no other.

    An object may have been deleted and made anew in the meantime: its row tells the two apart.
    """
    owner = KINDS[step.kind].owner(changes, step.account)
    row = existing(changes, step.kind, owner, step.name)
    made = None if step.last.action == "delete" else (step.last.object_id, step.last.version)
    if (None if row is None else (row.pk, row.version)) != made:
        raise Conflict(f"{step.label} has changed since. Nothing was reverted; change it manually.")
    if row is not None and set(step.last.after or ()) != set(describe(row)):
        raise Conflict(f"{step.label} was changed in part; undo that with the same kind of call.")
    if step.before is not None:
        sent = {"kind": step.kind, "name": step.name, "account": step.account, "spec": step.before}
        changes.field_errors.pointer = f"/objects/{at}"
        version = row.version if row is not None else None
        return save(changes, read_object(sent, pointer=changes.field_errors.pointer), expected_version=version)[1]
    return delete(changes, step.kind, row) if row is not None else None
