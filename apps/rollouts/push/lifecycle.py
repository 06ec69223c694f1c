"""The bookkeeping: a rollout begins, its steps move, it ends or turns back; each a transaction of its own."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import F, Max, Q, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit import services as audit
from apps.compiler.questions.withholding import parts_of
from apps.core.clock import now
from apps.core.events import publish_after_commit
from apps.definitions.previewing.node_words import in_words
from apps.drivers.proxy.contract import Refused, Superseded, Unavailable
from apps.fleet.models import Fleet, Node
from apps.fleet.services import request_push
from apps.observe import services as observe
from apps.rollouts.culprits import quarantine
from apps.rollouts.culprits.blaming import owners_named
from apps.rollouts.culprits.quarantine import Culprits
from apps.rollouts.models import FleetSync, Revision, Rollout, Step
from apps.rollouts.push import revision_store
from apps.rollouts.push.claims import Claim, lock
from apps.rollouts.push.due import runs
from apps.rollouts.push.pushing import Outcome
from apps.rollouts.push.states import TERMINAL, UNDER_WAY, RolloutState, StepState, check_move
from apps.rollouts.waves.planning import Waves
from apps.rollouts.waves.proving import note_proven

WORDS_OF_A_LABEL = 400


def begin(
    *,
    revision: Revision,
    previous: Revision | None,
    kind: str,
    generation: int,
    actor: str,
    waves: Waves,
    reason: str = "",
) -> Rollout:
    """A rollout that is being pushed, with a waiting step per node; inside the caller's transaction."""
    rollout = Rollout.objects.create(
        fleet_id=revision.fleet_id,
        revision=revision,
        previous=previous,
        kind=kind,
        generation=generation,
        state=RolloutState.PUSHING,
        actor=actor[:150],
        reason=reason[:400],
        wave=0 if waves.awaits else 1,
        waves=waves.last,
        awaits=waves.awaits,
    )
    Step.objects.bulk_create(Step(rollout=rollout, node_id=pk, wave=wave) for pk, wave in waves.of_nodes.items())
    publish_after_commit("rollouts", id=rollout.pk)
    return rollout


def move(rollout: Rollout, state: RolloutState, message: str = "") -> None:
    """Move along the table of states.py; inside the caller's transaction. Raises IllegalMove."""
    check_move(RolloutState(rollout.state), state)
    rollout.state = state
    rollout.message = message[:2000] or rollout.message
    if state in TERMINAL:
        rollout.finished_at = now()
        _record_end(rollout)
    rollout.save(update_fields=("state", "message", "finished_at", "generation", "object_label", "line"))
    publish_after_commit("rollouts", id=rollout.pk)


def open_last_wave(rollout: Rollout) -> None:
    """The turn of all nodes has come; inside the caller's transaction."""
    rollout.wave, rollout.soaking_since, rollout.message = rollout.waves, None, ""
    rollout.save(update_fields=("wave", "soaking_since", "message"))
    if rollout.state == RolloutState.SOAKING:
        move(rollout, RolloutState.PUSHING)


def say(rollout: Rollout, message: str) -> None:
    """What the rollout waits for; inside the caller's transaction."""
    if rollout.message != message:
        rollout.message = message
        rollout.save(update_fields=("message",))
        publish_after_commit("rollouts", id=rollout.pk)


def _record_end(rollout: Rollout) -> None:
    """The end of a rollout is in the audit log too: that is what webhooks tell, in order and without loss."""
    began = {
        "fleet": rollout.fleet.name,
        "revision": rollout.revision.number,
        "kind": rollout.kind,
        "by": rollout.actor,
    }
    audit.record(
        actor=Actor("spillway", rollout.fleet.account, Membership.Role.ADMIN),
        action="finish",
        kind="Rollout",
        object_id=rollout.pk,
        label=f"rollout {rollout.pk} of fleet {rollout.fleet.name}",
        after=began | {"state": str(rollout.state), "message": rollout.message, "object": rollout.object_label},
        reason=rollout.reason,
    )


def close_open(fleet_id: int, message: str) -> None:
    """End what is under way because something newer takes its place; inside the caller's transaction."""
    for rollout in Rollout.objects.filter(fleet_id=fleet_id, finished_at=None):
        turning = rollout.state == RolloutState.ROLLING_BACK
        why = f"{rollout.message} {message}" if turning else message
        move(rollout, RolloutState.FAILED if turning else RolloutState.SUPERSEDED, why)


def open_rollout(fleet_id: int) -> Rollout | None:
    """What is under way on the fleet; there is never more than one."""
    rows = Rollout.objects.filter(fleet_id=fleet_id, finished_at=None).select_related("revision", "previous")
    hidden = [f"{name}__{field}" for name in ("revision", "previous") for field in ("bundle", "snapshot")]
    return rows.defer(*hidden).order_by("-id").first()


def bump_generation(claim: Claim, at_least: int, rollout: Rollout | None = None) -> int:
    """A generation above `at_least` and above all that were used, for a push that is no change of definitions.

    What was compiled stays compiled, and what was proven proven; changes that wait get a number above it, because
    nodes refuse an equal one.
    """
    with transaction.atomic():
        sync = lock(claim)
        generation = raise_in_transaction(sync, at_least)
        if rollout is not None:
            rollout.generation = generation
            Rollout.objects.filter(pk=rollout.pk).update(generation=generation)
    return generation


def raise_in_transaction(sync: FleetSync, at_least: int = 0) -> int:
    """As `bump_generation`, inside the caller's transaction that holds the row of `sync`."""
    fleet = Fleet.objects.select_for_update(of=("self",)).get(pk=sync.fleet_id)
    generation = max(fleet.desired_generation, at_least) + 1
    waiting = fleet.desired_generation > sync.compiled_generation
    Fleet.objects.filter(pk=fleet.pk).update(desired_generation=generation + 1 if waiting else generation)
    if not waiting:
        if sync.proven_generation == sync.compiled_generation:
            sync.proven_generation = generation
        sync.compiled_generation = generation
        sync.save(update_fields=("compiled_generation", "proven_generation"))
    return generation


def let_go(claim: Claim, rollout: Rollout) -> None:
    """Nodes that belong to another fleet by now have no turn any more: they run what that one says."""
    moved = Step.objects.filter(rollout=rollout).exclude(node__fleet=rollout.fleet_id)
    if moved.exists():
        with transaction.atomic():
            lock(claim)
            moved.delete()


def take_along(claim: Claim, rollout: Rollout) -> None:
    """Nodes that joined, or run something else again, have their turn with the last wave of what is under way.

    A rollout may wait for a node that is away for days, and those do not wait with it.
    """
    if rollout.state not in UNDER_WAY:
        return
    answering = Node.objects.filter(fleet=rollout.fleet_id, report__last_contact_error="")
    differ = answering.exclude(runs(rollout.revision.digest))
    steps = Step.objects.filter(rollout=rollout)
    joined = [Step(rollout=rollout, node=node, wave=rollout.waves) for node in differ.exclude(steps__in=steps)]
    moved = steps.filter(state=StepState.DONE, node__in=differ) if rollout.wave == rollout.waves else steps.none()
    if not joined and not moved.exists():
        return
    with transaction.atomic():
        sync = lock(claim)
        Step.objects.bulk_create(joined)
        rollout.generation = raise_in_transaction(sync, rollout.generation)
        rollout.save(update_fields=("generation",))
        moved.update(state=StepState.WAITING)


def note_start(rollout: Rollout, node_ids: Iterable[int]) -> None:
    """These nodes are being worked on from now."""
    Step.objects.filter(rollout=rollout, node__in=node_ids).update(state=StepState.PUSHING, started_at=now())


def note_taken(rollout: Rollout, node_id: int) -> None:
    """A node that refused runs a part of the revision now: on the way back it is one of those to be brought back."""
    Step.objects.filter(rollout=rollout, node=node_id).update(state=StepState.PUSHING)


def note_outcomes(claim: Claim, rollout: Rollout, outcomes: list[Outcome]) -> None:
    """Write down what came of each node; raises ClaimLost when somebody else works on the fleet now."""
    with transaction.atomic():
        lock(claim)
        turning = rollout.state == RolloutState.ROLLING_BACK
        for outcome in outcomes:
            _note_outcome(rollout, outcome, turning=turning)
        publish_after_commit("rollouts", id=rollout.pk)


def note_rest(claim: Claim, rollout: Rollout, outcomes: list[Outcome]) -> None:
    """The same of nodes whose wave has not come: their steps go on waiting, and say what failed."""
    with transaction.atomic():
        lock(claim)
        for outcome in outcomes:
            if outcome.state is not None:
                observe.note_report(node_id=outcome.node_id, state=outcome.state)
            elif outcome.error is not None:
                said = {"message": in_words(outcome.error.message)[:2000], "finished_at": now()}
                Step.objects.filter(rollout=rollout, node=outcome.node_id).update(**said, tries=F("tries") + 1)


def _note_outcome(rollout: Rollout, outcome: Outcome, *, turning: bool) -> None:
    steps = Step.objects.filter(rollout=rollout, node_id=outcome.node_id)
    if outcome.state is not None:
        observe.note_report(node_id=outcome.node_id, state=outcome.state)
        if turning:
            # A node that refused kept what it ran; its step goes on saying so.
            steps = steps.exclude(state=StepState.REFUSED)
        steps.update(
            state=StepState.ROLLED_BACK if turning else StepState.DONE,
            how=outcome.how,
            message="",
            generation=outcome.generation,
            finished_at=now(),
        )
    elif outcome.error is not None:
        state = _step_state(outcome)
        if state == StepState.UNREACHABLE and not isinstance(outcome.error, Unavailable):
            observe.store_contact_errors({outcome.node_id: outcome.error.message})
        if turning:
            steps = steps.exclude(state=StepState.REFUSED)
        steps.update(
            state=state,
            message=in_words(outcome.error.message)[:2000],
            generation=outcome.generation,
            tries=F("tries") + 1,
            finished_at=now(),
        )


def _step_state(outcome: Outcome) -> StepState:
    if isinstance(outcome.error, Refused):
        return StepState.REFUSED
    return StepState.WAITING if isinstance(outcome.error, Superseded) else StepState.UNREACHABLE


def start_rollback(claim: Claim, rollout: Rollout, node: str, refusal: Refused, culprits: Culprits | None) -> None:
    """A node said no: the fleet should run the last good revision again, and the refused digest is remembered.

    From this commit on the nodes that took the refused revision differ from the wanted one, so they are brought back
    by the ordinary comparison, whoever makes it and whenever. With culprits the next compile goes without them at
    once, and its revision takes the place of the way back.
    """
    with transaction.atomic():
        sync = lock(claim)
        rollout.refresh_from_db(fields=("state",))
        if rollout.state != RolloutState.PUSHING or sync.wanted_id != rollout.revision_id:
            return  # a person or a newer revision took over
        rollout.line = refusal.line
        rollout.object_label = _about(rollout.revision, refusal, culprits)[:WORDS_OF_A_LABEL]
        said = in_words(refusal.message)
        message = said if node in said else f"{node}: {said}"
        if rollout.kind == Rollout.Kind.REPAIR:
            # The revision is good and the node is not: repairs.py keeps this from being tried in a loop.
            move(rollout, RolloutState.FAILED, message)
            return
        _turn_back(sync, rollout, message, culprits)


def take_back(claim: Claim, rollout: Rollout, message: str, culprits: Culprits | None) -> None:
    """The fleet should run the last good revision again because this one does worse; as `start_rollback`."""
    sync = lock(claim)
    rollout.object_label = named(culprits)[:WORDS_OF_A_LABEL] if culprits else ""
    _turn_back(sync, rollout, message, culprits)


def _turn_back(sync: FleetSync, rollout: Rollout, message: str, culprits: Culprits | None) -> None:
    back_to = next((each for each in (sync.fallback, sync.last_good) if each and each.pk != rollout.revision_id), None)
    if back_to is None and rollout.waves > 1:
        back_to = rollout.previous  # it runs on the nodes of later waves
    if culprits is not None:
        message = f"{message} Quarantined so that other changes can go live: {rollout.object_label}."
        quarantine.put(fleet=rollout.fleet, culprits=culprits)
        request_push([rollout.fleet])
    ending = "" if back_to or culprits else " There is no earlier revision to roll back to."
    if sync.held_at_id is not None:
        number = rollout.revision.number
        ending = f" The fleet stays held at revision {number}, and nodes that do not run it are asked again."
    if sync.held_at_id is not None or sync.fallback_id == rollout.revision_id:
        # A person chose it, often to leave the last good one, or the other nodes run it: it stays, and is tried again
        # as after any repair that was refused.
        move(rollout, RolloutState.FAILED, message + ending)
        return
    _want_last_good(sync, rollout.revision.digest, back_to)
    if back_to is None:
        move(rollout, RolloutState.FAILED, message + ending)
        return
    rollout.generation = raise_in_transaction(sync, _highest_pushed(rollout))
    move(rollout, RolloutState.ROLLING_BACK, message)


def _want_last_good(sync: FleetSync, refused_digest: str, back_to: Revision | None) -> None:
    sync.refused_digest = refused_digest
    sync.wanted = back_to
    sync.save(update_fields=("refused_digest", "wanted"))


def _highest_pushed(rollout: Rollout) -> int:
    pushed = Step.objects.filter(rollout=rollout).aggregate(highest=Max("generation"))["highest"] or 0
    return max(pushed, rollout.generation)


def _about(revision: Revision, refusal: Refused, culprits: Culprits | None) -> str:
    """What people call whom the refusal is about: `route acme/shop`."""
    if culprits is not None:
        return named(culprits)
    bundle = revision_store.bundle_of(revision.pk, revision.digest)
    owner = next(iter(owners_named(refusal, bundle)), bundle.line_owners.get(refusal.line or 0, ""))
    snapshot = revision_store.snapshot_of(revision.pk, revision.digest)
    if part := parts_of(snapshot).get(owner):
        return f"{part.kind.lower()} {part.label}"
    fronts: dict[str, str] = {}
    for front in snapshot.load_balancers:
        fronts[front.id] = f"load balancer {front.label}"
        fronts |= {each.id: f"listener {each.label} of {front.label}" for each in front.listeners}
    return fronts.get(owner, in_words(owner))


def named(culprits: Culprits) -> str:
    """What people call them: `route acme/shop, pool acme/web`."""
    return ", ".join(f"{part.kind.lower()} {part.label}" for part in culprits.parts)


def concerned(rollout: Rollout) -> QuerySet[Step]:
    """The steps whose turn has come; on the way back those of nodes that may have taken the revision."""
    steps, come = Step.objects.filter(rollout=rollout), Q(wave__lte=rollout.wave)
    return steps.filter(come | ~Q(state=StepState.WAITING) if rollout.state == RolloutState.ROLLING_BACK else come)


def finalize(claim: Claim, rollout: Rollout) -> None:
    """End the rollout when every node that it concerns is where it should be; else it stays under way."""
    with transaction.atomic():
        sync = lock(claim)
        rollout.refresh_from_db(fields=("state", "message", "wave"))
        if rollout.state == RolloutState.PUSHING:
            steps = list(Step.objects.filter(rollout=rollout).select_related("node__report"))
            left = [step for step in steps if step.state != StepState.DONE]
            if len(left) == len(steps) > 0 or not all(step.is_away for step in left):
                return
            if sync.wanted_id == rollout.revision_id:
                _note_good(sync, on_all=not left)
            if not left:
                move(rollout, RolloutState.DONE)
        elif rollout.state == RolloutState.ROLLING_BACK:
            back = (StepState.ROLLED_BACK, StepState.REFUSED)
            if not concerned(rollout).exclude(state__in=back).exists():
                move(rollout, RolloutState.ROLLED_BACK)


def _note_good(sync: FleetSync, *, on_all: bool) -> None:
    """Every node that answers took what is wanted, or every one there is."""
    sync.fallback_id = sync.wanted_id
    if on_all:
        sync.last_good_id, sync.refused_digest = sync.wanted_id, ""
    sync.save(update_fields=("fallback", "last_good", "refused_digest"))
    if sync.wanted and sync.wanted.digest == sync.compiled_digest and not sync.compile_error:
        note_proven(sync)


def abort(claim: Claim, rollout: Rollout, message: str) -> None:
    """A node refused to go back as well: end here, a repair tries it again later."""
    with transaction.atomic():
        lock(claim)
        rollout.refresh_from_db(fields=("state", "message"))
        if rollout.state == RolloutState.ROLLING_BACK:
            move(rollout, RolloutState.FAILED, f"{rollout.message} {message}")
