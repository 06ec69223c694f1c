"""The step for clouds: what is desired becomes a numbered revision and a run, or a sentence why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.audit.selectors import authors, since
from apps.compiler.compile import Compilation, CompileError, compile_stack
from apps.compiler.targets.terraform.document import StackDocument
from apps.compiler.targets.terraform.pem import secrets_of
from apps.core.clock import database_now
from apps.core.concurrency.leases import Lease
from apps.core.events import publish_after_commit
from apps.core.secrets.sealing import Unsealable
from apps.definitions.freezing.frozen_traffic import TRAFFIC_KINDS
from apps.definitions.freezing.stack_snapshot import freeze_stack
from apps.fleet.models import Stack
from apps.stacks.models import StackRun, StackSync, StateVersion
from apps.stacks.run import lifecycle
from apps.stacks.run.states import S
from apps.stacks.state import revision_store

PRUNE_EVERY = 20
# Who defines what a stack is made of; the rest of the audit log says what people did with runs.
DEFINED = (*TRAFFIC_KINDS, "BackendWeight", "CloudAccount", "Record", "Stack", "Zone")
DEEDS = ("plan", "destroy", "unlock", "check", "read_state")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A stack's definitions as its cloud would be given them, and the generation that they answer."""

    compilation: Compilation[StackDocument]
    secrets: Mapping[str, str]
    labels: Mapping[str, str]
    generation: int


def compiled(stack_id: int) -> Compiled:
    """Freeze and compile. Raises CompileError, Unsealable."""
    snapshot, generation = freeze_stack(stack_id)
    compilation = compile_stack(snapshot)
    secrets = secrets_of(snapshot.certificates, compilation.output.variables)
    return Compiled(compilation, secrets, revision_store.labels_in(snapshot), generation)


def must_compile(stack_id: int) -> bool:
    """Whether something was desired that was not compiled yet."""
    row = Stack.objects.filter(pk=stack_id).values_list("desired_generation", "sync__compiled_generation").first()
    desired, done = row or (0, 0)
    return bool(desired > (done or 0))


def is_waiting(lease: Lease[StackSync]) -> bool:
    """Whether more changes are waited for: the first one starts the wait, so that it always ends."""
    with transaction.atomic():
        sync, instant = lease.lock(), database_now()
        if sync.wait_until is None:
            sync.wait_until = instant + timedelta(seconds=settings.STACK_COALESCE_S)
            sync.save(update_fields=("wait_until",))
        return bool(instant < sync.wait_until)


def compile_now(lease: Lease[StackSync], stack_id: int) -> None:
    """Compile what is desired; raises LeaseLost when somebody else works on the stack now.

    1. What cannot be compiled is written down and not tried again before something changes.
    2. Equal to what is wanted already: unchanged, nobody is disturbed.
    3. Else a new revision is wanted; its run takes the place of what is under way.
    """
    asked = Stack.objects.values_list("desired_generation", flat=True).get(pk=stack_id)
    try:
        found = compiled(stack_id)
    except (CompileError, Unsealable) as error:
        _note_error(lease, stack_id, asked, str(error))
        return
    with transaction.atomic():
        sync = lease.lock()
        sync.compiled_generation, sync.compile_error, sync.wait_until = found.generation, "", None
        wanted = sync.wanted
        if wanted is None or wanted.digest != revision_store.digest_of(found.compilation, found.secrets):
            _want(sync, found)
        sync.save(update_fields=("compiled_generation", "compile_error", "wait_until", "wanted"))
        publish_after_commit("stacks", id=stack_id)


def _note_error(lease: Lease[StackSync], stack_id: int, asked: int, message: str) -> None:
    """`asked` was desired before it was frozen: what is desired since then may compile, and is tried."""
    with transaction.atomic():
        sync = lease.lock()
        sync.compiled_generation = asked
        sync.compile_error, sync.wait_until = message[:2000], None
        sync.save(update_fields=("compiled_generation", "compile_error", "wait_until"))
        publish_after_commit("stacks", id=stack_id)


def _want(sync: StackSync, found: Compiled) -> None:
    before = sync.wanted
    if before is not None and before.number % PRUNE_EVERY == 0:
        revision_store.prune(sync.stack_id)
    document = found.compilation.output.as_json()
    earlier = revision_store.open_revision(before).document if before else {}
    revision = revision_store.store(
        stack_id=sync.stack_id,
        generation=found.generation,
        compilation=found.compilation,
        secrets=found.secrets,
        labels=found.labels,
        summary=summarise(earlier, document, found.labels),
        actor=authors(since(before.created_at if before else None), DEFINED, DEEDS),
    )
    sync.wanted = revision
    under_way = lifecycle.open_run(sync.stack_id)
    if under_way is not None and under_way.kind != StackRun.Kind.DESTROY:
        lifecycle.move(under_way, S.SUPERSEDED, f"Revision {revision.number} replaced it.")
        under_way = None
    stands = sync.applied is not None or StateVersion.objects.filter(stack_id=sync.stack_id).exists()
    if under_way is None and (document["resources"] or stands):
        lifecycle.begin(revision=revision, kind=StackRun.Kind.CHANGE, actor=revision.actor)


def summarise(before: Mapping[str, Any], after: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """The first object that differs, and how many more do."""
    old, new = revision_store.resources_by_address(before), revision_store.resources_by_address(after)
    if not before:
        return f"First revision: {len(new)} resources."
    owners = {**before.get("owners", {}), **after["owners"]}
    touched = [address for address in dict.fromkeys([*new, *old]) if old.get(address) != new.get(address)]
    names = list(dict.fromkeys(labels.get(owners.get(each, ""), owners.get(each, each)) for each in touched))
    if not names:
        return "Secrets or settings of the stack."
    return f"{names[0]} changed" + (f" (and {len(names) - 1} more)." if len(names) > 1 else ".")
