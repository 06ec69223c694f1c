"""The apply: exactly the plan that was approved, by one worker, once."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from apps.core.concurrency.leases import Lease
from apps.core.secrets.sealing import Unsealable, unseal
from apps.drivers.infra.contract import InfraError
from apps.drivers.infra.registry import open_driver
from apps.stacks.models import StackRun, StackSync
from apps.stacks.review import protecting
from apps.stacks.review.differences import Words
from apps.stacks.run import finishing, lifecycle
from apps.stacks.run.attempts import Overtaken, begin_attempt
from apps.stacks.run.heartbeat import Heartbeat, Journal
from apps.stacks.run.recovery import free_the_lock
from apps.stacks.run.states import S
from apps.stacks.run.workspaces import open_workspace
from apps.stacks.state import revision_store


def apply_run(lease: Lease[StackSync], run: StackRun) -> None:
    """One attempt; what comes of it stands in the row. Raises LeaseLost when it is another's now.

    Terraform writes the state while it works, so that whoever comes after a death knows what was made, plans the rest
    (`resume`) and goes on with what is left of the approved plan.
    """
    heartbeat, words = Heartbeat(lease, run, outlives=True), Words({}, {}, {})
    try:
        opened = revision_store.open_revision(run.revision)
        words = revision_store.words_for(run, opened)
        plan = unseal(run.plan_file)
        if kept := protecting.would_release(run, revision_store.changes_of(run)):  # protected since it was planned
            raise InfraError(protecting.sentence(kept))
        free_the_lock(lease, run)
        password = begin_attempt(lease, run, S.APPLYING)
        with open_workspace(lease, run, opened, password) as workspace:
            driver, journal = open_driver(settings.TERRAFORM_BIN), Journal(run, words)
            outputs = driver.apply(workspace, plan, heard=journal.heard, may_go_on=heartbeat.may_go_on)
    except Overtaken:
        return
    except Unsealable as error:
        finishing.failed(lease, run, InfraError(f"The plan cannot be read: {error}"), words)
    except InfraError as error:
        finishing.interrupted(lease, run, error, heartbeat, words)
    else:
        with transaction.atomic():
            finishing.applied(lease.lock(), run, outputs)


def resume(lease: Lease[StackSync], run: StackRun) -> None:
    """A worker died while this was applied: the saved plan is for a state that has moved on, so plan what is left."""
    with transaction.atomic():
        lease.lock()
        lifecycle.move(
            run, S.PLANNING, "The worker died while it applied the plan. The remaining changes are planned again."
        )
