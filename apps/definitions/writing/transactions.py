"""The one transaction of every write; it ends with the rules over all of it and the intent to push."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.actors import Actor
from apps.accounts.hostnames.claims import drop_unused_claims
from apps.core.errors import Conflict, FieldError, Forbidden, Invalid
from apps.definitions.reading.describing import Document, describe
from apps.definitions.reading.documents import Object, read_object
from apps.definitions.writing.change_set import ChangeSet, ScheduledChange, actor_of_schedule
from apps.definitions.writing.kinds.registry import KINDS
from apps.definitions.writing.objects import Change, existing, save
from apps.definitions.writing.rules.assertions import reject_failed_assertions
from apps.definitions.writing.rules.builds import reject_unable
from apps.definitions.writing.rules.emptying import reject_emptying
from apps.definitions.writing.rules.loops import reject_loops
from apps.definitions.writing.rules.managed import managing, said
from apps.definitions.writing.rules.naming import reject_gone
from apps.definitions.writing.rules.quotas import reject_over_quota
from apps.definitions.writing.rules.unsupported import reject_unsupported
from apps.definitions.writing.rules.unsupported_policies import reject_unsupported_policies


@contextmanager
def change_set(actor: Actor, *, reason: str = "", manager: str = "") -> Iterator[ChangeSet]:
    """A transaction that ends with the rules over all of it and the intent: raised generations of all that is affected.

    Workers are woken after commit. Raises Forbidden for viewers, Conflict when somebody made the same thing in the same
    moment, Invalid where the rules find something.
    """
    actor.may_write()
    try:
        with transaction.atomic():
            changes = ChangeSet(actor, reason=reason, manager=manager)
            yield changes
            _finish(changes)
            said().kept.update(changes.kept)
            changes.affected.request_push()
    except IntegrityError as error:
        raise Conflict(
            "Someone changed the same objects at the same time; read them again before you change them."
        ) from error


def _finish(changes: ChangeSet) -> None:
    """What had to wait is done, claims that nobody uses any more are given up.

    Raises Invalid when an account would then have more than its quotas allow.
    """
    changes.deferred.run()
    changes.affected.compare_orders()
    reject_emptying(changes)
    _try_scheduled_changes(changes)
    reject_failed_assertions(changes)
    reject_loops(changes)
    reject_unsupported(changes)
    reject_unsupported_policies(changes)
    reject_unable(changes)
    if changes.affected.released_hostnames:
        drop_unused_claims(ids=changes.affected.released_hostnames)
    reject_gone(changes)
    reject_over_quota(changes)


def _try_scheduled_changes(changes: ChangeSet) -> None:
    """Make each change that a schedule of this transaction would make, as the schedule will, and undo it."""
    field_errors: list[FieldError] = []
    for booked in changes.deferred.scheduled_changes:
        pointer = f"{booked.pointer}/spec/target/change/object"
        wanted = read_object(booked.object, pointer=pointer)
        KINDS[wanted.kind].may_change(changes.actor)
        try:
            with transaction.atomic():
                change_for_schedule(booked, wanted)
                transaction.set_rollback(True)
        except Invalid as invalid:
            field_errors.extend(invalid.field_errors)
        except (Conflict, Forbidden) as error:
            field_errors.append(FieldError(pointer, "refused", error.detail))
    changes.deferred.scheduled_changes.clear()
    if field_errors:
        raise Invalid(field_errors)


def change_for_schedule(
    booked: ScheduledChange, wanted: Object, *, reason: str = ""
) -> tuple[Any, Change, Document | None, tuple[str, ...]]:
    """Save what a schedule holds, with the rights of its account; the row, what changed, what was there before, and
    which fields stay as their owner set them.

    Objects of a pipeline are changed by schedules of the same pipeline only. Call it in a transaction. Raises what
    saving raises.
    """
    actor = actor_of_schedule(booked.owner, booked.schedule)
    wanted = replace(wanted, account=wanted.account or booked.owner.name)
    with managing(), change_set(actor, reason=reason) as changes:  # whatever the request says that stores the schedule
        changes.field_errors.pointer = wanted.pointer
        owner = KINDS[wanted.kind].owner(changes, wanted.account)
        row = existing(changes, wanted.kind, owner, wanted.name)
        changes.manager = booked.manager if row and row.manager == booked.manager else ""
        before = describe(row) if row else None
        row, change = save(changes, wanted)
    return row, change, before, tuple(changes.kept.values())
