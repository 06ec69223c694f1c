"""The beginning of an attempt: the run as it is now, and the only password that opens its state."""

from __future__ import annotations

from django.db import transaction

from apps.core.concurrency.leases import Lease
from apps.drivers.infra.contract import Locked
from apps.stacks.models import StackRun, StackSync, StateLock
from apps.stacks.run import lifecycle
from apps.stacks.run.states import S
from apps.stacks.state import passwords

# So many workers may die over one run before a person has to look.
MOST_DEATHS = 10


class Overtaken(Exception):
    """Somebody ended or stopped the run before the attempt began; there is nothing to do."""


def begin_attempt(lease: Lease[StackSync], run: StackRun, state: S) -> str:
    """Move the run there and answer its password; passwords of attempts before are worth nothing from here on.

    An apply raises a doubt that its good end takes away (orphans.py). Raises LeaseLost, Locked when there is a lock,
    and Overtaken when the run is over, stopped, or has cost too many workers.
    """
    with transaction.atomic():
        sync = lease.lock()
        if StateLock.objects.filter(stack_id=run.stack_id).exists():
            raise Locked("The Terraform of a lost worker has just taken the lock. Waiting for it to finish.")
        run.refresh_from_db()
        if run.finished_at is not None or run.cancelled_by:
            raise Overtaken
        run.next_try_at = None
        if run.state == S.PLANNING:
            run.attempts += 1
        if run.attempts <= MOST_DEATHS:
            password = passwords.mint(run)
            if state == S.APPLYING and run.kind != StackRun.Kind.DESTROY:  # which makes nothing
                sync.doubted = run.revision
                sync.save(update_fields=("doubted",))
            lifecycle.move(run, state)
            return password
        lifecycle.fail(run, f"{MOST_DEATHS} workers died during this run. Check their logs before you retry it.")
    raise Overtaken
