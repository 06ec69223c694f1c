"""Brings every stack to what the definitions say; somebody lets it happen, exactly that happens.

`reconcile_stack` may be called at any time, by anybody, as often as they like:

1. Claim the stack with a lease. Somebody else has it: leave, they look once more before they go.
2. Something was desired that was not compiled: wait some seconds for more, then compile it (run/compiling.py). A new
   revision begins a run, which takes the place of one that still waits.
3. A run is planned (run/planning.py). The policy approves, or a person does (`approve`, `discard`).
4. Exactly the approved plan is applied (run/applying.py); Terraform writes the state here while it works
   (state/storage.py).
5. What a dead worker left is taken over by the next: its Terraform ends in order, its lock is waited for, what is left
   is planned and goes on when it is part of what was approved.
6. What failed is tried again after a while; what was applied is looked at for drift now and then.

Operators alone come in here, and what they do is in the audit log.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit import services as audit
from apps.core.clock import database_now
from apps.core.concurrency.leases import LeaseLost, take
from apps.core.errors import Conflict, FieldError, Invalid, NotFound, there
from apps.core.events import publish_after_commit
from apps.core.queue import enqueue_on_commit
from apps.fleet.models import Stack, StaticIP
from apps.fleet.services import STACK_TASK, request_stack_push
from apps.stacks.models import StackRun, StackSync, StateLock, StateVersion
from apps.stacks.review import protecting
from apps.stacks.run import lifecycle, reconciling
from apps.stacks.run.due import due_stacks
from apps.stacks.run.recovery import may_still_write
from apps.stacks.run.states import BUSY, S
from apps.stacks.state import passwords, redaction
from apps.stacks.state import storage as state

logger = logging.getLogger(__name__)
WHAT = "what stands in clouds"
# Changes may come between the last look and the release of the lease; the sweep finds the rest.
LOOKS = 3


def reconcile_stack(*, stack_id: int) -> bool:
    """Work on the stack as far as it goes now; False when somebody else works on it."""
    length = timedelta(seconds=settings.STACK_LEASE_S)
    for _ in range(LOOKS):
        if not Stack.objects.filter(pk=stack_id).exists():
            return True  # deleted since somebody thought of it
        lease = take(StackSync, length, stack_id=stack_id)
        if lease is None:
            return False
        try:
            reconciling.work(lease, stack_id)
        except LeaseLost as lost:
            logger.warning("%s; somebody else goes on", lost)
            return False
        finally:
            lease.release()
        if stack_id not in due_stacks(database_now()):
            return True
    return True


def stacks_to_sweep() -> list[int]:
    """Stacks on which there is something to do and nobody does it, as the database knows."""
    return due_stacks(database_now())


def plan_now(*, actor: Actor, stack_id: int, reason: str = "") -> StackRun | None:
    """Plan what is wanted, now: anew where a plan waits already. None when it has to be compiled first.

    Raises NotFound, Forbidden, Conflict while the stack is worked on.
    """
    actor.must_operate(WHAT)
    stack = _stack(stack_id)
    with transaction.atomic():
        sync = _lock_sync(stack_id)
        run = lifecycle.open_run(stack_id)
        _record(actor, "plan", stack, None, {"revision": sync.wanted.number if sync.wanted else None}, reason)
        if sync.wanted is None:
            request_stack_push([stack])
            return None
        if run is None:
            run = lifecycle.begin(revision=sync.wanted, kind=StackRun.Kind.CHANGE, actor=actor.name, reason=reason)
        elif run.state in BUSY or run.state == S.APPROVED:
            raise Conflict(f"Run {run.pk} is {run.state}: wait for its end, or cancel it.")
        elif run.state == S.PLANNED:
            lifecycle.move(run, S.WAITING, f"{actor.name} requested a new plan.")
        enqueue_on_commit(STACK_TASK, stack_id)
    return run


def approve(*, actor: Actor, run_id: int, plan_digest: str, reason: str = "") -> StackRun:
    """Let exactly this plan be applied; `plan_digest` is that of the plan that was looked at.

    Raises NotFound, Forbidden, Conflict when it does not wait for this, or was planned anew since.
    """
    actor.must_operate(WHAT)
    with transaction.atomic():
        run = _lock_run(run_id)
        if run.state != S.PLANNED:
            raise Conflict(f"Run {run.pk} is {run.state}: only a plan that needs approval can be approved.")
        if plan_digest != run.plan_digest:
            raise Conflict("There is a newer plan since you viewed this one. Review the new plan and decide again.")
        run.approved_by, run.approved_at = actor.name[:150], database_now()
        lifecycle.move(run, S.APPROVED)
        _record_run(actor, "approve", run, reason)
        enqueue_on_commit(STACK_TASK, run.stack_id)
    return run


def discard(*, actor: Actor, run_id: int, reason: str = "") -> StackRun:
    """Say no to a plan that waits. Raises NotFound, Forbidden, Conflict."""
    actor.must_operate(WHAT)
    with transaction.atomic():
        run = _lock_run(run_id)
        if run.state != S.PLANNED:
            raise Conflict(f"Run {run.pk} is {run.state}: only a plan that needs approval can be discarded.")
        lifecycle.move(run, S.DISCARDED, f"Discarded by {actor.name}." + (f" {reason}" if reason else ""))
        _record_run(actor, "discard", run, reason)
    return run


def cancel(*, actor: Actor, run_id: int, reason: str = "") -> StackRun:
    """Stop a run. Terraform is interrupted as by a person; what it was just making may be half made.

    Raises NotFound, Forbidden, Conflict.
    """
    actor.must_operate(WHAT)
    with transaction.atomic():
        run = _lock_run(run_id)
        if run.finished_at is not None:
            raise Conflict(f"Run {run.pk} is over.")
        run.cancelled_by = actor.name[:150]
        run.save(update_fields=("cancelled_by",))
        if run.state not in BUSY and not may_still_write(run.stack_id):
            lifecycle.move(run, S.DISCARDED, f"{actor.name} stopped it.")
        _record_run(actor, "cancel", run, reason)
        publish_after_commit("stacks", id=run.stack_id, run=run.pk)
        enqueue_on_commit(STACK_TASK, run.stack_id)
    return run


def retry(*, actor: Actor, run_id: int, reason: str = "") -> StackRun:
    """Try a failed run again now; it is planned anew. Raises NotFound, Forbidden, Conflict."""
    actor.must_operate(WHAT)
    with transaction.atomic():
        run = _lock_run(run_id)
        if run.state != S.FAILED or run.stack.runs.filter(pk__gt=run.pk).exists():
            raise Conflict("Only the last run can be retried, and only if it failed.")
        again = lifecycle.begin(revision=run.revision, kind=run.kind, actor=actor.name, reason=reason, after=run)
        _record_run(actor, "retry", again, reason)
        enqueue_on_commit(STACK_TASK, run.stack_id)
    return again


def destroy(*, actor: Actor, stack_id: int, reason: str) -> StackRun:
    """Plan to delete everything that stands in the stack; a person approves the plan before anything happens.

    Raises NotFound, Forbidden, Invalid without a reason, Conflict while something is under way, and where a protected
    address would be given back.
    """
    actor.must_operate(WHAT)
    _must_say_why(reason)
    stack = _stack(stack_id)
    with transaction.atomic():
        sync = _lock_sync(stack_id)
        _must_be_destroyable(stack, sync)
        assert sync.wanted is not None  # noqa: S101 - asked for in the line above
        run = lifecycle.begin(revision=sync.wanted, kind=StackRun.Kind.DESTROY, actor=actor.name, reason=reason)
        _record(actor, "destroy", stack, None, {"run": run.pk, "revision": sync.wanted.number}, reason)
        enqueue_on_commit(STACK_TASK, stack_id)
    return run


def _must_be_destroyable(stack: Stack, sync: StackSync) -> None:
    kept = StaticIP.objects.filter(stack=stack, protected=True).order_by("name").values_list("name", flat=True)
    if kept:
        raise Conflict(protecting.sentence(kept))
    run = lifecycle.open_run(stack.pk)
    if run is not None:
        raise Conflict(f"Run {run.pk} is {run.state}: wait for its end, or cancel it.")
    if sync.wanted is None:
        raise Conflict("This stack has never been applied.")


def check_drift(*, actor: Actor, stack_id: int) -> StackRun:
    """Look now whether somebody changed what stands in the cloud. Raises NotFound, Forbidden, Conflict."""
    actor.must_operate(WHAT)
    stack = _stack(stack_id)
    with transaction.atomic():
        sync = _lock_sync(stack_id)
        run = lifecycle.open_run(stack_id)
        if run is not None or sync.applied is None:
            said = f"Run {run.pk} is {run.state}." if run else "Nothing has been applied yet."
            raise Conflict(f"{said} There is nothing to check now.")
        if sync.doubted is not None:
            number = sync.doubted.number
            raise Conflict(
                f"Revision {number} was not applied completely, so outside changes cannot be detected: plan it now."
            )
        run = lifecycle.begin(revision=sync.applied, kind=StackRun.Kind.CHECK, actor=actor.name)
        _record(actor, "check", stack, None, {"run": run.pk}, "")
        enqueue_on_commit(STACK_TASK, stack_id)
    return run


def force_unlock(*, actor: Actor, stack_id: int, lock_id: str, reason: str) -> None:
    """Take the lock away from whoever holds it, by its id; they cannot write the state any more.

    Raises NotFound, Forbidden, Invalid without a reason, Conflict when another lock (or none) is there.
    """
    actor.must_operate(WHAT)
    _must_say_why(reason)
    stack = _stack(stack_id)
    with transaction.atomic():
        _lock_sync(stack_id)
        held = StateLock.objects.filter(stack_id=stack_id).first()
        if held is None or held.lock_id != lock_id:
            raise Conflict("This lock no longer exists; check again who holds it.")
        held.delete()
        if held.run_id is not None:
            passwords.take_away(held.run_id)
        before = {"lock": lock_id, "run": held.run_id, "since": held.created_at.isoformat(), **held.info}
        _record(actor, "unlock", stack, before, None, reason)
        publish_after_commit("stacks", id=stack_id)


def read_state(*, actor: Actor, stack_id: int, number: int) -> dict[str, Any]:
    """One version of the state without what is secret; that it was read is in the audit log.

    Raises NotFound, Forbidden, Unsealable.
    """
    actor.must_operate(WHAT)
    stack = _stack(stack_id)
    row = StateVersion.objects.filter(stack_id=stack_id, number=number).first()
    if row is None:
        raise NotFound("There is no such state, or you may not see it.")
    _record(actor, "read_state", stack, None, {"state": number, "serial": row.serial}, "")
    return redaction.without_secrets(state.content_of(row))


def _must_say_why(reason: str) -> None:
    if not reason.strip():
        raise Invalid([FieldError("/reason", "missing", "Give a reason; it is recorded in the audit log.")])


def _stack(stack_id: int) -> Stack:
    return there(Stack.objects.filter(pk=stack_id).first(), "There is no such stack, or you may not see it.")


def _lock_sync(stack_id: int) -> StackSync:
    StackSync.objects.get_or_create(stack_id=stack_id)
    return StackSync.objects.select_for_update().get(stack_id=stack_id)


def _lock_run(run_id: int) -> StackRun:
    """The run, with its stack's row locked until the end of the transaction. Raises NotFound."""
    stack_id = StackRun.objects.filter(pk=run_id).values_list("stack_id", flat=True).first()
    if stack_id is None:
        raise NotFound("There is no such run, or you may not see it.")
    _lock_sync(stack_id)
    return StackRun.objects.select_related("stack__account", "revision").get(pk=run_id)


def _record_run(actor: Actor, action: str, run: StackRun, reason: str) -> None:
    did = {"add": run.to_add, "change": run.to_change, "replace": run.to_replace, "delete": run.to_delete}
    audit.record(
        actor=actor,
        action=action,
        kind="StackRun",
        object_id=run.pk,
        label=f"run {run.pk} of stack {run.stack.name}",
        after={"stack": run.stack.name, "state": str(run.state), "plan": run.plan_digest, **did},
        reason=reason,
    )


def _record(
    actor: Actor, action: str, stack: Stack, before: dict[str, Any] | None, after: dict[str, Any] | None, reason: str
) -> None:
    audit.record(
        actor=actor,
        action=action,
        kind="Stack",
        object_id=stack.pk,
        label=stack.name,
        before=before,
        after=after,
        reason=reason,
    )
