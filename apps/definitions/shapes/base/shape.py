"""What a shape says about its fields: the grammar of each, what it is for, and what has to fit together.

A shape is a frozen dataclass whose annotations carry the marks below; pydantic reads them (reading.py). Marks raise
`GrammarError` for the value at hand and `Wrong` for several errors, or for one that stands below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, ValidationError, ValidationInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticKnownError, core_schema

from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError

Data = Mapping[str, Any]
ALWAYS = Field(validate_default=True)
SORTED = AfterValidator(lambda values: tuple(sorted(values)))  # a list that has no order of its own
UNORDERED = object()  # such a list of names of other objects: errors need each where it was sent


class Wrong(ValueError):
    """Errors at once; the pointer of each leads from the value at hand."""

    def __init__(self, *field_errors: FieldError) -> None:
        super().__init__(*(field_error.detail for field_error in field_errors))
        self.field_errors = field_errors


class Shape:
    """Base of every shape: an object with named fields, of which null says the same as nothing.

    `component` is its name in the API's document where that is not the name of the class; `may_be_absent` are fields
    that not everybody is shown. Of a `sparse` shape a document leaves out what it says nothing of, instead of null.
    `elsewhere` says of fields that people look for here why there are none, and what to do instead.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}
    component: ClassVar[str] = ""
    may_be_absent: ClassVar[tuple[str, ...]] = ()
    sparse: ClassVar[bool] = False
    elsewhere: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def together(cls, _sent: Data) -> Iterable[FieldError]:
        """What is wrong with the fields as they were sent, taken together: asked also where some of them are wrong.

        A field that is wrong by itself is not blamed again.
        """
        return ()

    def contradictions(self) -> Iterable[FieldError]:
        """What does not fit together although each field is right by itself."""
        return ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        known = frozenset(field.name for field in fields(source))

        def read(data: Any, read_fields: Callable[[Any], Any]) -> Any:
            if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
                raise PydanticKnownError("dict_type")
            sent = {key: value for key, value in data.items() if value is not None or key not in known}
            field_errors = cls.together(sent)
            found = (
                _read(read_fields, sent, partial(_of_right_fields, field_errors)) if field_errors else read_fields(sent)
            )
            if contradictions := tuple(found.contradictions()):
                raise Wrong(*contradictions)
            return found

        return core_schema.no_info_wrap_validator_function(read, handler(source))


@dataclass(frozen=True, slots=True, eq=False)
class About:
    """What a field is for, to people: the sentence of the page of reference; label and hint of the form."""

    help: str
    label: str = ""
    hint: str | None = None
    example: Any = None
    since: str = "0.1"
    # What is said where a required field is missing, if "Fill in it." is too little.
    missing: str = ""
    # What programs are told of the field, in the API's document; and of a list of objects how many it may have.
    note: str = ""
    most: int = 0
    # Whether a document leaves the field out while it holds nothing.
    absent_when_empty: bool = False
    # Whether it is sent and never shown.
    secret: bool = False
    # What a new object has where the document says nothing; a stored one keeps what it has.
    stays: Any = None


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """What a value may be: `read` decides and says what to do instead, `schema` says it to programs (JSON Schema).

    `write` makes a plain value of it again. `labels` are what people call the words of a closed list. `refers` is for
    names of other objects, `with_account` for those that other accounts may have: `account/name` where it is not the
    own one.
    """

    read: Callable[[Any], Any]
    schema: Mapping[str, Any]
    write: Callable[[Any], Any] = _unchanged
    labels: Mapping[str, str] | None = None
    refers: bool = False
    with_account: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """What a value must be beside those of fields declared above it: `data` has those of them that are right.

    A value that was left out is looked at only where `ALWAYS` stands beside the check.
    """

    ask: Callable[[Any, Data], None]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def asked(value: Any, info: ValidationInfo) -> Any:
            self.ask(value, info.data)
            return value

        return core_schema.with_info_after_validator_function(asked, handler(source))


class Distinct:
    """No two entries of a list are the same: objects in the fields of any of `keys`, the second at error in the first.

    Without keys: no value stands in the list twice. Entries are compared also where others are wrong.
    """

    def __init__(self, *keys: tuple[str, ...]) -> None:
        self.keys = keys

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._read, handler(source))

    def _read(self, sent: Any, read_entries: Callable[[Any], Any], info: ValidationInfo) -> Any:
        def twins(wrong: set[tuple[Any, ...]]) -> Iterable[FieldError]:
            if () in wrong:  # the list itself
                return ()
            if self.keys:
                return [field_error for key in self.keys for field_error in _twins(sent, key, wrong)]
            right = [entry for index, entry in enumerate(sent) if (index,) not in wrong]
            once = FieldError("", "twice", f"Name each entry of {info.field_name} once.")
            return [once] if any(entry in right[:index] for index, entry in enumerate(right)) else ()

        return _read(read_entries, sent, twins)


def _read(read: Callable[[Any], Any], sent: Any, more: Callable[[set[tuple[Any, ...]]], Iterable[FieldError]]) -> Any:
    """What `read` makes of what was sent, with the errors of `more` besides its own; it is told where those are."""
    found, lines = None, []
    try:
        found = read(sent)
    except ValidationError as error:
        lines = _lines(error)
    if field_errors := tuple(more({tuple(line["loc"][:2]) for line in lines})):
        lines.append(InitErrorDetails(type="value_error", loc=(), input=sent, ctx={"error": Wrong(*field_errors)}))
    if lines:
        raise ValidationError.from_exception_data("shape", lines)
    return found


def _of_right_fields(field_errors: Iterable[FieldError], wrong: set[tuple[Any, ...]]) -> list[FieldError]:
    known = {str(path[0]) for path in wrong if path}
    return [field_error for field_error in field_errors if not known & set(field_error.pointer.split("/")[1:2])]


def _twins(entries: Sequence[Any], key: tuple[str, ...], wrong: set[tuple[Any, ...]]) -> list[FieldError]:
    """Entries with the values of an earlier one in the fields of `key`; those that are wrong there do not count."""
    first, seen, found = key[0], [], []
    for index, entry in enumerate(entries):
        if {(index,), *((index, field) for field in key)} & wrong or entry.get(first) is None:
            continue
        values = [entry.get(field) for field in key]
        if values in seen:
            found.append(FieldError(f"/{index}/{first}", "twice", f"Another entry of the list has the same {first}."))
        seen.append(values)
    return found


def _lines(error: ValidationError) -> list[InitErrorDetails]:
    """What an error is made of, to raise it again with more."""
    return [
        InitErrorDetails(type=line["type"], loc=line["loc"], input=line["input"], ctx=line.get("ctx", {}))
        for line in error.errors(include_url=False)
    ]


__all__ = [
    "ALWAYS",
    "SORTED",
    "UNORDERED",
    "About",
    "Check",
    "Data",
    "Distinct",
    "Grammar",
    "GrammarError",
    "Shape",
    "Wrong",
]
