"""Fields of forms, made of the shapes of objects: label, choices, hint, what stands there at first."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from django import forms

from apps.definitions.shapes.base.fields import Field, field_at, fields_of
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.base.words import as_texts

NAME_HINT = "Lowercase letters, digits and hyphens. Used in the API."
LISTS = {"array": "One per line.", "object": "key=value, one per line."}
YES_NO = {"true": "yes", "false": "no"}
# The last word of a number's name → what stands behind the number.
UNITS = {"ms": "ms", "s": "s", "seconds": "s", "minutes": "min", "bytes": "bytes", "mb": "MB", "percent": "%"}
LINES = {"rows": 3, "spellcheck": "false", "class": "mono"}


class Text(forms.CharField):
    """Keeps whatever was typed: services check it, and `required` only tells people.

    `type` is that of the value as JSON Schema has it; an array stands there one entry a line, an object `key=value`.
    """

    type = "string"
    unit = ""
    has_numbers = False

    def validate(self, value: object) -> None:
        """Nothing here."""


def plain_fields(shape: type[Shape], pointer: str) -> dict[str, forms.Field]:
    """A field for each plain value of the shape that people set, under its JSON pointer."""
    shown = [field for field in fields_of(shape) if field.plain and field.about.label]
    return {f"{pointer}/{field.name}": form_field(field) for field in shown}


def offers(kind: str) -> dict[str, str]:
    """Attributes of a text field that names an object of this kind: the list below it is filled from there."""
    return {
        "role": "combobox",
        "aria-autocomplete": "list",
        "aria-expanded": "false",
        "aria-controls": "offers",
        "autocomplete": "off",
        "hx-get": f"/options/{kind}",
        "hx-trigger": "offer, input changed delay:150ms",
        "hx-target": "#offers",
        "hx-swap": "innerHTML",
        "hx-sync": "this:replace",
    }


def account_field(hint: str, **more: Any) -> forms.CharField:
    """The name of an account, which operators choose among all of them."""
    widget = forms.TextInput(attrs=offers("accounts") | {"spellcheck": "false"})
    said: dict[str, Any] = {"label": "Account", "required": False, "help_text": hint, "widget": widget}
    return forms.CharField(**said | more)


def ask_for_owner(form: forms.Form, hint: str = "Default: the operator's account.") -> None:
    """Let operators say whose a new object is: before all else, for what may be chosen below depends on it."""
    form.fields = {"/account": account_field(hint)} | form.fields


def words(shape: type[Shape], name: str) -> dict[str, Any]:
    """Label and hint of a field for a form that has widgets of its own; the document says what must be there."""
    about = field_at(shape, name).about
    return {"label": about.label, "help_text": about.help if about.hint is None else about.hint, "required": False}


def form_field(field: Field, widget: forms.Widget | None = None) -> forms.Field:
    """The field of one value; a closed list is a choice, what may stay empty is optional."""
    labels, schema = (field.grammar.labels, field.grammar.schema) if field.grammar else (None, {})
    type_of = "array" if field.many else schema.get("type", "string")
    hint = field.about.help if field.about.hint is None else field.about.hint
    default = None if field.required else field.default
    if type_of == "boolean" and not field.nullable:
        return forms.BooleanField(label=field.about.label, required=False, help_text=hint, initial=default)
    if field.nullable and (labels or type_of == "boolean"):
        labels = {"": "not set"} | dict(labels or YES_NO)
    if labels:
        widget = widget or forms.Select(choices=list(labels.items()))
    elif type_of in ("integer", "number"):
        widget = widget or forms.TextInput(attrs={"inputmode": "numeric" if type_of == "integer" else "decimal"})
    elif type_of in LISTS and widget is None:
        widget, hint = forms.Textarea(attrs=LINES), f"{LISTS[type_of]} {hint}"
    made = Text(
        label=field.about.label,
        initial=next(iter(labels)) if labels and not field.many else written(default or None) or None,
        help_text=hint,
        required=field.required or bool(default),
        widget=widget,
    )
    made.type = type_of
    if type_of in ("integer", "number") and not field.many:
        made.unit = UNITS.get(field.name.rpartition("_")[2], "")
        made.label, made.help_text = _without_unit(str(made.label), hint, made.unit)
    made.has_numbers = field.many and schema.get("type") == "integer"
    return made


def _without_unit(label: str, hint: str, unit: str) -> tuple[str, str]:
    """Label and hint as they are beside a field that says the unit itself."""
    if not unit:
        return label, hint
    label = re.sub(rf"(?:, (?:{re.escape(unit)}|seconds)| \({re.escape(unit)}\))$", "", label)
    return label, re.sub(rf"^(?:{re.escape(unit)}|Seconds|Bytes)(?:\. ?|$)", "", hint)


def typed(field: forms.Field, text: Any) -> Any:
    """A number where one is wanted and was typed, None where nothing was typed, else the text as it is."""
    if not isinstance(field, Text):
        return text
    if field.type in LISTS:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if field.has_numbers:
            return [as_number(line) for line in lines] or None
        return (pairs(lines) if field.type == "object" else lines) or None
    text = text.strip().replace("\r\n", "\n")
    if field.type == "boolean":
        return {"true": True, "false": False}.get(text)
    return as_number(text) if field.type in ("integer", "number") and text else text or None


def as_number(text: str) -> float | str:
    """The number where one was typed, whole or with a decimal point, else the text, for the document to refuse."""
    if re.fullmatch(r"-?[0-9]{1,12}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?[0-9]{1,12}\.[0-9]{1,30}", text) else text


def pairs(entries: list[str]) -> dict[str, str] | list[str]:
    """Key → value; the entries as they are where two have one key, for the document to refuse."""
    found = {key.strip(): value.strip() for key, _, value in (entry.partition("=") for entry in entries)}
    return found if len(found) == len(entries) else entries


def written(value: object) -> str:
    """A value as text; nothing for none and for an empty list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        value = as_texts(value)
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    if isinstance(value, float):
        # All of its digits and no exponent: it is stored as it is read here, whatever else is changed.
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return "" if value is None else str(value)
