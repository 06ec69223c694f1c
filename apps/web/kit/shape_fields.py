"""SHOW to people: fields of forms, made of the shapes of objects: label, choices, hint, what stands there at first."""

from __future__ import annotations

import re
from typing import Any

from django import forms

from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.shape import Shape


class Text(forms.CharField):
    """Keeps whatever was typed: services judge it, and `required` only tells people; `whole` of a whole number."""

    whole = False

    def validate(self, value: object) -> None:
        """Nothing here."""


def plain_fields(shape: type[Shape], place: str) -> dict[str, forms.Field]:
    """A field for each plain value of the shape that people set, under its JSON pointer."""
    shown = [field for field in fields_of(shape) if field.plain and field.about.label]
    return {f"{place}/{field.name}": form_field(field) for field in shown}


def form_field(field: Field, widget: forms.Widget | None = None) -> Text:
    """The field of one value; a closed list is a choice, what may stay empty is optional."""
    labels, schema = (field.grammar.labels, field.grammar.schema) if field.grammar else (None, {})
    whole = schema.get("type") == "integer"
    hint, default = field.about.hint, None if field.required else field.default
    if labels:
        widget = widget or forms.Select(choices=list(labels.items()))
    elif whole:
        widget = widget or forms.TextInput(attrs={"inputmode": "numeric"})
    made = Text(
        label=field.about.label,
        initial=next(iter(labels)) if labels else written(default or None) or None,
        help_text=field.about.help if hint is None else hint,
        required=field.required or bool(default),
        widget=widget,
    )
    made.whole = whole
    return made


def typed(field: forms.Field, text: str) -> Any:
    """A number where one is wanted and was typed, None where nothing was typed, else the text as it is."""
    whole = isinstance(field, Text) and field.whole
    return int(text) if whole and re.fullmatch(r"[0-9]{1,12}", text) else text or None


def written(value: object) -> str:
    """A value as text; nothing for none and for an empty list."""
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None or value == () else str(value)
