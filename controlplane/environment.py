"""The environment: every variable that the settings read, with its default, its shape and what it is for.

A variable that is empty counts as not set where nothing is its default; where something is, an empty one is wrong, as
somebody forgot to fill it in. All that is wrong is said at once by `refuse`. `configuration.py` makes a page of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured

from controlplane.shapes import ANYTHING, Shape


@dataclass(frozen=True, slots=True)
class Variable:
    """One of them; `default` is what people read, `group` the heading under which it stands.

    `secret` ones are shown nowhere; `optional` ones may be empty.
    """

    name: str
    default: str
    what: str
    group: str
    shape: Shape
    secret: bool = False
    optional: bool = False


KNOWN: dict[str, Variable] = {}
WRONG: dict[str, str] = {}
_group = ""


def begin() -> None:
    """The settings are read from the top."""
    KNOWN.clear()
    WRONG.clear()


def group(title: str) -> None:
    """What follows belongs together."""
    global _group  # noqa: PLW0603 - the settings are read once, from top to bottom
    _group = title


def wrong(name: str, sentence: str) -> None:
    """Remember that this one is wrong; the first reason counts."""
    WRONG.setdefault(name, sentence)


def refuse() -> None:
    """Raise ImproperlyConfigured with a line for each variable that is wrong."""
    if WRONG:
        raise ImproperlyConfigured("\n".join(WRONG.values()))


def text(
    name: str, default: str, what: str, *, shape: Shape = ANYTHING, shown: str | None = None, secret: bool = False
) -> str:
    """The variable, or its default; `shown` is written instead of a default that differs between machines."""
    said = default if shown is None else shown
    KNOWN[name] = Variable(name, said, what, _group, shape, secret=secret, optional=not default)
    given = os.environ.get(name)
    if given is None or (not given and not default):
        return default
    if not given:
        wrong(name, f"{name} is empty. Set {name} to {shape.words}, such as {shape.example}, or leave the line out.")
    elif not given.isprintable() or not shape.fits(given):
        wrong(name, f"Set {name} to {shape.words}, such as {shape.example}.")
    else:
        return given
    return default


def one_of(name: str, values: tuple[str, ...], what: str) -> str:
    """One of these words, the first by default."""
    words = " or ".join(filter(None, values))
    return text(name, values[0], what, shape=Shape(words, next(filter(None, values)), lambda given: given in values))


def flag(name: str, what: str) -> bool:
    """`1` for yes, `0` for no and by default."""
    return one_of(name, ("0", "1"), what) == "1"


def whole(name: str, default: int, what: str, least: int = 0) -> int:
    """A whole number."""

    def fits(given: str) -> bool:
        return given.isascii() and given.isdecimal() and len(given) < 16 and int(given) >= least

    return int(text(name, str(default), what, shape=Shape(f"a whole number of at least {least}", str(default), fits)))


def seconds(name: str, default: float, what: str) -> float:
    """A duration."""

    def fits(given: str) -> bool:
        try:
            return 0 <= float(given) < float("inf")
        except ValueError:
            return False

    return float(text(name, f"{default:g}", what, shape=Shape("a number of seconds", f"{default:g}", fits)))


def listed(name: str, default: str, what: str, *, shape: Shape = ANYTHING, secret: bool = False) -> list[str]:
    """Entries separated by commas, without blanks at their ends."""
    found = text(name, default, what, shape=shape, secret=secret)
    return [entry.strip() for entry in found.split(",") if entry.strip()]
