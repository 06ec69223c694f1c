"""The environment: every variable that the settings read, with its default and what it is for.

A variable that is empty counts as not set. `configuration.py` makes a page of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured


@dataclass(frozen=True, slots=True)
class Variable:
    """One of them; `default` is what people read, `group` the heading under which it stands."""

    name: str
    default: str
    what: str
    group: str


KNOWN: dict[str, Variable] = {}
_group = ""


def group(title: str) -> None:
    """What follows belongs together."""
    global _group  # noqa: PLW0603 - the settings are read once, from top to bottom
    _group = title


def text(name: str, default: str, what: str, *, shown: str | None = None) -> str:
    """The variable, or its default; `shown` is written instead of a default that differs between machines."""
    KNOWN[name] = Variable(name, default if shown is None else shown, what, _group)
    return os.environ.get(name) or default


def one_of(name: str, values: tuple[str, ...], what: str) -> str:
    """One of these words, the first by default. Raises ImproperlyConfigured."""
    found = text(name, values[0], what)
    if found not in values:
        raise ImproperlyConfigured(f"Set {name} to {' or '.join(filter(None, values))}, or leave it out.")
    return found


def flag(name: str, what: str) -> bool:
    """`1` for yes, `0` for no and by default. Raises ImproperlyConfigured."""
    return one_of(name, ("0", "1"), what) == "1"


def whole(name: str, default: int, what: str, least: int = 0) -> int:
    """A whole number. Raises ImproperlyConfigured."""
    found = text(name, str(default), what)
    if not found.isascii() or not found.isdecimal() or int(found) < least:
        raise ImproperlyConfigured(f"Set {name} to a whole number of at least {least}, such as {default}.")
    return int(found)


def seconds(name: str, default: float, what: str) -> float:
    """A duration. Raises ImproperlyConfigured."""
    found = text(name, f"{default:g}", what)
    try:
        value = float(found)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ImproperlyConfigured(f"Set {name} to a number of seconds, such as {default:g}.")
    return value


def listed(name: str, default: str, what: str) -> list[str]:
    """Entries separated by commas, without blanks at their ends."""
    return [entry.strip() for entry in text(name, default, what).split(",") if entry.strip()]
