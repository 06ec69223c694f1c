"""The form of a kind, made of its shape; what is typed in it becomes a document again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from apps.definitions.reading.describing import describe
from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.kinds import SHAPES
from apps.web.kit.shape_fields import NAME_HINT, form_field, typed, written


class ShapeForm(forms.Form):
    """A field for each of the shape that has a label, under its JSON pointer; what is empty is left out.

    `names` are those of objects that a field may name, by the field's name.
    """

    use_required_attribute = False
    kind = ""

    def __init__(self, data: QueryDict | None, *, stored: Any, names: Mapping[str, Iterable[Any]]) -> None:
        self.shown = dict(_shown(SHAPES[self.kind], describe(stored) if stored else {}, "/spec"))
        super().__init__(data, initial={name: written(value) for name, (_, value) in self.shown.items() if stored})
        if stored is None:
            self.fields["/name"] = forms.CharField(label="Name", max_length=63, help_text=NAME_HINT)
        for name, (field, _) in self.shown.items():
            options = [("", "none"), *((row.name, row.name) for row in names.get(field.name, ()))]
            self.fields[name] = form_field(field, forms.Select(choices=options) if field.name in names else None)

    def spec(self) -> dict[str, Any]:
        """The document of what was typed."""
        found: dict[str, Any] = {}
        for name in self.shown:
            *parents, field = name.removeprefix("/spec/").split("/")
            target = found
            for parent in parents:
                target = target.setdefault(parent, {})
            if name in self.fields:
                target[field] = typed(self.fields[name], self.cleaned_data[name])
        return found


def _shown(shape: type[Shape], document: Any, pointer: str) -> Iterator[tuple[str, tuple[Field, Any]]]:
    """Every field that people set, with what stands in it."""
    for field in fields_of(shape):
        value = (document or {}).get(field.name)
        if field.child and not field.many:
            yield from _shown(field.child, value, f"{pointer}/{field.name}")
        elif field.about.label and not field.child:
            yield f"{pointer}/{field.name}", (field, value)
