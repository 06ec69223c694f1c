"""After a death: the lock that a dead worker's Terraform still holds, or left behind.

Whoever has the lease of a stack is the only one who works on it: a lock that is there belongs to an attempt whose
worker is gone. Its Terraform goes on to the end of what it applies, says that it lives
(drivers/infra/process_guard.py), writes the state and gives the lock back; so it is left alone as long as it lives,
and its password is good: neither a newer revision nor a person ends its run before. Only a lock of which nothing was
heard for a while is taken away; the audit log says so.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from apps.audit import services as audit
from apps.core.clock import database_now
from apps.core.concurrency.leases import Lease
from apps.drivers.infra.contract import Locked
from apps.stacks.models import StackRun, StackSync, StateLock
from apps.stacks.run import lifecycle

logger = logging.getLogger(__name__)


def free_the_lock(lease: Lease[StackSync], run: StackRun) -> None:
    """Take the lock of a dead attempt away; raises Locked while its Terraform may still live, LeaseLost."""
    held = _held(run.stack_id)
    if held is None:
        return
    if _may_live(held):
        raise Locked("The Terraform process of a lost worker is still running or has just died; waiting for it.")
    _take_away(lease, run, held)


def may_still_write(stack_id: int) -> bool:
    """Whether a lost worker's Terraform may still write the state: its run must not end before it does."""
    held = _held(stack_id)
    return held is not None and _may_live(held)


def _held(stack_id: int) -> StateLock | None:
    return StateLock.objects.filter(stack_id=stack_id).select_related("run").first()


def _may_live(held: StateLock) -> bool:
    over = held.run is None or held.run.finished_at is not None  # its password is worth nothing any more
    return not over and held.seen_at > database_now() - timedelta(seconds=settings.STACK_LOCK_GRACE_S)


def _take_away(lease: Lease[StackSync], run: StackRun, held: StateLock) -> None:
    with transaction.atomic():
        lease.lock()
        gone, _ = StateLock.objects.filter(pk=held.pk, lock_id=held.lock_id, seen_at=held.seen_at).delete()
        if not gone:
            raise Locked("The Terraform of a lost worker is still running.")
        before = {"lock": held.lock_id, "run": held.run_id, "since": held.created_at.isoformat(), **held.info}
        audit.record(
            actor=lifecycle.platform(run),
            action="unlock",
            kind="Stack",
            object_id=run.stack_id,
            label=run.stack.name,
            before=before,
            after={"run": run.pk, "attempt": lease.attempt, "at": database_now().isoformat()},
            reason="The worker that held it is lost, and its Terraform process does not report.",
        )
    logger.warning("the lock of a dead attempt on stack %s was taken away", run.stack_id)
