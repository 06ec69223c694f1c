"""Reading the audit log: who changed what; customers read what happened to objects of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Max, Q, QuerySet

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.core.errors import NotFound

# Id of the request, actor, token.
Change = tuple[str, str, str]
_BATCH = 500
_NEWEST = 2000
_AUTHORS, _AUTHORS_READ, _IDS_COMPARED = 3, 50, 1000


def entries(actor: Actor) -> QuerySet[Entry]:
    """Every entry that the actor may read, newest first."""
    return actor.visible(Entry.objects.select_related("account")).order_by("-id")


def entries_of(actor: Actor, kind: str, object_id: int, *, limit: int) -> list[Entry]:
    """The newest entries of one object, newest first."""
    return list(entries(actor).filter(object_kind=kind, object_id=object_id)[:limit])


def entry_of_version(actor: Actor, kinds: Iterable[str], label: str, version: int) -> Entry | None:
    """The entry of the change that made this version of an object, by its label or that of a part of it."""
    rows = Entry.objects.filter(object_kind__in=kinds, object_label__startswith=label, version=version)
    own = (
        row for row in actor.visible(rows.order_by("-id"))[:20] if row.object_label[len(label) :][:1] in ("", "/", " ")
    )
    return next(own, None)


def version_at_deletion(kind: str, label: str) -> int:
    """The version that the last deletion of an object with this label made, 0 where none was deleted."""
    rows = Entry.objects.filter(object_kind=kind, object_label=label, action="delete")
    return rows.aggregate(last=Max("version"))["last"] or 0


def entries_of_change(actor: Actor, change: str, made_by: Entry | None = None) -> list[Entry]:
    """What the actor itself, or whoever made the entry `made_by`, did in the request with this id, oldest first.

    Raises NotFound where that is nothing, or where the actor may see only a part of it.
    """
    name, token = (made_by.actor, made_by.token) if made_by else (actor.name[:150], actor.token)
    found = _of_change(actor, (change, name, token))
    if not found or not change or (made_by and change_of(made_by) in beyond_sight(actor, [made_by])):
        raise NotFound("There is no such change, or you may not see it.")
    return found


def entries_beside(actor: Actor, entry: Entry) -> list[Entry]:
    """What the request of this entry did, as far as the actor may see it, oldest first; the entry is among it."""
    return _of_change(actor, change_of(entry)) if entry.request_id else [entry]


def _of_change(actor: Actor, change: Change) -> list[Entry]:
    request, name, token = change
    rows = Entry.objects.filter(request_id=request, actor=name, token=token)
    return list(actor.visible(rows.select_related("account").order_by("pk")))


def change_of(entry: Entry) -> Change:
    """What the entries of one request by one maker have in common: callers choose the ids of their requests."""
    return entry.request_id, entry.actor, entry.token


def beyond_sight(actor: Actor, rows: Iterable[Entry]) -> set[Change]:
    """The changes of these entries, and others of their requests, that also did what the actor may not see.

    One query, and none for operators.
    """
    changes = {each.request_id for each in rows if each.request_id}
    if actor.is_operator or not changes:
        return set()
    hidden = Entry.objects.filter(request_id__in=changes).exclude(account=actor.account)
    return set(hidden.order_by().values_list("request_id", "actor", "token").distinct())


def read_so_far() -> dict[str, Any]:
    """Which entries are there, as plain data: all up to the id `to`, but for those `open`, which may be written yet.

    Ids are given before the commit. A transaction that writes while a thousand entries of others come is forgotten.
    """
    ids = list(Entry.objects.order_by("-id").values_list("id", flat=True)[:_IDS_COMPARED])
    return {"to": ids[0], "open": sorted(set(range(ids[-1], ids[0])) - set(ids))} if ids else {"to": 0, "open": []}


def not_read(before: Mapping[str, Any] | None) -> Q:
    """The entries that were not there at a `read_so_far`, or all of them."""
    return Q(id__gt=before["to"]) | Q(id__in=before["open"]) if before else Q()


def since(at: datetime | None) -> Q:
    """The entries after an instant, or all of them."""
    return Q(at__gt=at) if at else Q()


def authors(which: Q, kinds: Iterable[str], deeds: Iterable[str]) -> str:
    """Who changed objects of these kinds in such entries; `deeds` are actions that change nothing."""
    rows = Entry.objects.filter(which, object_kind__in=kinds).exclude(action__in=deeds).order_by("-id")
    names = list(dict.fromkeys(rows.values_list("actor", flat=True)[:_AUTHORS_READ]))
    more = f" and {len(names) - _AUTHORS} more" if len(names) > _AUTHORS else ""
    return (", ".join(names[:_AUTHORS]) + more) or "spillway"


def words_of(actor: Actor) -> dict[str, list[str]]:
    """The kinds and actions that occur in the newest entries, for choosing; asking all of them would cost too much."""
    rows = actor.visible(Entry.objects.order_by("-id")).values_list("object_kind", "action")
    newest = list(rows[:_NEWEST])
    return {"kinds": sorted({kind for kind, _ in newest}), "actions": sorted({action for _, action in newest})}


def in_batches(rows: QuerySet[Entry]) -> Iterator[Entry]:
    """Every row, newest first, a batch in memory at a time; no cursor stays open between batches."""
    while True:
        batch = list(rows[:_BATCH])
        yield from batch
        if len(batch) < _BATCH:
            return
        rows = rows.filter(pk__lt=batch[-1].pk)
