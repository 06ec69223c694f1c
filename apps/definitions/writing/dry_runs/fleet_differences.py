"""A dry run of fleets: both sides are compiled, and what nodes would run instead is told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from apps.accounts.actors import Actor
from apps.compiler.bundle import Bundle
from apps.compiler.compile import Compilation, CompileError, compile_snapshot
from apps.compiler.differences.files import diff_bundles
from apps.compiler.differences.snapshots import diff_snapshots
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Finding
from apps.compiler.recompile import compile_change
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.writing.dry_runs.watching import Watch
from apps.fleet.models import Fleet

MAX_SENTENCES = 500


@dataclass(frozen=True, slots=True)
class FleetDifference:
    """What the nodes of one fleet would run instead: in sentences, as text, and what is worth knowing about it."""

    fleet: str
    changes: tuple[str, ...]
    rendered: str
    warnings: tuple[str, ...]


def cut(sentences: list[str]) -> tuple[str, ...]:
    """As many as people read, with how many more there are."""
    if len(sentences) <= MAX_SENTENCES:
        return tuple(sentences)
    return (*sentences[:MAX_SENTENCES], f"… and {len(sentences) - MAX_SENTENCES} more.")


def _numbers() -> dict[str, int]:
    return dict(Fleet.objects.order_by("name").values_list("name", "desired_generation"))


def _frozen(names: Collection[str]) -> dict[str, Snapshot]:
    rows = Fleet.objects.select_related("region").filter(name__in=list(names)).order_by("name")
    return {fleet.name: snapshot_of(fleet) for fleet in rows}


def _difference(actor: Actor, fleet: str, before: Snapshot | None, after: Snapshot | None) -> FleetDifference | None:
    if after is None:
        return None  # a fleet goes when it has no nodes
    before = before or Snapshot(fleet, after.region)
    found = diff_snapshots(before, after)
    sentences = cut([change.sentence for change in found if _may_read(actor, change.label, change.kind)])
    try:
        running = compile_snapshot(before)
        wanted = compile_change(running, before, after)
    except CompileError as error:
        return FleetDifference(fleet, sentences, "", (f"It does not compile: {error}",))
    rendered = diff_bundles(running.output, wanted.output, 2 if actor.is_operator else 0)
    return FleetDifference(fleet, sentences, rendered, _warnings(actor, running, wanted))


def _may_read(actor: Actor, label: str, kind: str) -> bool:
    return actor.is_operator or (kind in ("route", "pool") and label.startswith(f"{actor.account.name}/"))


def _warnings(actor: Actor, running: Compilation[Bundle], wanted: Compilation[Bundle]) -> tuple[str, ...]:
    """What would be left out or deserves attention, and does not already."""

    def all_of(compilation: Compilation[Bundle]) -> list[Finding]:
        return [*compilation.left_out, *compilation.warnings]

    known = set(all_of(running))
    found = (finding for finding in all_of(wanted) if finding not in known)
    own = f"{actor.account.name}/"
    return tuple(
        f"{finding.label}: {finding.message}" for finding in found if actor.is_operator or finding.label.startswith(own)
    )


FLEETS = Watch(_numbers, _frozen, _difference)
