"""Changes as rows: what one write did to its objects, in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.audit.selectors import beyond_sight, change_of, entries
from apps.definitions.services import differences
from apps.web.accounts.audit_words import kind_of, word_of
from apps.web.kit.undoing import WHOLE, reverts

SAID = 3
LONGEST = 40
PARTS = ("Backend", "Server")
READ = 6  # entries that are read for each change that is shown


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One write: its newest entry, what it is called, which fields differ, and whether it can be taken back."""

    entry: Entry
    title: str
    fields: tuple[str, ...]
    others: int
    reverts: bool

    @property
    def short(self) -> str:
        """The name alone, for a mark in a chart."""
        return self.entry.object_label.rpartition("/")[2]

    @property
    def part(self) -> bool:
        """Whether it is of a part of an object, a limit or a server, which has no version that people know."""
        return self.entry.object_kind in PARTS

    @property
    def url(self) -> str:
        """Its page."""
        return reverse("web:change", args=[self.entry.pk])


def latest_changes(actor: Actor, most: int, before: str = "") -> tuple[list[ChangeRow], int | None]:
    """The newest writes below the entry `before`, newest first; and the entry to go on below, None at the end."""
    rows = entries(actor).filter(object_kind__in=WHOLE).exclude(action="impersonate")  # which changes nothing
    if before.isascii() and before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: READ * most])
    groups = grouped(found)
    shown = groups[:most]
    more = len(groups) > most or len(found) == READ * most
    return rows_of(actor, shown), shown[-1][-1].pk if shown and more else None


def grouped(found: Iterable[Entry]) -> list[list[Entry]]:
    """Entries of one request by one maker, in the order in which the first of each came."""
    groups: dict[Any, list[Entry]] = {}
    for entry in found:
        key = change_of(entry) if entry.request_id else entry.pk
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def rows_of(actor: Actor, groups: Sequence[Sequence[Entry]]) -> list[ChangeRow]:
    """Changes in words, each of its entries. One query, and none for operators.

    What also changed objects of others can be reverted by who sees them all.
    """
    shared = beyond_sight(actor, [group[0] for group in groups])
    return [
        ChangeRow(
            first,
            title_of(first),
            fields_of(first),
            len(group) - 1,
            reverts(actor, group) and change_of(first) not in shared,
        )
        for group in groups
        for first in group[:1]
    ]


def title_of(entry: Entry) -> str:
    """`Pool acme/shop changed`; a limit and a server are named by what they belong to."""
    kind = {"Backend": "Limit of"}.get(entry.object_kind, kind_of(entry.object_kind))
    return f"{kind} {entry.object_label} {word_of(entry.action)}"


def fields_of(entry: Entry) -> tuple[str, ...]:
    """The first fields that an update changed: `limit, value: 12 → 10`."""
    if entry.action in ("create", "delete") or entry.before is None or entry.after is None:
        return ()
    found = differences(entry.before, entry.after)
    said = [f"{_field(each.path)}: {_value(each.before)} → {_value(each.after)}" for each in found[:SAID]]
    return (*said, f"and {len(found) - SAID} more") if len(found) > SAID else tuple(said)


def _field(path: str) -> str:
    return ", ".join(step.replace("_", " ") for step in path.strip("/").split("/") if not step.isdecimal()) or "all"


def _value(value: Any) -> str:
    if value in (None, "", [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        text = ", ".join(f"{key.replace('_', ' ')} {_value(each)}" for key, each in value.items())
    elif isinstance(value, list):
        text = ", ".join(map(_value, value))
    else:
        text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
