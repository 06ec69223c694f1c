"""The bars of the last days of a component, in a drawing of 360 by 24."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.status.showing import Shown, ShownComponent, ShownDay
from apps.status.states import State

STEP, HEIGHT = 4, 24
# What is unknown is low and what was wrong is high, so that colour is not alone.
_LOOK = {State.OPERATIONAL: ("good", 18), State.UNKNOWN: ("idle", 4), State.DEGRADED: ("warn", 22)}
_OUT = ("bad", HEIGHT)


@dataclass(frozen=True, slots=True)
class Bar:
    """One day."""

    x: int
    y: int
    height: int
    kind: str
    title: str


def bars(days: Iterable[ShownDay]) -> list[Bar]:
    """A bar for each day, the oldest at the left."""
    found = []
    for position, day in enumerate(days):
        kind, height = _LOOK.get(day.state, _OUT)
        title = f"{day.day.day} {day.day:%b %Y}: {day.words}"
        found.append(Bar(position * STEP, HEIGHT - height, height, kind, title))
    return found


def drawn(shown: Shown) -> list[tuple[ShownComponent, list[Bar]]]:
    """Every component with its bars."""
    return [(each, bars(each.days)) for each in shown.components]
