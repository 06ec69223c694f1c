"""Edit conflicts: what each side changed since both began, and one document that holds both.

Documents are those of `describe`: plain data in which every default is written out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# What tells the entries of a list apart; a list whose entries have none of these is compared as a whole.
NAMES = ("name", "region", "pool", "to")


class _Missing:
    """Stands where one side has nothing."""


MISSING = _Missing()


class Who(StrEnum):
    """Which side changed a field since both began; `both` is a conflict that a person decides."""

    YOURS = "yours"
    THEIRS = "theirs"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that somebody changed: the way to it, and its value on all three sides (None: not there)."""

    path: tuple[str, ...]
    base: Any
    yours: Any
    theirs: Any
    who: Who


def merge(base: Any, yours: Any, theirs: Any) -> Any:
    """One value with the changes of both sides; where both changed the same field differently, yours stands."""
    if theirs in (yours, base):
        return yours
    if yours == base:
        return theirs
    parts = _parts(base, yours, theirs)
    if parts is None:
        return yours
    merged = {key: merge(*(side.get(key, MISSING) for side in parts)) for key in _keys(parts)}
    kept = {key: value for key, value in merged.items() if value is not MISSING}
    return kept if isinstance(yours, dict) else list(kept.values())


def differences(base: Any, yours: Any, theirs: Any, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """The fields that are not alike on all three sides and on which yours and theirs do not agree."""
    if yours == theirs:
        return
    parts = _parts(base, yours, theirs)
    if parts is None:
        who = Who.THEIRS if yours == base else Who.YOURS if theirs == base else Who.BOTH
        yield Difference(path, _shown(base), _shown(yours), _shown(theirs), who)
        return
    for key in _keys(parts):
        first, mine, other = (side.get(key, MISSING) for side in parts)
        yield from differences(first, mine, other, (*path, str(key)))


def _shown(side: Any) -> Any:
    return None if side is MISSING else side


def _keys(parts: list[dict[Any, Any]]) -> list[Any]:
    """Every key of any side in the order of yours, then of theirs."""
    base, yours, theirs = parts
    return list(dict.fromkeys([*yours, *theirs, *base]))


def _parts(base: Any, yours: Any, theirs: Any) -> list[dict[Any, Any]] | None:
    """The three sides as mappings, None where they have to be taken as a whole."""
    sides = (base, yours, theirs)
    if all(isinstance(side, dict) for side in (yours, theirs)):
        return [side if isinstance(side, dict) else {} for side in sides]
    if not all(isinstance(side, list) for side in (yours, theirs)):
        return None
    lists = [side if isinstance(side, list) else [] for side in sides]
    for name in NAMES:
        found = [_by_name(each, name) for each in lists]
        if None not in found and any(lists):
            return [each or {} for each in found]
    return None


def _by_name(entries: list[Any], name: str) -> dict[str, Any] | None:
    """The entries by the value of their field `name`; None where one has none or two have the same."""
    if not all(isinstance(entry, dict) and isinstance(entry.get(name), str) for entry in entries):
        return None
    found = {entry[name]: entry for entry in entries}
    return found if len(found) == len(entries) else None
