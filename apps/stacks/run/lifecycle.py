"""The bookkeeping: a run begins, moves along its table, ends; inside the caller's transaction."""

from __future__ import annotations

from datetime import timedelta

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit import services as audit
from apps.core.clock import database_now, now
from apps.core.events import publish_after_commit
from apps.stacks.models import StackRevision, StackRun
from apps.stacks.run.states import TERMINAL, S, check_move
from apps.stacks.state import passwords

FIRST_RETRY_S = 30
MOST_RETRIES = 6
FIELDS = (
    *("state", "message", "object_label", "finished_at", "next_try_at", "approved_by", "approved_at", "attempts"),
    *("plan", "plan_file", "plan_digest", "planned_at", "drifted"),
    *("to_add", "to_change", "to_replace", "to_delete"),
)


def begin(
    *,
    revision: StackRevision,
    kind: str,
    actor: str,
    reason: str = "",
    attempts: int = 0,
    after: StackRun | None = None,
) -> StackRun:
    """A run that waits for a worker. `after` is one that failed: what was approved then needs no asking again."""
    run = StackRun.objects.create(
        stack_id=revision.stack_id,
        revision=revision,
        kind=kind,
        actor=actor[:150],
        reason=reason[:400],
        attempts=attempts,
        approved_by=after.approved_by if after else "",
        plan=after.plan if after else b"",
    )
    publish_after_commit("stacks", id=run.stack_id, run=run.pk)
    return run


def move(run: StackRun, state: S, message: str = "") -> None:
    """Move along the table of states.py and store what the caller changed on the row. Raises IllegalMove."""
    check_move(S(run.state), state)
    run.state = state
    run.message = message[:2000]
    if state in TERMINAL:
        run.finished_at = now()
        run.plan_file = b""
        passwords.take_away(run.pk)
        _record_end(run)
    run.save(update_fields=FIELDS)
    publish_after_commit("stacks", id=run.stack_id, run=run.pk)


def fail(run: StackRun, message: str, object_label: str = "") -> None:
    """End in failure; the same is tried again after a while, and later each time, until a person looks.

    What a person stopped meanwhile is not tried again.
    """
    run.object_label = object_label[:400]
    run.refresh_from_db(fields=("cancelled_by",))
    if run.cancelled_by:
        move(run, S.DISCARDED, f"{message} {run.cancelled_by} stopped it.")
        return
    if run.attempts < MOST_RETRIES:
        run.next_try_at = database_now() + timedelta(seconds=FIRST_RETRY_S * 2**run.attempts)
    move(run, S.FAILED, message)


def open_run(stack_id: int) -> StackRun | None:
    """What is under way on the stack; there is never more than one."""
    return StackRun.objects.filter(stack_id=stack_id, finished_at=None).select_related("revision", "stack").first()


def platform(run: StackRun) -> Actor:
    """Spillway itself, acting for the stack's account."""
    return Actor("spillway", run.stack.account, Membership.Role.ADMIN)


def _record_end(run: StackRun) -> None:
    """The end of a run is in the audit log too: that is what webhooks tell, in order and without loss."""
    did = {"add": run.to_add, "change": run.to_change, "replace": run.to_replace, "delete": run.to_delete}
    began = {"stack": run.stack.name, "revision": run.revision.number, "kind": run.kind, "by": run.actor}
    audit.record(
        actor=platform(run),
        action="finish",
        kind="StackRun",
        object_id=run.pk,
        label=f"run {run.pk} of stack {run.stack.name}",
        after=began | did | {"state": str(run.state), "approved_by": run.approved_by, "message": run.message},
        reason=run.reason,
    )
