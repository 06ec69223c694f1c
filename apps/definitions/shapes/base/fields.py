"""What a shape says about its fields, asked by whoever derives something from it."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from apps.definitions.shapes.base.shape import SORTED, UNORDERED, About, Distinct, Grammar, Shape

NOTHING: Any = object()


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its grammar or the shape of the object in it, whether it is a list of those, and its default."""

    name: str
    about: About
    grammar: Grammar | None
    child: type[Shape] | None
    many: bool
    nullable: bool
    default: Any
    distinct: Distinct | None
    sorted: bool
    sparse: bool

    @property
    def required(self) -> bool:
        """Whether a document must have it."""
        return self.default is NOTHING

    @property
    def null(self) -> bool:
        """Whether documents show null: not where that leaves the field as it is, or the field out."""
        about = self.about
        absent = self.sparse or about.absent_when_empty or about.secret
        return self.nullable and about.stays is None and not absent

    @property
    def plain(self) -> bool:
        """Whether it holds one value: no list, no object."""
        return self.grammar is not None and not self.many and self.grammar.schema["type"] != "object"


def fields_of(shape: type[Shape]) -> tuple[Field, ...]:
    """Every field of a shape, in the order of its declaration."""
    return _fields_of(cast("Any", shape))  # mypy does not see that a class can be the key of a cache


@cache
def _fields_of(shape: Any) -> tuple[Field, ...]:
    hints = get_type_hints(shape, include_extras=True)
    found = []
    for field in fields(shape):
        default = field.default if field.default is not MISSING else NOTHING
        found.append(_field(field.name, hints[field.name], default, shape.sparse))
    return tuple(found)


def field_at(shape: type[Shape], name: str) -> Field:
    """One field of a shape by its name."""
    return next(field for field in fields_of(shape) if field.name == name)


def _field(name: str, hint: Any, default: Any, sparse: bool) -> Field:
    marks: list[Any] = []
    nullable = many = False
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            marks = [*marks, *more]
        elif get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint):
            nullable, hint = True, next(each for each in get_args(hint) if each is not NoneType)
        elif get_origin(hint) is tuple and not any(isinstance(mark, Grammar) for mark in marks):
            many, hint = True, get_args(hint)[0]
        else:
            break
    return Field(
        name,
        next((mark for mark in marks if isinstance(mark, About)), About("")),
        next((mark for mark in marks if isinstance(mark, Grammar)), None),
        hint if isinstance(hint, type) and issubclass(hint, Shape) else None,
        many,
        nullable,
        default,
        next((mark for mark in marks if isinstance(mark, Distinct)), None),
        SORTED in marks or UNORDERED in marks,
        sparse,
    )
