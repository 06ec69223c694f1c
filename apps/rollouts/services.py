"""Brings every node of a fleet to what the definitions say, again and again, until nothing differs.

`reconcile_fleet` may be called at any time, by anybody, as often as they like; it is driven by what differs and not by
what happened:

1. Claim the fleet with a lease (push/claims.py). Somebody else has it: leave, they look once more before they go. So
   changes that are made while a push runs wait and go out together.
2. Something was desired that was not compiled, and nobody holds the fleet: compile it (push/compiling.py). Equal
   digest: unchanged. Else a new revision is wanted, and a rollout to every node replaces what was under way.
3. Every node that does not run the wanted revision is brought to it (push/pushing.py): by runtime operations where
   they lead there, else by the whole bundle; all nodes at once, or wave by wave where the fleet's settings say so
   (waves/), every call fenced by a generation. Later changes wait until the last wave, but for servers and network
   lists (waves/refreshing.py).
4. What came of each node is written down as it comes (push/lifecycle.py), and open pages are told.
5. Refused: whom it is about is found (culprits/search.py) and quarantined, and step 2 goes on without them. The wanted
   revision is the last good one again, in one commit with the reason; from there step 3 brings the nodes back that had
   taken the refused one, unless the next revision takes them along. Unreachable, or no time, memory or disk: the others
   go on, later sweeps try again with growing pauses. Late: it goes on by itself while the others take what is new.
   Superseded: take a number above the node's and look again.
6. Between two waves the nodes are watched (waves/soaking.py). What does worse goes back, and what changed of the pools
   that suffer is quarantined. Where fleets have stages, those of later ones begin when those of earlier ones have done
   so with all of their nodes (waves/proving.py), and leave out what those have quarantined.
7. Every write asks first whether the claim is still ours. A worker that dies is missed when its lease ends; the next
   sweep starts at 1 and finds the same differences.

A call that finds nothing to compile looks at the nodes themselves: that is how drift, nodes that came back and lost
wake-ups are found.
"""

from __future__ import annotations

import logging

from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit import services as audit
from apps.core.clock import database_now, now
from apps.core.errors import Conflict, FieldError, Invalid, NotFound, there
from apps.core.queue import enqueue_on_commit
from apps.fleet.models import Fleet
from apps.fleet.services import RECONCILE_TASK, request_push
from apps.rollouts.culprits import quarantine
from apps.rollouts.models import FleetSync, Quarantine, Revision, Rollout
from apps.rollouts.push import claims, compiling, lifecycle, reconciling
from apps.rollouts.push.claims import ClaimLost
from apps.rollouts.push.due import due_fleets
from apps.rollouts.settings import of_later_stages
from apps.rollouts.waves import refreshing
from apps.rollouts.waves.planning import at_once

logger = logging.getLogger(__name__)


def reconcile_fleet(*, fleet_id: int) -> bool:
    """Work on the fleet until nothing differs that can be changed now; False when somebody else works on it."""
    if not Fleet.objects.filter(pk=fleet_id).exists():
        return True  # deleted since somebody thought of it
    seen = None if _has_news(fleet_id) else reconciling.look_at_nodes(fleet_id)
    while claim := claims.take(fleet_id):
        try:
            reconciling.work(claim, seen)
        except ClaimLost as lost:
            logger.warning("%s; somebody else goes on", lost)
            return False
        finally:
            claims.release(claim)
        if not _has_news(fleet_id):
            return True
        seen = None  # a change came between the last look and the release
    return False


def reconcile_changed(*, fleet_id: int) -> bool:
    """As `reconcile_fleet` for the wake-up of one change, of which a thousand may wait before another fleet's.

    A change that went out with an earlier one asks no node; what else there is to do, sweeps find.
    """
    return reconcile_fleet(fleet_id=fleet_id) if _has_news(fleet_id) else True


def _has_news(fleet_id: int) -> bool:
    return compiling.must_compile(fleet_id) or refreshing.must_refresh(fleet_id)


def fleets_to_sweep() -> list[int]:
    """Fleets on which there is something to do and nobody does it, as the database knows."""
    quarantine.try_other_versions()
    compiling.try_other_builds()
    return due_fleets(database_now())


def roll_back(*, actor: Actor, revision_id: int, reason: str) -> Rollout:
    """Push an earlier revision again, under a new generation, and hold the fleet there until somebody resumes.

    Raises Forbidden, NotFound, Invalid without a reason.
    """
    actor.must_operate("what fleets run")
    _must_say_why(reason)
    revision = Revision.objects.filter(pk=revision_id).select_related("fleet").defer("bundle", "snapshot").first()
    if revision is None:
        raise NotFound("There is no such revision, or you may not see it.")
    with transaction.atomic():
        sync = _lock_sync(revision.fleet_id)
        before = _describe(sync)
        previous = sync.wanted
        generation = lifecycle.raise_in_transaction(sync)
        lifecycle.close_open(sync.fleet_id, f"{actor.name} rolled back to revision {revision.number}.")
        sync.wanted = sync.held_at = revision
        sync.held_by = actor.name[:150]
        sync.save(update_fields=("wanted", "held_at", "held_by"))
        rollout = lifecycle.begin(
            revision=revision,
            previous=previous,
            kind=Rollout.Kind.ROLLBACK,
            generation=generation,
            actor=actor.name,
            waves=at_once(revision.fleet),
            reason=reason,
        )
        _record(actor, "roll_back", revision.fleet, before, _describe(sync), reason)
        enqueue_on_commit(RECONCILE_TASK, sync.fleet_id)
    return rollout


def resume(*, actor: Actor, fleet_id: int, reason: str) -> None:
    """Let changes go out again to a fleet that was held; what waited goes out together. Raises Conflict if not held."""
    actor.must_operate("what fleets run")
    fleet = _fleet(fleet_id)
    with transaction.atomic():
        sync = _lock_sync(fleet_id)
        if sync.held_at_id is None:
            raise Conflict(f"Fleet {fleet.name} is not held.")
        before = _describe(sync)
        sync.held_at, sync.held_by = None, ""
        sync.save(update_fields=("held_at", "held_by"))
        _record(actor, "resume", fleet, before, _describe(sync), reason)
        request_push([fleet])


def push_to_all(*, actor: Actor, rollout_id: int, reason: str) -> Rollout:
    """Give the rest of the nodes what those of the first waves have, without watching any longer.

    Raises Forbidden, NotFound, Invalid without a reason, Conflict where no node waits for its wave.
    """
    actor.must_operate("what fleets run")
    _must_say_why(reason)
    rollout = Rollout.objects.filter(pk=rollout_id).select_related("fleet").first()
    if rollout is None:
        raise NotFound("There is no such rollout, or you may not see it.")
    with transaction.atomic():
        sync = _lock_sync(rollout.fleet_id)
        rollout.refresh_from_db(fields=("state", "wave", "message"))
        if not rollout.waits_for_wave:
            raise Conflict(f"No node waits for a later wave of rollout {rollout.pk}.")
        before: dict[str, object] = {"rollout": rollout.pk, "wave": rollout.wave}
        lifecycle.open_last_wave(rollout)
        _record(actor, "push_to_all", rollout.fleet, before, before | {"wave": rollout.wave}, reason)
        enqueue_on_commit(RECONCILE_TASK, sync.fleet_id)
    return rollout


def push_again(*, actor: Actor, fleet_id: int, reason: str = "") -> None:
    """Try again what nodes refused, and look at every node for what differs. Raises NotFound, Forbidden."""
    actor.must_operate("what fleets run")
    fleet = _fleet(fleet_id)
    with transaction.atomic():
        sync = _lock_sync(fleet_id)
        before = _describe(sync) | {"quarantined": quarantine.release(fleet_id)}
        sync.refused_digest, sync.asked_again_at = "", now()
        sync.save(update_fields=("refused_digest", "asked_again_at"))
        _record(actor, "push_again", fleet, before, _describe(sync) | {"quarantined": []}, reason)
        request_push([fleet, *of_later_stages(fleet)])


def try_again(*, actor: Actor, quarantine_id: int, reason: str = "") -> str:
    """Take one object out of quarantine, so that the next push tries it; its name. Raises NotFound, Forbidden."""
    actor.must_operate("what fleets run")
    with transaction.atomic():
        row = Quarantine.objects.select_related("fleet").filter(pk=quarantine_id).first()
        if row is None:
            raise NotFound("There is no such object in quarantine, or you may not see it.")
        sync = _lock_sync(row.fleet_id)
        before = _describe(sync) | {"quarantined": [row.label]}
        row.delete()
        sync.refused_digest, sync.asked_again_at = "", now()
        sync.save(update_fields=("refused_digest", "asked_again_at"))
        _record(actor, "push_again", row.fleet, before, _describe(sync) | {"quarantined": []}, reason)
        request_push([row.fleet, *of_later_stages(row.fleet)])
    return row.label


def _must_say_why(reason: str) -> None:
    if not reason.strip():
        raise Invalid([FieldError("/reason", "missing", "Give a reason; it is shown with the rollout.")])


def _fleet(fleet_id: int) -> Fleet:
    return there(Fleet.objects.filter(pk=fleet_id).first(), "There is no such fleet, or you may not see it.")


def _lock_sync(fleet_id: int) -> FleetSync:
    FleetSync.objects.get_or_create(fleet_id=fleet_id)
    return FleetSync.objects.select_for_update().get(fleet_id=fleet_id)


def _describe(sync: FleetSync) -> dict[str, object]:
    return {
        "wanted": sync.wanted.number if sync.wanted else None,
        "held_at": sync.held_at.number if sync.held_at else None,
        "refused_digest": sync.refused_digest,
    }


def _record(
    actor: Actor, action: str, fleet: Fleet, before: dict[str, object], after: dict[str, object], reason: str
) -> None:
    audit.record(
        actor=actor,
        action=action,
        kind="Fleet",
        object_id=fleet.pk,
        label=fleet.name,
        before=before,
        after=after,
        reason=reason,
    )
