"""DEFINE, inside a write: saves and deletes one object of any kind: compare, check the version, write, record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from apps.accounts.models import Account
from apps.audit import services as audit
from apps.core.errors import Conflict, Stale
from apps.definitions.reading.describing import Document, describe, settled
from apps.definitions.reading.documents import Object
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.registry import KINDS
from apps.definitions.writing.rules.managed import check_manager, reason_of
from apps.definitions.writing.rules.quotas import expect_growth
from apps.definitions.writing.rules.usage import users_of


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
    if before == after:
        return row, change
    row = row or kind.model(name=wanted.name)
    if before is None:
        expect_growth(changes, wanted.kind, owner)
    else:
        _take_version(row)
    row.manager = row.manager or changes.manager
    kind.store(changes, owner, row, wanted.spec)
    after = kind.after_save(changes, row, before, after)
    changes.deferred.saved[wanted.kind][row.pk] = changes.faults.pointer
    changes.lookups.forget(*kind.key(owner, wanted.name))
    action = "update" if before else "create"
    _record(changes, action, wanted.kind, row, owner, before=before, after=after)
    return row, replace(change, action=action, fields=tuple(differences(before or {}, after)))


def _check_version(row: Any, wanted: Object, *, expected_version: int | None, create_only: bool) -> None:
    if row is not None and create_only:
        raise Conflict(f"A {wanted.kind} named {wanted.name} already exists.")
    if expected_version is not None and (row is None or row.version != expected_version):
        detail = f"{wanted.kind} {wanted.name} has changed since you read it; read it again and decide again."
        raise Stale(detail, row.version if row else None)


def _take_version(row: Any) -> None:
    """Raise the version in the database if it is still the one that was read: of two writers one gets it."""
    taken = type(row)._default_manager.filter(pk=row.pk, version=row.version).update(version=row.version + 1)
    if not taken:
        raise Stale("Someone changed this object at the same time; read it again and decide again.")
    row.version += 1


def delete(changes: ChangeSet, kind: str, row: Any, *, expected_version: int | None = None) -> Change:
    """Take one row away, if nobody uses it, and record it."""
    entry = KINDS[kind]
    entry.may_change(changes.actor)
    if expected_version is not None and row.version != expected_version:
        raise Stale(f"{kind} {row.name} has changed since you read it; read it again and decide again.", row.version)
    check_manager(changes, row)
    changes.lookups.track_version(row)
    users = users_of(changes.actor, row)
    if users:
        raise Conflict(f"{kind} {row.name} is in use by {', '.join(users)}.")
    entry.before_delete(changes, row)
    before = describe(row)
    owner = changes.actor.account if entry.platform else row.account
    _take_version(row)
    changes.mark_affected(row)
    _record(changes, "delete", kind, row, owner, before=before)
    row.delete()
    for key in (entry.key(owner, row.name), (kind, row.name), (kind, owner.name, row.name)):
        changes.lookups.forget(*key)
    return Change(kind, entry.account_name(owner), row.name, "delete")


def _record(
    changes: ChangeSet,
    action: str,
    kind: str,
    row: Any,
    owner: Account,
    *,
    before: Document | None = None,
    after: Document | None = None,
) -> None:
    """The entry in the audit record: what is done to a customer stands in the customer's own."""
    entry = KINDS[kind]
    audit.record(
        actor=changes.actor,
        action=action,
        kind=kind,
        object_id=row.pk,
        label=entry.label(owner, row.name),
        account=entry.audit_account(row, owner),
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
