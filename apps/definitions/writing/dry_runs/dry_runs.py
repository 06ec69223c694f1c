"""A dry run: a change is really made, in a transaction that is then undone, and looked at from all sides.

So a dry run refuses what the change refuses, with the same words, and shows what it would do: the fields that differ,
for each fleet that would be pushed to what its nodes would run instead, for each stack what its plan would hold, and
for each zone which records would be served otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.core.errors import InProgress
from apps.core.requests import request_id
from apps.definitions.writing.dry_runs.fleet_differences import FLEETS, FleetDifference
from apps.definitions.writing.dry_runs.stack_differences import STACKS, StackDifference, as_told
from apps.definitions.writing.dry_runs.watching import Touched
from apps.definitions.writing.dry_runs.zone_differences import ZONES, ZoneDifference
from apps.definitions.writing.kinds.registry import KINDS
from apps.definitions.writing.objects import Change, differences

T = TypeVar("T")
ATTEMPTS = 5
# Parts of objects that are changed by calls of their own.
PARTS = ("Server", "Backend")


@dataclass(frozen=True, slots=True)
class DryRun(Generic[T]):
    """What a change answered and would do; `generations` are those that would make it live on fleets."""

    result: T
    changes: tuple[Change, ...]
    generations: dict[str, int]
    fleets: tuple[FleetDifference, ...]
    stacks: tuple[StackDifference, ...]
    zones: tuple[ZoneDifference, ...]


def dry_run(actor: Actor, change: Callable[[], T]) -> DryRun[T]:
    """What `change` would do in this moment; whatever it raises is raised here as well.

    1. Make the change; read what it recorded, what it raised, and what these would be; undo it.
    2. Read what they should be now. Somebody changed them in between: begin again.
    3. Compare both sides, with no transaction open any more.
    """
    for _ in range(ATTEMPTS):
        if found := _attempt(actor, change):
            return found
    raise InProgress("Other changes to the same fleets, stacks or zones are in progress; try again in a moment.")


def _attempt(actor: Actor, change: Callable[[], T]) -> DryRun[T] | None:
    with transaction.atomic():
        fleets, stacks, zones = Touched(FLEETS), Touched(STACKS), Touched(ZONES)
        with transaction.atomic():
            last = Entry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
            result = change()
            changes = tuple(_recorded(actor, last))
            for touched in (fleets, stacks, zones):
                touched.look_after()
            transaction.set_rollback(True)
        same = [touched.look_before() for touched in (fleets, stacks, zones)]
    if not all(same):
        return None
    told = as_told(actor, stacks.told(actor))
    return DryRun(result, changes, fleets.raised, fleets.told(actor), told, zones.told(actor))


def _recorded(actor: Actor, last: int) -> list[Change]:
    """What the change wrote into the audit log, object by object."""
    rows = Entry.objects.filter(pk__gt=last, request_id=request_id(), actor=actor.name[:150], token=actor.token)
    rows = rows.filter(object_kind__in=(*KINDS, *PARTS)).select_related("account").order_by("pk")
    return [_change(entry) for entry in rows]


def _change(entry: Entry) -> Change:
    kind = KINDS.get(entry.object_kind)
    account = "" if kind and kind.platform else entry.account.name
    name = entry.object_label.removeprefix(f"{account}/")
    action = entry.action if entry.action in ("create", "delete") else "update"
    fields = () if action == "delete" else tuple(differences(entry.before or {}, entry.after or {}))
    return Change(entry.object_kind, account, name, action, fields)
