"""DEFINE, a dry run: a change is really made, in a transaction that is then undone, and looked at from all sides.

So a dry run refuses what the change refuses, with the same words, and shows what it would do: the fields that differ
and, for each fleet that would be pushed to, what its nodes would run instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.compiler.compile import Compilation, CompileError, compile_snapshot
from apps.compiler.diff import diff_bundles, diff_snapshots
from apps.compiler.model import Finding, Snapshot
from apps.compiler.recompile import compile_change
from apps.core.errors import Conflict
from apps.core.requests import request_id
from apps.definitions.services.objects import KINDS, Change, differences
from apps.definitions.snapshot import snapshot_of
from apps.fleet.models import Fleet

T = TypeVar("T")
ATTEMPTS = 5
MAX_SENTENCES = 500
# Parts of objects that are changed by calls of their own.
PARTS = ("Server", "Backend")


@dataclass(frozen=True, slots=True)
class FleetDifference:
    """What the nodes of one fleet would run instead: in sentences, as text, and what is worth knowing about it."""

    fleet: str
    changes: tuple[str, ...]
    rendered: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DryRun(Generic[T]):
    """What a change answered and would do; `generations` are those that would make it live."""

    result: T
    changes: tuple[Change, ...]
    generations: dict[str, int]
    fleets: tuple[FleetDifference, ...]


@dataclass(frozen=True, slots=True)
class _Sides(Generic[T]):
    result: T
    changes: tuple[Change, ...]
    generations: dict[str, int]
    before: dict[str, Snapshot]
    after: dict[str, Snapshot]


def dry_run(actor: Actor, change: Callable[[], T]) -> DryRun[T]:
    """What `change` would do in this moment; whatever it raises is raised here as well.

    1. Make the change; read what it recorded, which fleets it raised and what these would run; undo it.
    2. Read what they should run now. Somebody changed them in between: begin again.
    3. Compile both sides, with no transaction open any more, and compare.
    """
    for _ in range(ATTEMPTS):
        if sides := _both_sides(actor, change):
            fleets = tuple(_difference(actor, name, sides.before[name], sides.after[name]) for name in sides.after)
            return DryRun(sides.result, sides.changes, sides.generations, fleets)
    raise Conflict("Others are changing the same fleets right now: try again in a moment.")


def _both_sides(actor: Actor, change: Callable[[], T]) -> _Sides[T] | None:
    with transaction.atomic():
        numbers = _numbers()
        with transaction.atomic():
            last = Entry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
            result = change()
            changes = tuple(_recorded(actor, last))
            raised = {name: number for name, number in _numbers().items() if number != numbers.get(name)}
            after = _snapshots(raised)
            transaction.set_rollback(True)
        before = _snapshots(raised)
        now = _numbers()
    same = all(now.get(name) == numbers.get(name) for name in raised)
    empty = {name: Snapshot(name, each.region) for name, each in after.items() if name not in before}
    return _Sides(result, changes, raised, before | empty, after) if same else None


def _numbers() -> dict[str, int]:
    return dict(Fleet.objects.order_by("name").values_list("name", "desired_generation"))


def _snapshots(names: dict[str, int]) -> dict[str, Snapshot]:
    rows = Fleet.objects.select_related("region").filter(name__in=list(names)).order_by("name")
    return {fleet.name: snapshot_of(fleet) for fleet in rows}


def _recorded(actor: Actor, last: int) -> list[Change]:
    """What the change wrote into the audit record, object by object."""
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


def _difference(actor: Actor, fleet: str, before: Snapshot, after: Snapshot) -> FleetDifference:
    sentences = [
        change.sentence for change in diff_snapshots(before, after) if _may_read(actor, change.label, change.kind)
    ]
    if len(sentences) > MAX_SENTENCES:
        sentences = [*sentences[:MAX_SENTENCES], f"… and {len(sentences) - MAX_SENTENCES} more."]
    try:
        running = compile_snapshot(before)
        wanted = compile_change(running, before, after)
    except CompileError as error:
        return FleetDifference(fleet, tuple(sentences), "", (f"It cannot be compiled: {error}",))
    rendered = diff_bundles(running.bundle, wanted.bundle, 2 if actor.is_operator else 0)
    return FleetDifference(fleet, tuple(sentences), rendered, _warnings(actor, running, wanted))


def _may_read(actor: Actor, label: str, kind: str) -> bool:
    return actor.is_operator or (kind in ("route", "pool") and label.startswith(f"{actor.account.name}/"))


def _warnings(actor: Actor, running: Compilation, wanted: Compilation) -> tuple[str, ...]:
    """What would be left out or deserves attention, and does not already."""

    def all_of(compilation: Compilation) -> list[Finding]:
        return [*compilation.quarantined, *compilation.warnings]

    known = set(all_of(running))
    found = (finding for finding in all_of(wanted) if finding not in known)
    own = f"{actor.account.name}/"
    return tuple(
        f"{finding.label}: {finding.message}" for finding in found if actor.is_operator or finding.label.startswith(own)
    )
