"""Reads plain data field by field, asks the grammar of each, and collects every error with its pointer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar, cast

from apps.compiler.grammar import GrammarError
from apps.core.errors import MOST_ERRORS, FieldError
from apps.definitions.shapes.base.reading import escaped, unknown
from apps.definitions.shapes.base.words import read_boolean, read_reference, read_title, whole

T = TypeVar("T")
D = TypeVar("D")


class Reader:
    """One JSON object being read; a wrong field adds an error and the reading goes on.

    What `required` returns after an error is None in disguise: whoever reads raises before anybody looks at it.
    """

    def __init__(self, data: object, pointer: str, field_errors: list[FieldError]) -> None:
        self.pointer = pointer
        self.field_errors = field_errors
        self.known: list[str] = []
        self.data: Mapping[str, Any] = {}
        if isinstance(data, Mapping) and all(isinstance(key, str) for key in data):
            self.data = data
        else:
            field_errors.append(FieldError(pointer, "not_object", "Write an object with named fields here."))

    def add_error(self, field: str, code: str, detail: str) -> None:
        """Note an error of a field; an empty field name means the object itself."""
        pointer = f"{self.pointer}/{escaped(field)}" if field else self.pointer
        self.field_errors.append(FieldError(pointer, code, detail))

    def has(self, field: str) -> bool:
        """Whether the field is there and not null."""
        self.known.append(field)
        return self.data.get(field) is not None

    def required(self, field: str, allowed: Callable[[object], T]) -> T:
        """The field's value in its grammar."""
        if not self.has(field):
            self.add_error(field, "missing", f"Fill in {field}.")
            return cast("T", None)
        return self._checked(field, self.data[field], allowed)

    def optional(self, field: str, allowed: Callable[[object], T], default: D) -> T | D:
        """The field's value in its grammar, `default` where it is absent or null."""
        return self._checked(field, self.data[field], allowed) if self.has(field) else default

    def child(self, field: str) -> Reader | None:
        """A reader of the object in the field, None where it is absent or null."""
        return (
            Reader(self.data[field], f"{self.pointer}/{escaped(field)}", self.field_errors) if self.has(field) else None
        )

    def close(self) -> None:
        """Refuse every field that nobody asked for, with the nearest name that is known."""
        strange = (field for field in self.data if field not in self.known)
        for field in islice(strange, MOST_ERRORS + 1):
            self.add_error(field, "unknown_field", unknown(field, self.known))

    def _checked(self, field: str, value: object, allowed: Callable[[object], T]) -> T:
        try:
            return allowed(value)
        except GrammarError as error:
            self.field_errors.append(FieldError(f"{self.pointer}/{escaped(field)}", error.code, error.message))
            return cast("T", None)


def integer(lowest: int, highest: int) -> Callable[[object], int]:
    """Grammar of a whole number between two bounds."""
    return whole(lowest, highest).read


boolean, reference, title = read_boolean, read_reference, read_title
