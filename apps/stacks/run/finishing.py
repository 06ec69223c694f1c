"""The ends of a run: what is then known of the stack, and what others are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction

from apps.core.clock import database_now
from apps.core.concurrency.leases import Lease, LeaseLost
from apps.drivers.infra.contract import InfraError, Locked, StalePlan, Stopped
from apps.stacks.cloud.strangers import Additions, sentence
from apps.stacks.models import StackRun, StackSync
from apps.stacks.review.differences import Difference, Words
from apps.stacks.run import lifecycle
from apps.stacks.run.heartbeat import Heartbeat
from apps.stacks.run.states import S
from apps.stacks.state import outputs, revision_store

LOCKED_AGAIN = timedelta(seconds=4)
NOTHING_ADDED = Additions()


def applied(sync: StackSync, run: StackRun, found: Mapping[str, Any]) -> None:
    """The cloud has the run's revision now, or nothing after a destroy; inside the caller's transaction."""
    _note_outputs(sync, run, found)
    lifecycle.move(run, S.DONE)


def unchanged(sync: StackSync, run: StackRun, found: Mapping[str, Any]) -> None:
    """There was nothing to do: the cloud has it already; inside the caller's transaction."""
    _note_outputs(sync, run, found)
    lifecycle.move(run, S.UNCHANGED)


def _note_outputs(sync: StackSync, run: StackRun, found: Mapping[str, Any]) -> None:
    instant, before = database_now(), dict(sync.outputs)
    sync.applied = None if run.kind == StackRun.Kind.DESTROY else run.revision
    sync.applied_at = sync.checked_at = instant
    sync.outputs, sync.doubted = dict(found), None
    if run.kind == StackRun.Kind.DESTROY:
        sync.added_by_hand = []
    sync.save(update_fields=("applied", "applied_at", "checked_at", "outputs", "doubted", "added_by_hand"))
    outputs.hand_on(run.stack_id, before, sync.outputs)


def checked(
    sync: StackSync,
    run: StackRun,
    changes: Sequence[Difference],
    drift: Sequence[Difference],
    added: Additions = NOTHING_ADDED,
) -> None:
    """A look for drift: whatever differs from what was applied is drift, and a run to repair it begins.

    What was added to it is told alone, since no run can take it away; where that is not known, what was known stays.
    """
    run.plan = revision_store.seal_plan(changes, drift)
    run.drifted = len(changes) + len(added.found)
    sync.checked_at = database_now()
    if not added.error:
        sync.added_by_hand = list(added.found)
    sync.save(update_fields=("checked_at", "added_by_hand"))
    names = list(dict.fromkeys(change.label for change in changes))
    more = f" and {len(names) - 1} more." if len(names) > 1 else "."
    changed = f"Someone changed {names[0]}{more}" if names else ""
    message = " ".join(filter(None, (changed, sentence(added.found), added.error)))
    lifecycle.move(run, S.DONE if run.drifted else S.UNCHANGED, message)
    if changes:
        lifecycle.begin(revision=run.revision, kind=StackRun.Kind.CHANGE, actor="spillway", reason=changed)


def failed(lease: Lease[StackSync], run: StackRun, error: InfraError, words: Words) -> None:
    """Terraform said no; the same is tried again after a while."""
    with transaction.atomic():
        lease.lock()
        lifecycle.fail(run, words.said(error.message), words.label_of(error.address) if error.address else "")


def interrupted(lease: Lease[StackSync], run: StackRun, error: InfraError, heartbeat: Heartbeat, words: Words) -> None:
    """An error while planning or applying; raises LeaseLost when the run is another's now.

    Locked: later again. A plan that is stale: planned again. Cancelled: the next plan says what was done by then.
    """
    if isinstance(error, Stopped) and heartbeat.lost:
        raise LeaseLost(f"run {run.pk} was stopped")
    if not isinstance(error, Locked | StalePlan | Stopped):
        failed(lease, run, error, words)
        return
    with transaction.atomic():
        lease.lock()
        run.refresh_from_db(fields=("cancelled_by",))
        if isinstance(error, Locked):
            run.next_try_at = database_now() + LOCKED_AGAIN
            lifecycle.move(
                run, S.APPROVED if run.state in {S.APPROVED, S.APPLYING} else S.WAITING, words.said(error.message)
            )
        elif isinstance(error, StalePlan):
            lifecycle.move(run, S.PLANNING, words.said(error.message))
        else:
            lifecycle.move(run, S.DISCARDED, f"{run.cancelled_by} stopped it. The next plan shows what it completed.")
