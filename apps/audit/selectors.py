"""SHOW, the record: who changed what; customers read what happened to objects of their own."""

from __future__ import annotations

from collections.abc import Iterable

from apps.accounts.actors import Actor
from apps.audit.models import Entry


def entries_of(actor: Actor, kind: str, object_id: int, *, limit: int) -> list[Entry]:
    """The newest entries of one object, newest first."""
    rows = Entry.objects.filter(object_kind=kind, object_id=object_id).order_by("-id")
    return list(actor.visible(rows)[:limit])


def entry_of_version(actor: Actor, kinds: Iterable[str], label: str, version: int) -> Entry | None:
    """The entry of the change that made this version of an object, by its label or that of a part of it."""
    rows = Entry.objects.filter(object_kind__in=kinds, object_label__startswith=label, version=version)
    own = (
        row for row in actor.visible(rows.order_by("-id"))[:20] if row.object_label[len(label) :][:1] in ("", "/", " ")
    )
    return next(own, None)
