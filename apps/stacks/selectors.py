"""Stacks: how far each has come, its runs with their plans in our words, its states and its lock."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from apps.accounts.actors import Actor
from apps.core.errors import NotFound, there
from apps.fleet.models import Stack
from apps.stacks.cloud import strangers
from apps.stacks.models import RunEvent, StackRevision, StackRun, StackSync, StateLock, StateVersion
from apps.stacks.review.differences import Difference
from apps.stacks.run.states import S
from apps.stacks.state import revision_store

CONTENTS = ("plan", "plan_file", "revision__document", "revision__secrets")
STATUS_OF_RUNS = {
    S.WAITING: "planning",
    S.PLANNING: "planning",
    S.PLANNED: "plan_waits",
    S.APPROVED: "applying",
    S.APPLYING: "applying",
}
OTHER_STATUSES = ("in_sync", "behind", "failed", "drifted", "refused", "discarded", "destroyed", "empty")
STATUSES = tuple(sorted({*STATUS_OF_RUNS.values(), *OTHER_STATUSES}))


@dataclass(frozen=True, slots=True)
class StackState:
    """How a stack stands; `status` is one of STATUSES, `message` a sentence where there is more to say.

    `run` is what is under way, else the last one; `refused` what the cloud cannot do of what is wanted.
    """

    stack: Stack
    status: str
    message: str
    sync: StackSync | None
    run: StackRun | None
    lock: StateLock | None
    applied_number: int | None
    wanted_number: int | None
    refused: tuple[dict[str, Any], ...]
    warnings: tuple[dict[str, Any], ...]
    resources: int
    applied_at: datetime | None


def stack_states(actor: Actor, among: Collection[int] | None = None) -> list[StackState]:
    """All stacks by name, or those of the ids; five queries whatever their number. Customers have none."""
    rows = Stack.objects.select_related("cloud_account", "region", "account").order_by("name")
    rows = rows if among is None else rows.filter(pk__in=among)
    stacks = list(rows if actor.is_operator else rows.none())
    ids = [stack.pk for stack in stacks]
    hidden = [f"{name}__{field}" for name in ("wanted", "applied") for field in ("document", "secrets")]
    syncs = StackSync.objects.filter(stack__in=ids).select_related("wanted", "applied").defer(*hidden)
    by_sync = {sync.stack_id: sync for sync in syncs}
    newest = StackRun.objects.filter(stack=OuterRef("stack")).order_by("-id")
    last = runs(actor).filter(pk=Subquery(newest.values("pk")[:1]))
    by_run = {run.stack_id: run for run in last}
    locks = {lock.stack_id: lock for lock in StateLock.objects.filter(stack__in=ids).select_related("run")}
    newest_state = StateVersion.objects.filter(stack=OuterRef("stack")).order_by("-number")
    latest = StateVersion.objects.filter(pk=Subquery(newest_state.values("pk")[:1]))
    counts = dict(latest.values_list("stack_id", "resources"))
    return [
        _state(stack, by_sync.get(stack.pk), by_run.get(stack.pk), locks.get(stack.pk), counts.get(stack.pk, 0))
        for stack in stacks
    ]


def stack_state(actor: Actor, stack_id: int) -> StackState:
    """One of them. Raises NotFound."""
    found = stack_states(actor, among=(stack_id,))
    if not found:
        raise NotFound("There is no such stack, or you may not see it.")
    return found[0]


def _state(
    stack: Stack, sync: StackSync | None, run: StackRun | None, lock: StateLock | None, resources: int
) -> StackState:
    status, message = _status(stack, sync, run)
    wanted = sync.wanted if sync else None
    return StackState(
        stack=stack,
        status=status,
        message=message,
        sync=sync,
        run=run,
        lock=lock,
        applied_number=sync.applied.number if sync and sync.applied else None,
        wanted_number=wanted.number if wanted else None,
        refused=tuple(wanted.refused) if wanted else (),
        warnings=tuple(wanted.warnings) if wanted else (),
        resources=resources,
        applied_at=sync.applied_at if sync else None,
    )


def _status(stack: Stack, sync: StackSync | None, run: StackRun | None) -> tuple[str, str]:
    if run is not None and run.finished_at is None:
        return STATUS_OF_RUNS[S(run.state)], run.message
    if sync is not None and sync.compile_error:
        return "refused", sync.compile_error
    if stack.desired_generation > (sync.compiled_generation if sync else 0):
        return "behind", "Batching changes before planning."
    if sync is None or sync.wanted is None or run is None:
        return "empty", "The stack has no resources yet."
    return _status_after(sync, run)


def _status_after(sync: StackSync, run: StackRun) -> tuple[str, str]:
    """What the last run left behind."""
    if run.state in {S.FAILED, S.DISCARDED}:
        return str(run.state), run.message
    if run.kind == StackRun.Kind.DESTROY:
        return "destroyed", "All resources were deleted. The next change creates them again."
    if run.kind == StackRun.Kind.CHECK and run.drifted:
        return "drifted", run.message
    if sync.added_by_hand:
        return "drifted", strangers.sentence(sync.added_by_hand)
    return ("in_sync", "") if sync.applied_id == sync.wanted_id else ("behind", "")


def runs(actor: Actor, stack_id: int | None = None) -> QuerySet[StackRun]:
    """Runs, newest first, without their contents; of one stack or of all. Customers have none."""
    rows = StackRun.objects.select_related("stack__cloud_account", "revision").defer(*CONTENTS)
    rows = rows if actor.is_operator else rows.none()
    return (rows if stack_id is None else rows.filter(stack_id=stack_id)).order_by("-id")


def run(actor: Actor, run_id: int) -> StackRun:
    """One run. Raises NotFound."""
    return there(runs(actor).filter(pk=run_id).first(), "There is no such run, or you may not see it.")


def plan_of(actor: Actor, run_id: int) -> tuple[list[Difference], list[Difference]]:
    """What the run's plan would do, and what somebody else did, in our words. Raises NotFound, Unsealable."""
    found = run(actor, run_id)
    return revision_store.changes_of(found), revision_store.drift_of(found)


def events(actor: Actor, run_id: int, after: int = 0) -> QuerySet[RunEvent]:
    """What Terraform said during the run, in order, from after that number on. Raises NotFound."""
    return RunEvent.objects.filter(run=run(actor, run_id), number__gt=after).order_by("number")


def revisions(actor: Actor, stack_id: int) -> QuerySet[StackRevision]:
    """Revisions of the stack, newest first, without their contents; customers have none."""
    rows = StackRevision.objects.filter(stack_id=stack_id).defer("document", "secrets")
    return (rows if actor.is_operator else rows.none()).order_by("-number")


def states(actor: Actor, stack_id: int) -> QuerySet[StateVersion]:
    """Versions of the stack's state, newest first, without their contents; customers have none."""
    rows = StateVersion.objects.filter(stack_id=stack_id).select_related("run").defer("content", "run__plan")
    return (rows if actor.is_operator else rows.none()).order_by("-number")


def lock_of(actor: Actor, stack_id: int) -> StateLock | None:
    """Who may write the state now; None when nobody does, and for customers."""
    rows = StateLock.objects.filter(stack_id=stack_id).select_related("run")
    return (rows if actor.is_operator else rows.none()).first()


def outputs(actor: Actor, stack_id: int) -> dict[str, Any]:
    """What the cloud answered: addresses and names of what stands in the stack; empty for customers."""
    rows = StackSync.objects.filter(stack_id=stack_id).values_list("outputs", flat=True)
    return dict((rows if actor.is_operator else rows.none()).first() or {})
