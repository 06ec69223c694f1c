"""Inside a write: one object is saved, whole or in part, or deleted: version, manager, change, record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit import services as audit
from apps.audit.selectors import version_at_deletion
from apps.core.errors import Conflict, Stale
from apps.definitions.reading.describing import Document, describe, settled
from apps.definitions.reading.documents import Object
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.contract import Kind
from apps.definitions.writing.kinds.registry import KINDS
from apps.definitions.writing.rules.managed import check_manager, reason_of
from apps.definitions.writing.rules.quotas import expect_growth
from apps.definitions.writing.rules.usage import users_of

SAME_TIME = "Someone changed this object at the same time; read it again before you change it."


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs: `path` is a JSON pointer into the spec."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Change:
    """What happened (or would happen) to one object: create, update, delete or unchanged, field by field."""

    kind: str
    account: str
    name: str
    action: str
    fields: tuple[FieldChange, ...] = ()


def existing(changes: ChangeSet, kind: str, owner: Account, name: str) -> Any:
    """The row of an object by its identity, None when there is none."""
    entry = KINDS[kind]

    def look_up() -> Any:
        rows = entry.rows(changes.actor).filter(name=name)
        return (rows if entry.platform else rows.filter(account=owner)).first()

    return changes.lookup(entry.key(owner, name), look_up)


def save(
    changes: ChangeSet, wanted: Object, *, expected_version: int | None = None, create_only: bool = False
) -> tuple[Any, Change]:
    """Store one object that was read; nothing happens to an object that is already as wanted.

    1. Who owns it, and may the actor do this?
    2. What is there? The version that the sender saw must still be it.
    3. Equal documents: unchanged, no new version, no push.
    4. Take the version (a stale one takes nothing), store, record.
    """
    kind = KINDS[wanted.kind]
    kind.may_change(changes.actor)
    owner = kind.owner(changes, wanted.account)
    row = existing(changes, wanted.kind, owner, wanted.name)
    _check_version(row, wanted, expected_version=expected_version, create_only=create_only)
    wanted = kind.wanted(changes, row, wanted)
    before = describe(row) if row else None
    after = kind.comparable(settled(before, wanted.spec), owner)
    check_manager(changes, row)
    change = Change(wanted.kind, kind.account_name(owner), wanted.name, "unchanged")
    if before == after and not kind.brings_secrets(row, wanted.spec):
        return row, change
    row = row or _new(kind, owner, wanted.name)
    if before is None:
        expect_growth(changes, wanted.kind, owner)
    else:
        _take_version(row)
    row.manager = row.manager or changes.manager
    kind.store(changes, owner, row, wanted.spec)
    after = kind.after_save(changes, row, before, after)
    changes.deferred.saved[wanted.kind][row.pk] = changes.field_errors.pointer
    changes.deferred.before[wanted.kind].setdefault(row.pk, before)
    changes.lookups.forget(*kind.key(owner, wanted.name))
    action = "update" if before else "create"
    _record(changes, action, row, before=before, after=after)
    return row, replace(change, action=action, fields=tuple(differences(before or {}, after)))


def _new(kind: Kind, owner: Account, name: str) -> Any:
    """A row that goes on counting where an object of the same name was deleted, so that no version names two of them.

    Else whoever read the former one could overwrite this one without having seen it.
    """
    return kind.model(name=name, version=version_at_deletion(kind.model.__name__, kind.label(owner, name)) + 1)


def _check_version(row: Any, wanted: Object, *, expected_version: int | None, create_only: bool) -> None:
    if row is not None and create_only:
        raise Conflict(f"A {wanted.kind} named {wanted.name} already exists.")
    _expect_version(wanted.kind, wanted.name, row, expected_version)


def _expect_version(kind: str, name: str, row: Any, expected: int | None) -> None:
    """Raise Stale where the row is not in the version that the sender saw, if one was sent."""
    if expected is not None and (row is None or row.version != expected):
        detail = f"{kind} {name} has changed since you read it; read it again before you change it."
        raise Stale(detail, row.version if row else None)


def _take_version(row: Any) -> None:
    """Raise the version in the database if it is still the one that was read: of two writers one gets it."""
    taken = type(row)._default_manager.filter(pk=row.pk, version=row.version).update(version=row.version + 1)
    if not taken:
        raise Stale(SAME_TIME)
    row.version += 1


def _take_to_delete(row: Any) -> None:
    """The same for a row that goes: nobody names or changes it from now on."""
    rows = type(row)._default_manager.select_for_update().filter(pk=row.pk, version=row.version)
    if not rows.order_by().values_list("pk"):
        raise Stale(SAME_TIME)
    row.version += 1


def delete(changes: ChangeSet, kind: str, row: Any, *, expected_version: int | None = None) -> Change:
    """Take one row away, if nobody uses it, and record it.

    The row is held first: whoever names it meanwhile waits, and finds it gone, or is among those that use it.
    """
    entry = KINDS[kind]
    entry.may_change(changes.actor)
    _expect_version(kind, row.name, row, expected_version)
    check_manager(changes, row)
    changes.lookups.track_version(row)
    _take_to_delete(row)
    users = users_of(changes.actor, row)
    if users:
        raise Conflict(f"{kind} {row.name} is in use by {', '.join(users)}.")
    entry.before_delete(changes, row)
    before = describe(row)
    owner = changes.actor.account if entry.platform else row.account
    changes.mark_affected(row)
    _record(changes, "delete", row, before=before)
    changes.lookups.named[entry.model].pop(row.pk, None)
    row.delete()
    for key in (entry.key(owner, row.name), (kind, row.name), (kind, owner.name, row.name)):
        changes.lookups.forget(*key)
    return Change(kind, entry.account_name(owner), row.name, "delete")


@dataclass(frozen=True, slots=True)
class Part:
    """A row of its own within an object (a server, a backend), as the audit log names it."""

    kind: str
    row: Any
    label: str


def hold(changes: ChangeSet, row: Any, expected_version: int | None = None) -> Any:
    """The row of now, once others that change this object are done. Raises Stale for a version that it has not."""
    rows = type(row)._default_manager.select_for_update(of=("self",)).only("name", "version", "manager", "account")
    held = changes.lookup(("held", type(row), row.pk), lambda: rows.get(pk=row.pk))
    _expect_version(type(row).__name__, row.name, held, expected_version)
    return held


def hold_object(*, actor: Actor, row: Any) -> str:
    """Keep others from changing an object until the end of the transaction, for work on it that goes on later.

    Returns whose pipeline manages it, blank for none. Raises Managed where somebody else wants to begin.
    """
    changes = ChangeSet(actor)
    held = hold(changes, row)
    check_manager(changes, held)
    return str(held.manager)


def save_partial(
    changes: ChangeSet,
    row: Any,
    patch: Callable[[], tuple[Document, Document]],
    *,
    part: Part | None = None,
    action: str = "update",
    managed: bool = True,
) -> None:
    """Change a part of an object (a limit, a server, a drain) as the whole object changes, so that no path is another.

    1. Hold the object; whoever was sent its version has held it already (`hold`).
    2. Who manages it? Without `managed` the part is nobody's.
    3. `patch` changes the part, marks what is affected, and answers how it was and is.
    4. Take the version, record.
    """
    held = hold(changes, row)
    if managed:
        check_manager(changes, held)
    before, after = patch()
    if before == after:
        return
    row.version, row.manager = held.version, held.manager
    _take_version(row)
    changes.lookups.forget("held", type(row), row.pk)
    _record(changes, action, row, part=part, before=before, after=after)


def _record(
    changes: ChangeSet,
    action: str,
    row: Any,
    *,
    part: Part | None = None,
    before: Document | None = None,
    after: Document | None = None,
) -> None:
    """The entry in the audit log: what is done to a customer stands in the customer's own."""
    kind = KINDS[type(row).__name__]
    owner = changes.actor.account if kind.platform else row.account
    audit.record(
        actor=changes.actor,
        action=action,
        kind=part.kind if part else type(row).__name__,
        object_id=part.row.pk if part else row.pk,
        label=part.label if part else kind.label(owner, row.name),
        account=kind.audit_account(row, owner),
        before=before,
        after=after,
        version=row.version,
        reason=reason_of(changes, row),
    )


def differences(before: Any, after: Any, path: str = "") -> list[FieldChange]:
    """The fields that differ, deepest first named: objects field by field, lists entry by entry when equally long."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*after, *(key for key in before if key not in after)]
        return [change for key in keys for change in differences(before.get(key), after.get(key), f"{path}/{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            change
            for index, (old, new) in enumerate(zip(before, after, strict=True))
            for change in differences(old, new, f"{path}/{index}")
        ]
    return [] if before == after else [FieldChange(path or "/", before, after)]
