"""While a change is in waves, servers and lists as they are now reach all nodes: nobody waits minutes for a drain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction

from apps.compiler.bundle import Bundle
from apps.compiler.compile import CompileError, compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.plan import Nothing, Runtime, plan
from apps.compiler.questions.refreshing import refreshed
from apps.core.secrets.sealing import Unsealable
from apps.definitions.freezing.snapshot import freeze
from apps.fleet.models import Fleet
from apps.rollouts.culprits import quarantine
from apps.rollouts.models import FleetSync, Revision, Rollout, Step
from apps.rollouts.push import lifecycle, revision_store
from apps.rollouts.push.claims import Claim, lock
from apps.rollouts.push.states import UNDER_WAY, RolloutState, StepState
from apps.rollouts.waves.holding import rollouts_in_waves

SUMMARY = "Servers and network lists as they are now, while a change is in waves."


def must_refresh(fleet_id: int) -> bool:
    """Whether something was desired since the nodes of a fleet in waves got the servers of now."""
    rows = FleetSync.objects.filter(fleet=fleet_id, held_at=None)
    row = rows.values_list("fleet__desired_generation", "compiled_generation", "refreshed_generation").first()
    if row is None or row[0] <= max(row[1:]):
        return False
    return rollouts_in_waves().filter(fleet=fleet_id, state__in=UNDER_WAY).exists()


def refresh(claim: Claim) -> bool:
    """Give what is on the way, and what the other nodes run, the servers of now; False where they have them.

    What the nodes would need a reload for waits until the last wave, as the rest of the definitions does.
    """
    rollout = lifecycle.open_rollout(claim.fleet_id)
    if rollout is None:
        return False
    try:
        frozen, generation = freeze(claim.fleet_id)
        now, _ = quarantine.applied(rollout.fleet, frozen)
        sides = [_Side.of(each, now) for each in (rollout.previous, rollout.revision) if each is not None]
    except (CompileError, Unsealable):
        sides, generation = [], Fleet.objects.values_list("desired_generation", flat=True).get(pk=claim.fleet_id)
    with transaction.atomic():
        sync = lock(claim)
        rollout.refresh_from_db(fields=("state", "wave", "message", "soaking_since"))
        if rollout.state not in UNDER_WAY or sync.wanted_id != rollout.revision_id:
            return False
        moved = len(sides) == 2 and any(side.differs for side in sides)
        if moved:
            _go_on(sync, rollout, sides)
        FleetSync.objects.filter(pk=sync.pk).update(refreshed_generation=generation)
    return moved


@dataclass(frozen=True, slots=True)
class _Side:
    """A revision, and what it is with the servers of now; the same where that would need a reload."""

    revision: Revision
    snapshot: Snapshot
    bundle: Bundle

    @classmethod
    def of(cls, revision: Revision, now: Snapshot) -> _Side:
        old = revision_store.snapshot_of(revision.pk, revision.digest)
        running = revision_store.bundle_of(revision.pk, revision.digest)
        for regions in (True, False):
            snapshot = refreshed(old, now, regions=regions)
            if snapshot == old:
                break
            bundle = compile_snapshot(snapshot).output
            if isinstance(plan(running, bundle), Runtime | Nothing):
                return cls(revision, snapshot, bundle)
        return cls(revision, old, running)

    @property
    def differs(self) -> bool:
        return self.bundle.digest != self.revision.digest

    def stored(self) -> Revision:
        """The revision that is to run."""
        if not self.differs:
            return self.revision
        return revision_store.store_revision(
            fleet_id=self.revision.fleet_id,
            snapshot=self.snapshot,
            bundle=self.bundle,
            summary=SUMMARY,
            actor="spillway",
            quarantined=(),
        )


def _go_on(sync: FleetSync, rollout: Rollout, sides: Iterable[_Side]) -> None:
    """The same rollout goes on with both; nodes that had the change are pushed to again, and soak as before."""
    old = rollout.previous_id
    previous, wanted = [side.stored() for side in sides]
    rollout.previous, rollout.revision, sync.wanted = previous, wanted, wanted
    if sync.last_good_id == old:
        sync.last_good = previous
    if sync.fallback_id == old:
        sync.fallback = previous
    sync.save(update_fields=("wanted", "last_good", "fallback"))
    rollout.generation = lifecycle.raise_in_transaction(sync, rollout.generation)
    rollout.save(update_fields=("revision", "previous", "generation"))
    Step.objects.filter(rollout=rollout, state=StepState.DONE).update(state=StepState.WAITING)
    if rollout.state == RolloutState.SOAKING:
        lifecycle.move(rollout, RolloutState.PUSHING)
