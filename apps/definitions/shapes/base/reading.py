"""Makes a specification of a document by its shape, or says every error of it, with its pointer, at once.

pydantic reads; what it says is turned into our sentences here:

1. A grammar's own error keeps its code and sentence.
2. What pydantic finds by itself (missing, unknown, no list, no object) has a sentence in `_SENTENCES`.
3. An unknown field is told the nearest that there is, or where else it can be said.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from apps.core.errors import MOST_ERRORS, FieldError, Invalid
from apps.definitions.shapes.base.fields import field_at, fields_of
from apps.definitions.shapes.base.shape import Shape, Wrong

S = TypeVar("S", bound=Shape)
_SENTENCES = {
    "missing": ("missing", "Fill in {field}."),
    "dict_type": ("not_object", "Write an object with named fields here."),
    "tuple_type": ("not_list", "Write {field} as a list."),
    "too_long": ("too_many", "Use at most {max_length} entries in {field}."),
}


def read(shape: type[S], data: object, pointer: str, field_errors: list[FieldError]) -> S | None:
    """The specification; None where there are errors, which are added to `field_errors`."""
    try:
        found: S = _adapter(cast("Any", shape)).validate_python(data)
    except ValidationError as error:
        for line in islice(error.errors(include_url=False, include_input=False), MOST_ERRORS + 1):
            field_errors.extend(_field_errors(shape, line, pointer))
        return None
    return found


def read_or_raise(shape: type[S], data: object, pointer: str = "") -> S:
    """The specification. Raises Invalid with every error."""
    field_errors: list[FieldError] = []
    found = read(shape, data, pointer, field_errors)
    if found is None:
        raise Invalid(field_errors)
    return found


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def _field_errors(shape: type[Shape], line: ErrorDetails, pointer: str) -> Iterator[FieldError]:
    kind, loc = line["type"], line["loc"]
    pointer = pointer + "".join(f"/{escaped(str(part))}" for part in loc)
    if kind == "value_error":
        error = line["ctx"]["error"]
        if isinstance(error, Wrong):
            yield from (
                FieldError(pointer + field_error.pointer, field_error.code, field_error.detail)
                for field_error in error.field_errors
            )
        else:  # a GrammarError
            yield FieldError(pointer, error.code, error.message)
    elif kind == "unexpected_keyword_argument":
        name, known = str(loc[-1]), _at(shape, loc)
        detail = known.elsewhere.get(name) or unknown(name, [each.name for each in fields_of(known)])
        yield FieldError(pointer, "unknown_field", detail)
    else:
        code, sentence = _SENTENCES[kind]
        field = next((part for part in reversed(loc) if isinstance(part, str)), "")
        own = field_at(_at(shape, loc), field).about.missing if kind == "missing" else ""
        yield FieldError(pointer, code, own or sentence.format(field=field, **line.get("ctx", {})))


def _at(shape: type[Shape], loc: Sequence[int | str]) -> type[Shape]:
    """The shape whose field the last part of a location is."""
    for part in loc[:-1]:
        if isinstance(part, str):
            child = next(each.child for each in fields_of(shape) if each.name == part)
            shape = child or shape
    return shape


def unknown(field: str, known: Sequence[str]) -> str:
    """What is said of a field that there is not."""
    near = difflib.get_close_matches(field, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
    return f"There is no field {field[:63]!r} here; {hint}"


def escaped(field: str) -> str:
    """A field name as one segment of a JSON pointer (RFC 6901), printable and short."""
    printable = "".join(character if character.isprintable() else "�" for character in field[:63])
    return printable.replace("~", "~0").replace("/", "~1")
