"""Inside a write: what a pipeline manages is changed under its name, or with broken glass, on every path.

Whoever takes a request says once what it carries (`managing`), so no path that stores something can leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from apps.compiler.grammar import GrammarError, name
from apps.core.errors import FieldError, Invalid, Managed

if TYPE_CHECKING:
    from apps.definitions.writing.change_set import ChangeSet


@dataclass(frozen=True, slots=True)
class Said:
    """What a request says of managers.

    Its own name, whether it reaches past others, and the fields that it takes over from what owns them
    (`acme/shop/eu`, field_owners.py); `kept` are those that it would have changed and did not take over.
    """

    manager: str = ""
    break_glass: bool = False
    take_over: frozenset[str] = frozenset()
    kept: dict[str, str] = field(default_factory=dict)


_said: ContextVar[Said | None] = ContextVar("said of managers", default=None)


@contextmanager
def managing(*, manager: str = "", break_glass: bool = False, take_over: Iterable[str] = ()) -> Iterator[Said]:
    """Writes below are made so. Raises Invalid (`/manager`) for what is no name."""
    if manager:
        try:
            name(manager)
        except GrammarError as error:
            raise Invalid([FieldError("/manager", error.code, error.message)]) from error
    found = Said(manager, break_glass, frozenset(take_over))
    token = _said.set(found)
    try:
        yield found
    finally:
        _said.reset(token)


def said() -> Said:
    """What the request at hand says."""
    return _said.get() or Said()


def check_manager(changes: ChangeSet, row: Any) -> None:
    """Raise Managed (under another manager: Invalid) for an object of a pipeline, unless the glass is broken."""
    if row is None or row.manager in ("", changes.manager):
        return
    if changes.manager:
        changes.add_error("/name", "managed", f"This object is managed by {row.manager}; apply it under that manager.")
        raise Invalid(changes.field_errors.drain())
    if not changes.break_glass:
        detail = f"{row.name} is managed by {row.manager}, which reverts other changes. Change it there, or "
        raise Managed(detail + "break glass: set break_glass=true, or tick the box in the form.")


def reason_of(changes: ChangeSet, row: Any) -> str:
    """Why, with a word in front where somebody reached past a pipeline."""
    if not changes.break_glass or row.manager in ("", changes.manager):
        return changes.reason
    return f"Break glass ({row.manager}). {changes.reason}".strip()
