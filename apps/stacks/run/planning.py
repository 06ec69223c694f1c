"""The plan: one attempt finds out what would change, and whether it must be asked for."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from django.conf import settings
from django.db import transaction

from apps.core.clock import database_now, now
from apps.core.concurrency.leases import Lease
from apps.core.secrets.sealing import Unsealable, seal
from apps.drivers.infra.contract import InfraError, Plan
from apps.drivers.infra.registry import open_driver
from apps.stacks.cloud import strangers
from apps.stacks.models import StackRun, StackSync
from apps.stacks.review import policies, protecting
from apps.stacks.review.differences import REPLACE, Difference, Words, continues, read
from apps.stacks.run import finishing, lifecycle
from apps.stacks.run import orphans as finding
from apps.stacks.run.attempts import Overtaken, begin_attempt
from apps.stacks.run.heartbeat import Heartbeat, Journal
from apps.stacks.run.recovery import free_the_lock
from apps.stacks.run.states import S
from apps.stacks.run.workspaces import open_workspace
from apps.stacks.state import revision_store
from apps.stacks.state.revision_store import Opened


def plan_run(lease: Lease[StackSync], run: StackRun) -> None:
    """One attempt; what comes of it stands in the row. Raises LeaseLost when it is another's now.

    1. The lock of a dead attempt is freed; then this attempt gets the only password that opens the state.
    2. After an apply whose good end nobody heard, the cloud is asked what it has that the state does not know. The
       driver plans, and takes that over. Nothing to do: the stack is as it should be.
    3. A plan that would let a protected address go fails. What was approved before (and is left of it) goes on; what
       the policy approves goes on; everything else waits for a person.
    """
    heartbeat, words = Heartbeat(lease, run), Words({}, {}, {})
    try:
        opened = revision_store.open_revision(run.revision)
        words = revision_store.words_for(run, opened)
        free_the_lock(lease, run)
        plan = _planned(lease, run, opened, words, heartbeat)
        added = strangers.look(run, words) if run.kind == StackRun.Kind.CHECK else strangers.Additions()
    except Overtaken:
        return
    except Unsealable as error:
        finishing.failed(lease, run, InfraError(f"The revision cannot be read: {error}"), words)
    except InfraError as error:
        finishing.interrupted(lease, run, error, heartbeat, words)
    else:
        _store(lease, run, plan, opened, replace(words, names=plan.names), added)


def _planned(lease: Lease[StackSync], run: StackRun, opened: Opened, words: Words, heartbeat: Heartbeat) -> Plan:
    password = begin_attempt(lease, run, S.PLANNING)
    imports = finding.imports_for(lease, run, opened, words, heartbeat)
    with open_workspace(lease, run, opened, password, imports) as workspace:
        return open_driver(settings.TERRAFORM_BIN).plan(
            workspace,
            destroy=run.kind == StackRun.Kind.DESTROY,
            heard=Journal(run, words).heard,
            may_go_on=heartbeat.may_go_on,
        )


def _store(
    lease: Lease[StackSync], run: StackRun, plan: Plan, opened: Opened, words: Words, added: strangers.Additions
) -> None:
    changes, drift = ([read(each, words) for each in found] for found in (plan.changes, plan.drift))
    with transaction.atomic():
        sync = lease.lock()
        if run.kind == StackRun.Kind.CHECK:
            finishing.checked(sync, run, changes, drift, added)
            return
        approved = revision_store.changes_of(run) if run.approved_by else []
        _note(run, plan, changes, drift)
        if plan.is_empty:
            finishing.unchanged(sync, run, plan.outputs)
            return
        if kept := protecting.would_release(run, changes):
            lifecycle.fail(run, protecting.sentence(kept), kept[0])
            return
        _decide(run, changes, approved, opened)


def _note(run: StackRun, plan: Plan, changes: list[Difference], drift: list[Difference]) -> None:
    """The plan, sealed, and what it counts."""
    actions = [change.action for change in changes]
    run.to_add, run.to_change = actions.count("create"), actions.count("update")
    run.to_replace, run.to_delete = actions.count(REPLACE), actions.count("delete")
    run.drifted = len(drift)
    run.plan, run.plan_file = revision_store.seal_plan(changes, drift), seal(plan.file)
    run.plan_digest = hashlib.sha256(plan.file).hexdigest()
    run.planned_at = now()


def _decide(run: StackRun, changes: list[Difference], approved: list[Difference], opened: Opened) -> None:
    resources = sum(len(named) for named in opened.document["resources"].values())
    destroys = run.kind == StackRun.Kind.DESTROY
    if run.approved_by and continues(approved, changes):
        lifecycle.move(run, S.APPROVED, f"The rest of the plan that {run.approved_by} approved.")
    elif not destroys and policies.approves(run.stack.approval, run.revision.actor, changes, resources):
        run.approved_by, run.approved_at = policies.PLATFORM, database_now()
        lifecycle.move(run, S.APPROVED, "Approved by the stack's policy.")
    else:
        run.approved_by, run.approved_at = "", None
        lifecycle.move(run, S.PLANNED)
