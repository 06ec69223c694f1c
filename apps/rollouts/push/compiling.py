"""The step: what is desired becomes a numbered revision and a rollout, or a sentence why not."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction

from apps.audit import selectors as audit
from apps.compiler.bundle import Bundle
from apps.compiler.checks.builds import depends_on_builds
from apps.compiler.compile import Compilation, CompileError, compile_snapshot
from apps.compiler.differences.snapshots import diff_snapshots
from apps.compiler.model.capabilities import NodeBuild
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Finding
from apps.compiler.plan import Runtime, plan
from apps.compiler.recompile import compile_change
from apps.core.events import publish_after_commit
from apps.core.secrets.sealing import Unsealable
from apps.definitions.freezing.frozen_traffic import TRAFFIC_KINDS
from apps.definitions.freezing.node_builds import builds_by_fleet
from apps.definitions.freezing.snapshot import freeze
from apps.fleet.models import Fleet
from apps.fleet.services import request_push
from apps.rollouts.culprits import quarantine
from apps.rollouts.models import FleetSync, Revision, Rollout
from apps.rollouts.push import guards, lifecycle, revision_store
from apps.rollouts.push.claims import Claim, lock
from apps.rollouts.push.states import RolloutState
from apps.rollouts.settings import of_later_stages, settings_of
from apps.rollouts.waves.holding import rollouts_in_waves
from apps.rollouts.waves.planning import Waves, at_once, waves_of
from apps.rollouts.waves.proving import at_odds, awaited, last_ended, note_proven

FLEETS_REMEMBERED = 16
MANY_CHANGES = 20_000

_last: OrderedDict[int, tuple[Snapshot, Compilation[Bundle]]] = OrderedDict()
_lock = threading.Lock()


def must_compile(fleet_id: int) -> bool:
    """Whether something was desired that was not compiled yet, and neither a person nor a wave holds the fleet."""
    rows = Fleet.objects.filter(pk=fleet_id)
    row = rows.values_list("desired_generation", "sync__compiled_generation", "sync__held_at")
    desired, compiled, held = row.first() or (0, 0, None)
    if desired <= (compiled or 0) or held is not None:
        return False
    return not rollouts_in_waves().filter(fleet=fleet_id).exists()


def try_other_builds() -> None:
    """Compile again for fleets whose nodes report another HAProxy than the one that was compiled for."""
    then = dict(FleetSync.objects.exclude(builds=None).values_list("fleet_id", "builds"))
    now = {fleet: _as_stored(builds) for fleet, builds in builds_by_fleet(then).items()}
    moved = [fleet for fleet, builds in then.items() if builds != now[fleet]]
    with transaction.atomic():
        for fleet in moved:
            FleetSync.objects.filter(fleet=fleet).update(builds=now[fleet])  # once, whatever becomes of it
        request_push(Fleet.objects.filter(pk__in=moved))


def _as_stored(builds: tuple[NodeBuild, ...]) -> list[dict[str, Any]]:
    return [asdict(each) | {"version": list(each.version)} for each in builds]


def compile_fleet(claim: Claim) -> None:
    """Freeze, compile, guard, store; raises ClaimLost when somebody else works on the fleet now.

    1. The snapshot and the generation that it answers are read together; what nodes refuse is taken out of it. Where
       fleets of earlier stages stand is asked before and after.
    2. What cannot be compiled is written down and not tried again before something changes.
    3. Equal to what should run already: unchanged, nobody is disturbed. Equal to what a node refused: not tried again.
    4. A new revision; the guards may refuse it before any node.
    5. A rollout to every node takes the place of what is under way.
    """
    fleet = Fleet.objects.get(pk=claim.fleet_id)
    ended = last_ended(fleet)
    try:
        with transaction.atomic():
            snapshot, generation = freeze(claim.fleet_id)
            authors, read = _authors(claim.fleet_id)
    except Unsealable as error:
        _note_error(claim, None, f"A certificate's key cannot be read: {error}")
        return
    snapshot, withheld = quarantine.applied(fleet, snapshot)
    try:
        compilation = _compile(claim.fleet_id, snapshot)
    except CompileError as error:
        _note_error(claim, generation, str(error))
        return
    with transaction.atomic():
        sync = lock(claim)
        if sync.held_at_id is None:
            _decide(sync, _Compiled(snapshot, compilation, generation, withheld, ended, authors, read))


def _authors(fleet_id: int) -> tuple[str, dict[str, Any]]:
    """Who wrote what was frozen since definitions were sent out last, and which entries that were.

    The fleet's row is held since it was frozen: whoever changes it now commits later, and is named later. Revisions of
    refreshed servers (waves/refreshing.py) name nobody.
    """
    before = FleetSync.objects.values_list("read_entries", flat=True).get(fleet=fleet_id)
    return audit.authors(audit.not_read(before), DEFINED, HOLDS), audit.read_so_far()


def _compile(fleet_id: int, snapshot: Snapshot) -> Compilation[Bundle]:
    """The short way from what this process compiled last, when there is one."""
    with _lock:
        before = _last.get(fleet_id)
    found = compile_change(before[1], before[0], snapshot) if before else compile_snapshot(snapshot)
    with _lock:
        _last[fleet_id] = (snapshot, found)
        _last.move_to_end(fleet_id)
        while len(_last) > FLEETS_REMEMBERED:
            _last.popitem(last=False)
    return found


def _note_error(claim: Claim, generation: int | None, message: str) -> None:
    with transaction.atomic():
        sync = lock(claim)
        if generation is None:
            generation = Fleet.objects.values_list("desired_generation", flat=True).get(pk=claim.fleet_id)
        sync.compiled_generation, sync.compile_error = generation, message[:2000]
        sync.save(update_fields=("compiled_generation", "compile_error"))
        publish_after_commit("rollouts", fleet=claim.fleet_id)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What came of the definitions of a generation, and whom is `withheld`; `ended` is of `proving.last_ended`.

    `authors` and `read` are of `_authors`.
    """

    snapshot: Snapshot
    compilation: Compilation[Bundle]
    generation: int
    withheld: tuple[Finding, ...]
    ended: Mapping[int, int]
    authors: str
    read: Mapping[str, Any]

    @property
    def left_out(self) -> tuple[Finding, ...]:
        return (*self.compilation.left_out, *self.withheld)

    @property
    def bundle(self) -> Bundle:
        return self.compilation.output


def _decide(sync: FleetSync, made: _Compiled) -> None:
    wanted, digest = sync.wanted, made.bundle.digest
    nothing = wanted is None and guards.is_empty(made.snapshot)
    sync.compiled_generation, sync.compile_error = made.generation, ""
    sync.compiled_digest = "" if nothing else digest
    sync.left_out = [asdict(each) for each in made.left_out]
    sync.builds = _as_stored(made.snapshot.builds) if depends_on_builds(made.snapshot) else None
    unchanged = nothing or (wanted is not None and wanted.digest == digest)
    if not unchanged and digest != sync.refused_digest:
        _send_out(sync, made)
    fields = ("compiled_generation", "compile_error", "compiled_digest", "left_out", "builds", "wanted", "read_entries")
    sync.save(update_fields=fields)
    if unchanged and sync.wanted_id == sync.fallback_id:
        note_proven(sync)
    publish_after_commit("rollouts", fleet=sync.fleet_id)


def _send_out(sync: FleetSync, made: _Compiled) -> None:
    wanted = sync.wanted
    before = revision_store.snapshot_of(wanted.pk, wanted.digest) if wanted else None
    revision = _revision(sync, before, made)
    sync.read_entries = made.read
    waves = _waves(sync, made)
    refusals = [
        *guards.violations(before, made.snapshot, made.bundle),
        *guards.failed_assertions(made.snapshot, made.compilation.left_out, made.withheld),
        *(at_odds(made.ended) if waves.awaits else ()),
    ]
    if not refusals:
        lifecycle.close_open(sync.fleet_id, f"Revision {revision.number} replaced it.")
    rollout = lifecycle.begin(
        revision=revision,
        previous=wanted,
        kind=Rollout.Kind.CHANGE,
        generation=made.generation,
        actor=revision.actor,
        waves=Waves({}) if refusals else waves,
    )
    if refusals:
        lifecycle.move(rollout, RolloutState.FAILED, "Rejected before any node: " + " ".join(refusals))
    else:
        sync.wanted = revision


def _waves(sync: FleetSync, made: _Compiled) -> Waves:
    """When the turn of each node comes; the first revision of a fleet has nothing to do worse than."""
    fleet, wanted = sync.fleet, sync.wanted
    settings = settings_of(fleet)
    if wanted is None or not (settings.waves or made.ended or of_later_stages(fleet)):
        return at_once(fleet)
    running = revision_store.bundle_of(wanted.pk, wanted.digest)
    if not settings.runtime_changes and isinstance(plan(running, made.bundle), Runtime):
        return at_once(fleet)
    return waves_of(fleet, awaited(made.ended))


def _revision(sync: FleetSync, before: Snapshot | None, made: _Compiled) -> Revision:
    """The newest revision again when it has this digest (a second try), else the next number."""
    rows = Revision.objects.filter(fleet_id=sync.fleet_id).defer("bundle", "snapshot").order_by("-number")
    newest = rows.first()
    if newest is not None and newest.digest == made.bundle.digest:
        return newest
    return revision_store.store_revision(
        fleet_id=sync.fleet_id,
        snapshot=made.snapshot,
        bundle=made.bundle,
        summary=summarise(before, made.snapshot),
        actor=made.authors,
        quarantined=made.left_out,
    )


def summarise(before: Snapshot | None, after: Snapshot) -> str:
    """The first change as a sentence and the number of the others."""
    routes = sum(len(front.routes) for front in after.load_balancers)
    if before is None:
        return f"First revision: {routes} routes, {len(after.pools)} pools."
    if routes > MANY_CHANGES:
        return f"{routes} routes, {len(after.pools)} pools."  # comparing so many costs more than pushing them
    changes = diff_snapshots(before, after)
    if not changes:
        return "Other settings of the platform."
    more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
    return changes[0].sentence[: 400 - len(more)] + more


# Kinds of objects that a revision can come from, and what people do with a fleet without defining anything.
DEFINED = (*TRAFFIC_KINDS, "Fleet", "Node")
HOLDS = ("roll_back", "resume", "push_again", "push_to_all", "quarantine")
