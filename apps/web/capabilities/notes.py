"""Notes beside the fields of a form, from the table of capabilities: what a target refuses is greyed, with the reason.

A field that has a value is never greyed, so that the value can be taken away; what works with loss is only said. A note
has a place of its own in the page: when it changes, the field's place and what was typed in it stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, cast

from django import forms

from apps.definitions.previewing.capabilities import Row, Standing, Told, may_differ, rows_of, told_of
from apps.web.kit.shape_fields import written

# The row that a page copies when one is added.
SPARE = "__prefix__"
# What rows say, whatever field they are of.
_SAID: dict[Row, int] = {}
# Attributes of the fields on which it depends where an object stands: the page asks again when one changes.
LEADS = {
    "hx-post": "?partial=capabilities",
    "hx-trigger": "change",
    "hx-include": "closest form",
    "hx-swap": "none",
    "hx-sync": "this:replace",
}
Named = tuple[forms.BoundField, str]
Line = tuple[str, str]


class _Choices(forms.Select):
    """A choice of which some options are greyed, unless they are chosen."""

    refused: frozenset[str] = frozenset()

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """One option."""
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        if str(value) in self.refused and not option["selected"]:
            option["attrs"]["disabled"] = True
        return option


@dataclass(slots=True)
class Note:
    """What is said of fields of which the table says the same, or of the values of one field."""

    id: str
    rows: list[Row]
    whole: bool = False  # it speaks of a block, and need not name its fields
    fields: list[forms.BoundField] = field(default_factory=list)
    told: list[tuple[Row, Told]] = field(default_factory=list)
    kept: bool = False

    @property
    def shared(self) -> bool:
        """Whether it stands above several fields instead of beside one."""
        return len(self.fields) > 1 or SPARE in self.fields[0].html_name

    @property
    def refused(self) -> bool:
        """Whether a target refuses the fields themselves."""
        return any(told.refused for row, told in self.told if not row.value)

    @property
    def state(self) -> str:
        """`greyed`, or `kept` for what has a value; empty for what may be set."""
        return ("kept" if self.kept else "greyed") if self.refused else ""

    @property
    def values(self) -> list[str]:
        """The values that a target refuses."""
        return [row.value for row, told in self.told if row.value and told.refused]

    @property
    def lines(self) -> list[Line]:
        """Kind and text of each sentence; what to do instead is said where something must be done."""
        said: dict[Told, list[str]] = {}
        for row, told in self.told:
            said.setdefault(told, []).append(f"“{self._label(row.value)}”" if row.value else "")
        names = [] if self.whole or not self.shared else dict.fromkeys(str(each.label) for each in self.fields)
        found = []
        for told, values in said.items():
            about = ", ".join(filter(None, values) if any(values) else names)
            text = " ".join(filter(None, [told.refused, told.remedy if self.kept else ""])) or told.lost
            if text:
                kind = ("kept" if self.kept else "refused") if told.refused else "lost"
                found.append((kind, f"{about}: {text}" if about else text))
        return found

    def _label(self, value: str) -> str:
        choices = cast("Any", self.fields[0].field.widget).choices
        return next((str(label) for each, label in choices if str(each) == value), value).partition(":")[0]


def path_of(pointer: str) -> str:
    """The field of the table that a pointer in a document names: `/spec/backends/0/limit/kind`, `backends.limit.kind`.

    Empty for what is no part of the definition.
    """
    if not pointer.startswith("/spec/"):
        return ""
    parts = pointer.removeprefix("/spec/").split("/")
    return ".".join(part for part in parts if part != SPARE and not part.isdecimal())


def note_fields(
    kind: str, named: Iterable[Named], standings: Sequence[Standing], *, tcp: bool = False, alone: bool = False
) -> list[Note]:
    """Grey the fields of a form, each with its path in the table, and say why; the notes, for a page that asks again.

    `alone`: the form speaks of one load balancer, which need not be named.
    """
    notes = _notes(kind, [(each, path) for each, path in named if path])
    for note in notes:
        note.told = [(row, told_of(row, standings, tcp=tcp, alone=alone)) for row in note.rows]
        note.kept = any(map(_has_value, note.fields)) if note.refused else _has_any(note.fields, note.values)
    for note in notes:
        note.kept = note.kept or (note.refused and any(_holds(other, note) for other in notes))
        for each in note.fields:
            _mark(each, note)
    _forget_twice_said(notes)
    return notes


def _notes(kind: str, named: Sequence[Named]) -> list[Note]:
    """A note for all fields of a part of the form of which the table says the same, and one for a field's values."""
    blocks = {row.field for _, path in named for row in rows_of(kind, path) if row.field != path}
    found: dict[tuple[str, int], Note] = {}
    for bound, path in named:
        own, said, values = _rows(kind, path)
        if own:
            part = own.field if own.field in blocks else own.field.rpartition(".")[0]
            if (part, said) not in found:
                found[part, said] = Note(_id_of(own.field), [own], own.field in blocks)
            found[part, said].fields.append(bound)
        if values:
            found.setdefault((path, -1), Note(_id_of(f"{path}.values"), values)).fields.append(bound)
    return list(found.values())


@cache
def _rows(kind: str, path: str) -> tuple[Row | None, int, list[Row]]:
    """The row of a field with a number for what it says, and those of its values: of any that some target minds."""
    rows = [row for row in rows_of(kind, path) if may_differ(row)]
    own = next((row for row in rows if not row.value), None)
    said = _SAID.setdefault(replace(own, field=""), len(_SAID)) if own else -1
    return own, said, [row for row in rows if row.value]


@cache
def _id_of(path: str) -> str:
    return f"told-{re.sub('[^a-z0-9]+', '-', path)}"


def _has_value(bound: forms.BoundField) -> bool:
    """Whether it says something else than by default; a row that was removed says nothing."""
    value, default = bound.value(), bound.field.initial
    if "DELETE" in bound.form.fields and bound.form["DELETE"].value():
        return False
    if isinstance(bound.field, forms.BooleanField):
        return bool(value) and not default
    return bool(value) and written(value) != written(default)


def _has_any(fields: Iterable[forms.BoundField], values: Sequence[str]) -> bool:
    return any(str(each.value()) in values for each in fields)


def _holds(other: Note, note: Note) -> bool:
    """Whether the other note is of an object, refused and there, that these fields are part of."""
    return other.refused and other.kept and note.rows[0].field.startswith(f"{other.rows[0].field}.")


def _mark(bound: forms.BoundField, note: Note) -> None:
    """Greyed where it is, and read out with the note."""
    made, attributes = cast("Any", bound.field), bound.field.widget.attrs
    made.notes = [*getattr(made, "notes", ()), note]
    hint = f"{bound.auto_id}_helptext" if bound.help_text else ""
    attributes["aria-describedby"] = f"{attributes.get('aria-describedby', hint)} {note.id}".strip()
    if note.state == "greyed":
        attributes["disabled"] = True
    if any(row.value for row in note.rows):
        made.widget = _Choices(attributes, choices=list(made.widget.choices))
        made.widget.refused = frozenset(note.values)


def _forget_twice_said(notes: Iterable[Note]) -> None:
    """Values of which nothing else is said than of the field itself."""
    said = [(row, told) for note in notes for row, told in note.told if not row.value and told != Told()]
    for note in notes:
        if note.rows[0].value:
            for at, (value, told) in enumerate(note.told):
                if any(row.covers(value.field) and told == own for row, own in said):
                    note.told[at] = value, Told()
