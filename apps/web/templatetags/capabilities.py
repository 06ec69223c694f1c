"""A filter of templates: the notes that stand above a group of fields, since they speak of several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import template

register = template.Library()


@register.filter
def shared_notes(fields: Iterable[Any]) -> list[Any]:
    """Each of them once."""
    notes = {note.id: note for each in fields for note in getattr(each.field, "notes", ()) if note.shared}
    return list(notes.values())
