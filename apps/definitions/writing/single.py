"""One object is saved or deleted, in a transaction of its own."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.core.errors import there
from apps.definitions.reading.documents import read_object
from apps.definitions.writing.kinds.registry import KINDS
from apps.definitions.writing.objects import delete, existing, save
from apps.definitions.writing.transactions import change_set
from apps.fleet.models import Fleet


def save_object(
    *,
    actor: Actor,
    kind: str,
    name: str,
    spec: object,
    account: str | None = None,
    expected_version: int | None = None,
    create_only: bool = False,
    reason: str = "",
) -> Any:
    """Create or replace one object and return its row.

    `spec` is a plain dict (documents.py). Raises Invalid with pointers below `/spec`, Stale (a Conflict) for
    another `expected_version`, Conflict for an existing object with `create_only`, Managed (a Conflict) for an object
    of a pipeline that the caller is not and does not reach past (writing/rules/managed.py), Forbidden.
    """
    found = read_object({"kind": kind, "name": name, "account": account, "spec": spec})
    with change_set(actor, reason=reason) as changes:
        row, _ = save(changes, found, expected_version=expected_version, create_only=create_only)
    return row


def delete_object(
    *,
    actor: Actor,
    kind: str,
    name: str,
    account: str | None = None,
    expected_version: int | None = None,
    reason: str = "",
) -> list[Fleet]:
    """Delete one object; returns the fleets that lose it. Raises NotFound, Conflict (stale, in use), Forbidden."""
    KINDS[kind].may_change(actor)
    with change_set(actor, reason=reason) as changes:
        owner = KINDS[kind].owner(changes, account)
        row = there(existing(changes, kind, owner, name))
        delete(changes, kind, row, expected_version=expected_version)
    return list(changes.affected.fleets.values())
