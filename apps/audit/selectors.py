"""SHOW, the record: who changed what; customers read what happened to objects of their own."""

from __future__ import annotations

from apps.accounts.actors import Actor
from apps.audit.models import Entry


def entries_of(actor: Actor, kind: str, object_id: int, *, limit: int) -> list[Entry]:
    """The newest entries of one object, newest first."""
    rows = Entry.objects.filter(object_kind=kind, object_id=object_id).order_by("-id")
    return list(actor.visible(rows)[:limit])
