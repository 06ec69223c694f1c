"""DEFINE, inside a write: a part of an object changes (a limit, a server, a drain) as the whole object does.

One lock, the version that the sender saw, the manager, the next version, the audit entry.
"""

from __future__ import annotations

from typing import Any

from django.db.models import F

from apps.accounts.models import Account
from apps.audit import services as audit
from apps.core.errors import Stale
from apps.definitions.reading.describing import KIND_OF_MODEL, Document
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.rules.managed import check_manager, reason_of


def hold(row: Any, expected_version: int | None = None) -> Any:
    """The row of now, once others that change this object are done. Raises Stale for a version that it has not."""
    rows = type(row)._default_manager.select_for_update(of=("self",)).only("name", "version", "manager")
    held = rows.get(pk=row.pk)
    if expected_version is not None and held.version != expected_version:
        word = KIND_OF_MODEL[type(row)]
        raise Stale(f"{word} {row.name} has changed since you read it; read it again and decide again.", held.version)
    return held


def take(changes: ChangeSet, row: Any, expected_version: int | None = None) -> None:
    """As `hold`, for who manages the object, or reaches past who does."""
    check_manager(changes, hold(row, expected_version))


def note(  # noqa: PLR0913 - an entry of the record has this many parts, all named by the caller
    changes: ChangeSet,
    row: Any,
    *,
    before: Document,
    after: Document,
    kind: str = "",
    part: Any = None,
    label: str = "",
    action: str = "update",
    account: Account | None = None,
) -> None:
    """Raise the version of an object that this transaction holds (`take`), and record what became of the part.

    Without a `part` the entry is the object's own.
    """
    type(row)._default_manager.filter(pk=row.pk).update(version=F("version") + 1)
    row.refresh_from_db(fields=("version",))
    audit.record(
        actor=changes.actor,
        action=action,
        kind=kind or KIND_OF_MODEL[type(row)],
        object_id=(part or row).pk,
        label=label or row.name,
        account=account,
        before=before,
        after=after,
        version=row.version,
        reason=reason_of(changes, row),
    )
