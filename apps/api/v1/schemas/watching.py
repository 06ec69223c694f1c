"""SHOW to machines, written down: the audit record."""

from __future__ import annotations

from apps.api.v1.schemas import words


class AuditEntry(words.Shown):
    """One change: who, what, from what, to what, why; `digest` covers this entry and all before it."""

    id = words.ident()
    position = words.whole(1, 2**53, allow_null=True)
    at = words.instant()
    account = words.name()
    actor = words.text(150)
    token = words.text(16)
    action = words.text(40)
    kind = words.text(40)
    object_id = words.whole(1, 2**53, allow_null=True)
    object = words.text(400)
    version = words.whole(1, 2**31, allow_null=True)
    reason = words.text(400)
    before = words.Anything(allow_null=True)
    after = words.Anything(allow_null=True)
    request_id = words.text(64)
    commit = words.text(64)
    pipeline_url = words.text(400)
    digest = words.text(64)
