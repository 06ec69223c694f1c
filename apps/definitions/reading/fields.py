"""Reads plain data field by field, asks the grammar of each, and collects every fault with its pointer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar, cast

from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError
from apps.definitions.shapes.base.reading import escaped, unknown
from apps.definitions.shapes.base.words import MAX_LIST, read_boolean, read_reference, read_title, real, whole, word

T = TypeVar("T")
D = TypeVar("D")
E = TypeVar("E", bound=StrEnum)

_UNIX = re.compile(r"unix:///[A-Za-z0-9._/-]{1,96}")
_MEMORY = re.compile(r"memory://[a-z0-9-]{1,63}")
_HTTPS = re.compile(r"https://(?P<host>[a-z0-9.-]{1,253}|\[[0-9a-f:]{2,39}\]):(?P<port>[1-9][0-9]{0,4})")


class Reader:
    """One JSON object being read; a wrong field adds a fault and the reading goes on.

    What `required` returns after a fault is None in disguise: whoever reads raises before anybody looks at it.
    """

    def __init__(self, data: object, pointer: str, faults: list[FieldError]) -> None:
        self.pointer = pointer
        self.faults = faults
        self.known: list[str] = []
        self.data: Mapping[str, Any] = {}
        if isinstance(data, Mapping) and all(isinstance(key, str) for key in data):
            self.data = data
        else:
            faults.append(FieldError(pointer, "not_object", "Write an object with named fields here."))

    def fault(self, field: str, code: str, detail: str) -> None:
        """Note a fault of a field; an empty field name means the object itself."""
        place = f"{self.pointer}/{escaped(field)}" if field else self.pointer
        self.faults.append(FieldError(place, code, detail))

    def has(self, field: str) -> bool:
        """Whether the field is there and not null."""
        self.known.append(field)
        return self.data.get(field) is not None

    def required(self, field: str, allowed: Callable[[object], T]) -> T:
        """The field's value in its grammar."""
        if not self.has(field):
            self.fault(field, "missing", f"Fill in {field}.")
            return cast("T", None)
        return self._checked(field, self.data[field], allowed)

    def optional(self, field: str, allowed: Callable[[object], T], default: D) -> T | D:
        """The field's value in its grammar, `default` where it is absent or null."""
        return self._checked(field, self.data[field], allowed) if self.has(field) else default

    def child(self, field: str) -> Reader | None:
        """A reader of the object in the field, None where it is absent or null."""
        return Reader(self.data[field], f"{self.pointer}/{escaped(field)}", self.faults) if self.has(field) else None

    def children(self, field: str) -> list[Reader]:
        """Readers of the objects in a list; an absent list is empty."""
        entries = self._list(field)
        return [Reader(entry, f"{self.pointer}/{field}/{index}", self.faults) for index, entry in enumerate(entries)]

    def values(self, field: str, allowed: Callable[[object], T]) -> tuple[T, ...]:
        """A list of values in one grammar, each at most once; an absent list is empty."""
        found = tuple(
            self._checked(f"{field}/{index}", value, allowed, escape=False)
            for index, value in enumerate(self._list(field))
        )
        if len(set(found)) < len([value for value in found if value is not None]):
            self.fault(field, "twice", f"Name each entry of {field} once.")
        return found

    def close(self) -> None:
        """Refuse every field that nobody asked for, with the nearest name that is known."""
        for field in self.data:
            if field not in self.known:
                self.fault(field, "unknown_field", unknown(field, self.known))

    def _list(self, field: str) -> list[Any]:
        entries = self.data[field] if self.has(field) else []
        if not isinstance(entries, list | tuple):
            self.fault(field, "not_list", f"Write {field} as a list.")
            return []
        if len(entries) > MAX_LIST:
            self.fault(field, "too_many", f"Use at most {MAX_LIST} entries in {field}.")
            return []
        return list(entries)

    def _checked(self, field: str, value: object, allowed: Callable[[object], T], *, escape: bool = True) -> T:
        try:
            return allowed(value)
        except GrammarError as error:
            place = escaped(field) if escape else field
            self.faults.append(FieldError(f"{self.pointer}/{place}", error.code, error.message))
            return cast("T", None)


def choice(kind: type[E]) -> Callable[[object], E]:
    """Grammar of a closed list of words."""
    return word(kind).read


def integer(lowest: int, highest: int) -> Callable[[object], int]:
    """Grammar of a whole number between two bounds."""
    return whole(lowest, highest).read


def number(lowest: float, highest: float) -> Callable[[object], float]:
    """Grammar of a finite number between two bounds."""
    return real(lowest, highest).read


def agent_url(value: object) -> str:
    """Where a node's agent listens: `unix:///path/agent.sock`, `https://host:port`, `memory://name` for tests."""
    if isinstance(value, str) and value.isascii():
        if (_UNIX.fullmatch(value) or _MEMORY.fullmatch(value)) and ".." not in value:
            return value
        found = _HTTPS.fullmatch(value)
        if found and int(found["port"]) <= 65535:
            return value
    raise GrammarError("agent_url", "Write unix:///path/to/agent.sock or https://host:port.")


boolean, reference, title = read_boolean, read_reference, read_title
