"""PUSH to clouds, after a death: the lock that a dead worker's Terraform still holds, or left behind.

Whoever has the lease of a stack is the only one who works on it: a lock that is there belongs to an attempt whose
worker is gone. Its Terraform is interrupted by its leash and ends in order, writes the state and gives the lock back;
so it is waited for, as long as its password is good. Only then the lock is taken away, which the audit record keeps.
"""

from __future__ import annotations

import logging
import time

from django.conf import settings
from django.db import transaction

from apps.audit import services as audit
from apps.core.clock import database_now
from apps.core.leases import Lease
from apps.stacks import travel
from apps.stacks.keeping import Keeper
from apps.stacks.models import StackRun, StackSync, StateLock

logger = logging.getLogger(__name__)
LOOK_S = 0.25


def free_the_lock(lease: Lease[StackSync], run: StackRun, keeper: Keeper) -> bool:
    """Wait for the lock of a dead attempt, and take it away at last; False when the caller may not go on."""
    ended = time.monotonic() + settings.STACK_LOCK_GRACE_S
    while True:
        held = StateLock.objects.filter(stack_id=run.stack_id).select_related("run").first()
        if held is None:
            return keeper.may_go_on()
        over = held.run is None or held.run.finished_at is not None  # its password is worth nothing any more
        if over or time.monotonic() >= ended:
            _take_away(lease, run, held)
            return keeper.may_go_on()
        if not keeper.may_go_on():
            return False
        time.sleep(LOOK_S)


def _take_away(lease: Lease[StackSync], run: StackRun, held: StateLock) -> None:
    with transaction.atomic():
        lease.lock()
        StateLock.objects.filter(pk=held.pk, lock_id=held.lock_id).delete()
        before = {"lock": held.lock_id, "run": held.run_id, "since": held.created_at.isoformat(), **held.info}
        audit.record(
            actor=travel.platform(run),
            action="unlock",
            kind="Stack",
            object_id=run.stack_id,
            label=run.stack.name,
            before=before,
            after={"run": run.pk, "attempt": lease.attempt, "at": database_now().isoformat()},
            reason="The worker that held it is gone.",
        )
    logger.warning("the lock of a dead attempt on stack %s was taken away", run.stack_id)
