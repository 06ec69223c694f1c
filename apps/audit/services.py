"""The one way to write the audit log; callers are services, inside the transaction of their change."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.core.requests import change_origin, request_id


def record(  # noqa: PLR0913 - an entry has this many columns, all named by the caller
    *,
    actor: Actor,
    action: str,
    kind: str,
    object_id: int | None,
    label: str,
    account: Account | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    version: int | None = None,
    reason: str = "",
) -> Entry:
    """Add one entry; `action` is create, update, delete or a verb such as roll_back. Callers leave secrets out.

    Request id, commit and pipeline come from the request being served.
    """
    origin = change_origin()
    return Entry.objects.create(
        actor=actor.name[:150],
        token=actor.token,
        account=account or actor.account,
        request_id=request_id(),
        action=action,
        object_kind=kind,
        object_id=object_id,
        object_label=label[:400],
        before=before,
        after=after,
        version=version,
        reason=reason[:400],
        commit=origin.commit,
        pipeline_url=origin.pipeline_url,
    )
