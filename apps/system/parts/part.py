"""A part of Spillway in one of four states; what nobody could ask is unknown, never ok."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import redis
from django import db

logger = logging.getLogger(__name__)


class State(StrEnum):
    """From best to worst, but for what is not known."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    FAILED = "failed"


WORST_FIRST = (State.FAILED, State.WARNING, State.UNKNOWN, State.OK)


@dataclass(frozen=True, slots=True)
class Detail:
    """One of the things that a part is made of."""

    name: str
    state: State
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What asking about a part found; `remedy` says what to do, where something is not ok."""

    state: State
    message: str
    remedy: str = ""
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Answer):
    """An answer with what it is about; `since` when the part came into this state, None for not known."""

    name: str
    title: str
    since: datetime | None = None


def asked(name: str, title: str, ask: Callable[[], Answer]) -> Part:
    """What asking finds; unknown where the database, Redis or the machine gives no answer."""
    try:
        found = ask()
    except (db.Error, redis.RedisError, OSError) as error:
        logger.warning("%s could not be asked: %s", title, type(error).__name__)
        found = Answer(State.UNKNOWN, f"It could not be asked: {type(error).__name__}.", _LOOK)
    return Part(found.state, found.message, found.remedy, found.details, name=name, title=title)


def worst(states: Iterable[State]) -> State:
    """The worst of them; unknown where there are none."""
    return min(states, key=WORST_FIRST.index, default=State.UNKNOWN)


_LOOK = "Look at the parts that this one needs, and at the log of this process."
