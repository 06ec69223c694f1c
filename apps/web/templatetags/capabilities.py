"""Filters of templates for what targets cannot do with a field: notes beside one, above several, and all anew.

They are written here, since a form has a hundred: a template for each would take longer than the rest of the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.web.capabilities.notes import Note
from apps.web.templatetags.marked import marked

register = template.Library()
NOTE = '<div class="capability" id="{}" data-told="{}" data-refused-values="{}"{}>{}</div>'
NOTHING = SafeString("")
# It takes the place of the one that the page has.
AGAIN = SafeString(' hx-swap-oob="true"')


@register.filter
def notes_beside(bound: Any) -> SafeString:
    """Those that speak of this field alone."""
    notes = getattr(bound.field, "notes", ())
    return SafeString("".join(_note(note) for note in notes if not note.shared)) if notes else NOTHING


@register.filter
def notes_above(fields: Iterable[Any]) -> SafeString:
    """Those that speak of several fields, each once."""
    notes = shared_notes(fields)
    return (
        format_html('<div class="capabilities">{}</div>', SafeString("".join(map(_note, notes)))) if notes else NOTHING
    )


@register.filter
def notes_again(notes: Iterable[Note]) -> SafeString:
    """Those of a whole form, for a page that has them."""
    return SafeString("".join(_note(note, AGAIN) for note in notes))


@register.filter
def shared_notes(fields: Iterable[Any]) -> list[Note]:
    """The notes that stand above these fields: of several groups of a form, above that of the note's first field."""
    here = list(fields)
    notes = {note.id: note for each in here for note in getattr(each.field, "notes", ()) if note.shared}
    return [note for note in notes.values() if _first_in(note, here)]


def _first_in(note: Note, fields: Iterable[Any]) -> bool:
    """Whether its first field is one of these, or one of another form, such as another row."""
    first = note.fields[0]
    return any(each.form is not first.form or each.html_name == first.html_name for each in fields)


def _note(note: Note, attribute: SafeString = NOTHING) -> SafeString:
    lines = format_html_join("", '<p class="hint {}">{}</p>', ((kind, marked(line)) for kind, line in note.lines))
    return format_html(NOTE, note.id, note.state, " ".join(note.values), attribute, lines)
