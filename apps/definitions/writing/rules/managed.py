"""DEFINE, inside a write: what a pipeline manages is changed under its name, or with broken glass, on every path.

Whoever takes a request says once what it carries (`managing`), so no path that stores something can leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apps.compiler.grammar import GrammarError, name
from apps.core.errors import Fault, Invalid, Managed

if TYPE_CHECKING:
    from apps.definitions.writing.change_set import ChangeSet


@dataclass(frozen=True, slots=True)
class Said:
    """What a request says of managers.

    Its own name, whether it reaches past others, and the fields that it takes over from what owns them
    (`acme/shop/eu`, field_owners.py).
    """

    manager: str = ""
    break_glass: bool = False
    take_over: frozenset[str] = frozenset()


_NOTHING = Said()
_said: ContextVar[Said] = ContextVar("said of managers", default=_NOTHING)


@contextmanager
def managing(*, manager: str = "", break_glass: bool = False, take_over: Iterable[str] = ()) -> Iterator[None]:
    """Writes below are made so. Raises Invalid (`/manager`) for what is no name."""
    if manager:
        try:
            name(manager)
        except GrammarError as error:
            raise Invalid([Fault("/manager", error.code, error.message)]) from error
    token = _said.set(Said(manager, break_glass, frozenset(take_over)))
    try:
        yield
    finally:
        _said.reset(token)


def said() -> Said:
    """What the request at hand says."""
    return _said.get()


def check_manager(changes: ChangeSet, row: Any) -> None:
    """Raise Managed (under another manager: Invalid) for an object of a pipeline, unless the glass is broken."""
    if row is None or row.manager in ("", changes.manager):
        return
    if changes.manager:
        changes.fault("/name", "managed", f"This object is managed by {row.manager}; apply it under that manager.")
        raise Invalid(changes.faults.drain())
    if not changes.break_glass:
        detail = f"{row.name} is managed by {row.manager}, which reverts other changes. Change it there, or "
        raise Managed(detail + "break glass: set break_glass=true, or tick the box in the form.")


def reason_of(changes: ChangeSet, row: Any) -> str:
    """Why, with a word in front where somebody reached past a pipeline."""
    if not changes.break_glass or row.manager in ("", changes.manager):
        return changes.reason
    return f"Break glass ({row.manager}). {changes.reason}".strip()
