"""One holder's work: compile what is desired, plan, apply what is approved, until nothing is left."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from apps.core.clock import database_now
from apps.core.concurrency.leases import Lease
from apps.stacks.models import StackRun, StackSync
from apps.stacks.run import applying, compiling, lifecycle, planning
from apps.stacks.run.due import wanted_runs
from apps.stacks.run.recovery import may_still_write
from apps.stacks.run.states import S

logger = logging.getLogger(__name__)
# A guard against a mistake of ours: each round ends with less to do or with nothing done.
ROUNDS = 50


def work(lease: Lease[StackSync], stack_id: int) -> None:
    """Until a person, a clock or somebody else is waited for. Raises LeaseLost."""
    for _ in range(ROUNDS):
        if _may_compile(stack_id) and not compiling.is_waiting(lease):
            compiling.compile_now(lease, stack_id)
        run = lifecycle.open_run(stack_id) or _begin_what_is_due(lease, stack_id)
        if run is None or not _step(lease, run):
            return
    logger.error("stack %s does not come to rest", stack_id)


def _may_compile(stack_id: int) -> bool:
    """Not while everything is deleted, nor while a Terraform still works on the run that would be replaced."""
    destroyed = StackRun.objects.filter(stack_id=stack_id, kind=StackRun.Kind.DESTROY, finished_at=None)
    return compiling.must_compile(stack_id) and not destroyed.exists() and not may_still_write(stack_id)


def _step(lease: Lease[StackSync], run: StackRun) -> bool:
    """Carry the run one state further; False when nothing can be done now."""
    if run.cancelled_by and run.state != S.APPLYING and not may_still_write(run.stack_id):
        _discard(lease, run)
        return True
    if run.next_try_at is not None and run.next_try_at > database_now():
        return False
    match run.state:
        case S.WAITING | S.PLANNING:
            planning.plan_run(lease, run)
        case S.APPROVED:
            applying.apply_run(lease, run)
        case S.APPLYING:
            applying.resume(lease, run)
        case _:
            return False
    return True


def _discard(lease: Lease[StackSync], run: StackRun) -> None:
    with transaction.atomic():
        lease.lock()
        lifecycle.move(run, S.DISCARDED, f"{run.cancelled_by} stopped it.")


def _begin_what_is_due(lease: Lease[StackSync], stack_id: int) -> StackRun | None:
    """What failed is tried again, with what was approved of it; else a look for drift."""
    with transaction.atomic():
        sync, instant = lease.lock(), database_now()
        last = wanted_runs().filter(stack_id=stack_id).select_related("revision").order_by("-id").first()
        if last is not None and last.state == S.FAILED:
            if last.next_try_at is None or last.next_try_at > instant:
                return None
            run = _again(last)
        elif (
            sync.applied is not None
            and sync.doubted_id is None
            and (sync.checked_at is None or sync.checked_at < instant - _between_checks())
        ):
            run = lifecycle.begin(revision=sync.applied, kind=StackRun.Kind.CHECK, actor="spillway")
        else:
            return None
    return lifecycle.open_run(run.stack_id)


def _again(last: StackRun) -> StackRun:
    """The same once more; what was approved stays so for what is left of it."""
    return lifecycle.begin(
        revision=last.revision,
        kind=last.kind,
        actor=last.actor,
        reason=last.reason or f"Run {last.pk} failed.",
        attempts=last.attempts + 1,
        after=last,
    )


def _between_checks() -> timedelta:
    return timedelta(seconds=settings.STACK_CHECK_S)
