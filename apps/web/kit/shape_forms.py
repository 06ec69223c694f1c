"""The form of a shape, made of its declaration; what is typed in it becomes a document again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict

from apps.definitions.reading.describing import describe
from apps.definitions.shapes.base.fields import NOTHING, Field, fields_of
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.kinds import SHAPES
from apps.web.kit.shape_fields import NAME_HINT, form_field, typed, written

Names = Mapping[str, Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Group:
    """Fields under one heading; one that folds is open where a field of it has a value or an error."""

    title: str
    fields: list[forms.BoundField]
    hint: str = ""
    folds: bool = False
    is_open: bool = True


class DocumentForm(forms.Form):
    """A field for each of a shape that has a label, under its JSON pointer; what is empty is left out.

    `document` holds what is stored, None for something new; its lists of objects have no field and stay as they are.
    `names` are those of objects that a field may name, by the field's name.
    """

    use_required_attribute = False

    def __init__(
        self,
        data: QueryDict | None,
        *,
        shape: type[Shape],
        document: dict[str, Any] | None,
        names: Names,
        pointer: str = "/spec",
    ) -> None:
        self.shape, self.pointer = shape, pointer
        super().__init__(data)
        self.begin_with(document)
        for name, (field, _) in self.shown.items():
            options = [("", "none"), *((row.name, row.name) for row in names.get(field.name, ()))]
            if document is None and field.required and len(options) == 2:  # there is nothing to choose
                self.initial[name] = options[1][0]
            widget = (Checkboxes if field.many else forms.Select)(choices=options[field.many :])
            self.fields[name] = form_field(field, widget if field.name in names else None)

    def begin_with(self, document: dict[str, Any] | None) -> None:
        """Show what a document says; its lists of objects are sent along with what is typed."""
        self.kept = {
            each.name: document[each.name] for each in _lists(self.shape) if document and each.name in document
        }
        self.shown = dict(_shown(self.shape, document, self.pointer))
        self.initial.update({name: _initial(*each) for name, each in self.shown.items() if each[1] is not NOTHING})

    def document(self) -> dict[str, Any]:
        """What was typed, and what has no field."""
        found = dict(self.kept)
        for name in self.shown:
            *parents, field = name.removeprefix(f"{self.pointer}/").split("/")
            target = found
            for parent in parents:
                target = target.setdefault(parent, {})
            if name in self.fields:
                target[field] = typed(self.fields[name], self.cleaned_data[name])
        return found

    def without_defaults(self, found: dict[str, Any]) -> dict[str, Any]:
        """A document without the optional blocks in which everything is as it is without them."""
        kept = dict(found)
        for field in fields_of(self.shape):
            if field.child and field.nullable and _is_default(field.child, found.get(field.name, {})):
                kept.pop(field.name, None)
        return kept

    def folded(self, name: str) -> Group:
        """The fields of a block, closed as long as they say nothing."""
        block = next(field for field in fields_of(self.shape) if field.name == name)
        fields = [self[each] for each in self.fields if each.startswith(f"{self.pointer}/{name}/")]
        is_open = any(each.errors or written(each.value()) != written(each.field.initial) for each in fields)
        return Group(block.about.label, fields, block.about.help, folds=True, is_open=is_open)


class ShapeForm(DocumentForm):
    """The form of a kind; a new object has a name as well.

    `only` says of fields, by their pointer, for which words of the form's choice they are there: `aws google`.
    """

    kind = ""
    only: ClassVar[Mapping[str, str]] = {}

    def __init__(self, data: QueryDict | None, *, stored: Any, names: Names) -> None:
        super().__init__(data, shape=SHAPES[self.kind], document=describe(stored) if stored else None, names=names)
        if stored is None:
            self.fields["/name"] = forms.CharField(label="Name", max_length=63, help_text=NAME_HINT)
            self.order_fields(["/name"])
        for name in self.only.keys() & self.fields.keys():
            chosen: Any = self.fields[name]
            chosen.only = self.only[name]

    def spec(self) -> dict[str, Any]:
        """The document of what was typed."""
        return self.document()


class Checkboxes(forms.CheckboxSelectMultiple):
    """Names of which several may be chosen; as text they stand one per line."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        """The chosen names as lines."""
        return "\n".join(super().value_from_datadict(data, files, name))

    def format_value(self, value: Any) -> list[str]:
        """The lines as names."""
        return str(value or "").splitlines()


def _lists(shape: type[Shape]) -> Iterator[Field]:
    return (field for field in fields_of(shape) if field.child and field.many)


def _is_default(shape: type[Shape], said: Mapping[str, Any]) -> bool:
    return all(said.get(field.name) in (None, field.default) for field in fields_of(shape))


def _initial(field: Field, value: Any) -> Any:
    """What stands in a field at first: a box is ticked by True alone, every other field has text."""
    return value if isinstance(value, bool) and not field.nullable else written(value)


def _shown(shape: type[Shape], document: Any, pointer: str) -> Iterator[tuple[str, tuple[Field, Any]]]:
    """Every field that people set, with what stands in it; NOTHING where there is no such object yet."""
    for field in fields_of(shape):
        value = document.get(field.name) if document else NOTHING
        if field.child and not field.many:
            yield from _shown(field.child, None if value is NOTHING else value, f"{pointer}/{field.name}")
        elif field.about.label and not field.child:
            yield f"{pointer}/{field.name}", (field, value)
