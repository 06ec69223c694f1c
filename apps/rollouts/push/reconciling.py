"""One holder's work: compile what is desired, push what differs, until a round changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from django.db import transaction
from django.db.models import F

from apps.core import log_context
from apps.core.clock import now
from apps.core.queue import enqueue
from apps.drivers.proxy.contract import NodeState, Refused, Superseded
from apps.fleet.models import Node
from apps.fleet.services import RECONCILE_TASK
from apps.observe import services as observe
from apps.observe.collect.readings import addresses_of, target_of
from apps.rollouts.culprits.search import find_culprits
from apps.rollouts.models import FleetSync, Revision, Rollout, Step
from apps.rollouts.push import claims, compiling, lifecycle, revision_store
from apps.rollouts.push.claims import Claim
from apps.rollouts.push.due import runs
from apps.rollouts.push.pushing import Job, Outcome, Pace, Plans, is_as_wanted, look_at, occupied, push_all
from apps.rollouts.push.repairs import has_rested, may_repair, may_try_again
from apps.rollouts.push.states import RolloutState, StepState
from apps.rollouts.waves import refreshing, soaking
from apps.rollouts.waves.planning import Waves
from apps.rollouts.waves.turns import begin_turn

logger = logging.getLogger(__name__)

# So long after the first node is free the others are waited for: a moment when a newer change is there for the free
# ones, longer when only an answer of theirs has to be acted on.
NEWS_SECONDS = 0.3
ACT_SECONDS = 5.0

# A guard against a mistake of ours, not against work: each round ends with less to do or with nothing done.
ROUNDS = 50

BEHIND = "The node is still busy. The other nodes continue; this one gets the newest revision when it is done."

Seen = dict[int, NodeState | str]


def look_at_nodes(fleet_id: int) -> Seen:
    """Ask every node of the fleet what it runs, and keep the answers for pages; needs no claim."""
    addresses = addresses_of(Node.objects.filter(fleet_id=fleet_id).only("name", "url"))
    targets = {address.node_id: target_of(address) for address in addresses}
    seen = look_at(targets, enough=lambda: compiling.must_compile(fleet_id))
    instant = now()
    states = {pk: state for pk, state in seen.items() if isinstance(state, NodeState)}
    observe.store_reports([observe.report_of(pk, state, instant) for pk, state in states.items()])
    observe.store_contact_errors({pk: text for pk, text in seen.items() if isinstance(text, str)})
    return seen


def work(claim: Claim, seen: Seen | None) -> None:
    """Steps 2 to 5 until a round changes nothing."""
    for _ in range(ROUNDS):
        compiled = compiling.must_compile(claim.fleet_id)
        if compiled:
            compiling.compile_fleet(claim)
        refreshed = refreshing.must_refresh(claim.fleet_id) and refreshing.refresh(claim)
        pushed = _push(claim, seen)
        if not (compiled or refreshed or pushed):
            return
        # A change that changed no file may have brought a node, or a person asked for a look.
        seen = None if pushed else look_at_nodes(claim.fleet_id)
    logger.error("fleet %s does not come to rest", claim.fleet_id)


def _push(claim: Claim, seen: Seen | None) -> bool:
    """Steps 3 to 6 once; False when no node was worked on and no wave begun."""
    rows = Revision.objects.filter(pk__in=FleetSync.objects.filter(fleet_id=claim.fleet_id).values("wanted"))
    wanted = rows.defer("bundle", "snapshot").first()  # megabytes, which the revision store keeps open
    if wanted is None:
        return False
    rollout = lifecycle.open_rollout(claim.fleet_id) or (_begin_repair(claim, wanted, seen) if seen else None)
    if rollout is None:
        return False
    with log_context.about(rollout=rollout.pk, fleet=rollout.fleet_id):
        lifecycle.let_go(claim, rollout)
        if seen:
            # Once for each look: what a node goes on saying after a push is for the next sweep.
            lifecycle.take_along(claim, rollout)
        if rollout.waits_for_wave:
            _bring_the_rest(claim, rollout)
        if rollout.waits_for_stage:
            return begin_turn(claim, rollout)
        if rollout.state == RolloutState.SOAKING:
            return soaking.decide(claim, rollout)
        jobs, plans = jobs_of(rollout, wanted, seen)
        if jobs:
            lifecycle.note_start(rollout, [job.node_id for job in jobs])
            refused = run(claim, rollout, jobs, plans)
            _answer_refusals(claim, rollout, refused, {job.node_id: job for job in jobs})
        moved = soaking.end_wave(claim, rollout)
        lifecycle.finalize(claim, rollout)
    return bool(jobs) or moved


def jobs_of(rollout: Rollout, wanted: Revision, seen: Seen | None) -> tuple[list[Job], Plans]:
    """The nodes that this round works on, and what is known about where they start.

    A node that did not answer is left to a round that has looked at it and found it answering; one that is still at an
    earlier push, or rests after one that it could not take, to a later round.
    """
    turning = rollout.state == RolloutState.ROLLING_BACK
    # A refused step of a rollout that did not turn back is one whose worker died in between: it is asked again.
    done = {StepState.ROLLED_BACK, StepState.REFUSED} if turning else {StepState.DONE}
    steps = lifecycle.concerned(rollout).exclude(state__in=done).select_related("node__report")
    answering = {pk for pk, state in (seen or {}).items() if isinstance(state, NodeState)}
    away = occupied(step.node_id for step in steps)
    steps_now = [step for step in steps if step.node_id in answering or not _is_away(step, seen)]
    steps_now = [step for step in steps_now if step.node_id not in away and may_try_again(step)]
    return _jobs(rollout, steps_now, wanted, turning=turning)


def _jobs(rollout: Rollout, steps: list[Step], wanted: Revision, *, turning: bool) -> tuple[list[Job], Plans]:
    """What brings the nodes of these steps to a revision."""
    believed = {step.node_id: _believed(step, turning=turning) for step in steps}
    known = revision_store.bundles_by_digest(rollout.fleet_id, {digest for digest in believed.values() if digest})
    bundle = revision_store.bundle_of(wanted.pk, wanted.digest)
    jobs = [
        Job(
            node_id=step.node_id,
            target=target_of(address),
            wanted=bundle,
            generation=rollout.generation,
            believed=believed[step.node_id],
        )
        for step, address in zip(steps, addresses_of(step.node for step in steps), strict=True)
    ]
    return jobs, Plans(known, bundle)


def _bring_the_rest(claim: Claim, rollout: Rollout) -> None:
    """Nodes of later waves run on with what was before, with its servers and lists of now and as nobody edited it."""
    previous = rollout.previous
    if previous is None:
        return
    steps = Step.objects.filter(rollout=rollout, wave__gt=rollout.wave, state=StepState.WAITING)
    behind = steps.exclude(runs(previous.digest, "node__")).select_related("node__report")
    busy = occupied(step.node_id for step in behind)
    now_due = [step for step in behind if not step.is_away and step.node_id not in busy and has_rested(step)]
    unedited = runs(F("node__report__digest"), "node__")
    if behind.filter(pk__in=[step.pk for step in now_due]).exclude(unedited).exists():
        # They may have what was before from this rollout already, and take a generation once.
        lifecycle.bump_generation(claim, rollout.generation, rollout)
    jobs, plans = _jobs(rollout, now_due, previous, turning=False)
    for outcomes in push_all(jobs, plans, _pace(claim, jobs, lambda waited: waited >= ACT_SECONDS)):
        lifecycle.note_rest(claim, rollout, outcomes)


def _is_away(step: Step, seen: Seen | None) -> bool:
    """Whether the node did not answer just now, or last time when nobody looked since."""
    if seen is not None and step.node_id in seen:
        return isinstance(seen[step.node_id], str)
    return step.is_away


def _believed(step: Step, *, turning: bool) -> str:
    """The digest that the node last said it runs, cleanly; empty when it has to be asked first."""
    report = getattr(step.node, "report", None)
    # On the way back nothing is believed: the node may have taken the refused revision without our knowing.
    if turning or report is None or report.drift or report.digest != report.on_disk:
        return ""
    return str(report.digest)


def run(claim: Claim, rollout: Rollout, jobs: list[Job], plans: Plans) -> list[Outcome]:
    """Push, write down, and take a higher number where a node was ahead; returns the refusals."""
    refused: list[Outcome] = []
    ahead: list[int] = []
    elsewhere: list[Outcome] = []
    waiting = {job.node_id for job in jobs}

    def leave(waited: float) -> bool:
        if waited >= ACT_SECONDS and (refused or ahead or elsewhere):
            return True
        return waited >= NEWS_SECONDS and compiling.must_compile(claim.fleet_id)

    for outcomes in push_all(jobs, plans, _pace(claim, jobs, leave)):
        waiting -= {outcome.node_id for outcome in outcomes}
        elsewhere += [outcome for outcome in outcomes if outcome.error is None and not outcome.how]
        done = [outcome for outcome in outcomes if outcome.error is not None or outcome.how]
        if done:
            lifecycle.note_outcomes(claim, rollout, done)
        refused += [outcome for outcome in done if isinstance(outcome.error, Refused)]
        ahead += [outcome.node_id for outcome in done if isinstance(outcome.error, Superseded)]
    if waiting:
        Step.objects.filter(rollout=rollout, node__in=waiting).update(state=StepState.WAITING, message=BEHIND)
    if ahead:
        states = look_at({job.node_id: job.target for job in jobs if job.node_id in ahead}).values()
        highest = max((state.generation for state in states if isinstance(state, NodeState)), default=0)
        lifecycle.bump_generation(claim, highest, rollout)
    if elsewhere:
        refused += run(claim, rollout, *_looked_up(rollout, elsewhere, jobs, plans))
    return refused


def _pace(claim: Claim, jobs: list[Job], leave: Callable[[float], bool]) -> Pace:
    """Each node goes at its own pace: who is done takes the next change, who is late is looked at when it is done."""
    return Pace(
        heartbeat=lambda: claims.renew(claim),
        every=claims.RENEW_SECONDS,
        leave=leave,
        late=partial(enqueue, RECONCILE_TASK, claim.fleet_id),
        others_free=Node.objects.filter(fleet_id=claim.fleet_id).count() > len(jobs),
    )


def _looked_up(rollout: Rollout, elsewhere: list[Outcome], jobs: list[Job], plans: Plans) -> tuple[list[Job], Plans]:
    """The jobs of nodes that run something else than believed, now that the revision store was asked what that is."""
    running = {outcome.node_id: outcome.state.digest for outcome in elsewhere if outcome.state is not None}
    known = revision_store.bundles_by_digest(rollout.fleet_id, set(running.values()))
    again = [
        replace(job, believed=running[job.node_id], looked_up=True, generation=rollout.generation)
        for job in jobs
        if job.node_id in running
    ]
    return again, Plans(known, plans.wanted)


def _answer_refusals(claim: Claim, rollout: Rollout, refused: list[Outcome], jobs: dict[int, Job]) -> None:
    """Step 5: the first refusal speaks for all; a change is asked whom it is about."""
    if not refused:
        return
    first = refused[0]
    assert isinstance(first.error, Refused)  # noqa: S101 - `refused` holds no others
    job = jobs[first.node_id]
    if rollout.state == RolloutState.ROLLING_BACK:
        lifecycle.abort(claim, rollout, f"{job.target.name} refused to roll back: {first.error.message}")
        return
    found = None
    if rollout.kind == Rollout.Kind.CHANGE:
        good = Revision.objects.filter(pk__in=FleetSync.objects.filter(fleet=claim.fleet_id).values("last_good"))
        found = find_culprits(claim, rollout, job, first.error, good.exclude(pk=rollout.revision_id).first())
    lifecycle.start_rollback(claim, rollout, job.target.name, first.error, found)


def _begin_repair(claim: Claim, wanted: Revision, seen: Seen) -> Rollout | None:
    """A rollout of what is wanted already, to nodes that answer and run something else."""
    states = {pk: state for pk, state in seen.items() if isinstance(state, NodeState)}
    differ = [pk for pk, state in states.items() if not is_as_wanted(state, wanted.digest)]
    nodes = may_repair(wanted, differ, claim.fleet_id)
    if not nodes:
        return None
    with transaction.atomic():
        locked = claims.lock(claim)
        if locked.wanted_id != wanted.pk or lifecycle.open_rollout(claim.fleet_id) is not None:
            return None
        return lifecycle.begin(
            revision=wanted,
            previous=wanted,
            kind=Rollout.Kind.REPAIR,
            generation=lifecycle.raise_in_transaction(locked, max(each.generation for each in states.values())),
            actor="spillway",
            waves=Waves(dict.fromkeys(nodes, 1)),
            reason=_why({pk: states[pk] for pk in nodes}),
        )


def _why(states: dict[int, NodeState]) -> str:
    names = dict(Node.objects.filter(pk__in=states).values_list("pk", "name"))
    return "; ".join(f"{names.get(pk, pk)} {_difference(state)}" for pk, state in states.items())


def _difference(state: NodeState) -> str:
    if not state.digest:
        return "runs no revision yet"
    if state.drift or state.digest != state.on_disk:
        return "drifted: " + (", ".join(state.drift) or "its files were edited")
    return "runs something else"
