"""What is worked out once after each event for all pages that ask the same, as long as it stands for now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db import connection

from apps.core import events

T = TypeVar("T")
TOPICS: tuple[events.Topic, ...] = ("samples", "definitions", "nodes")
# Not everything that moves a flow tells of it, and a collector may be away: nothing shared is older.
LASTS_S = 2.0
MOST = 256


@dataclass(slots=True)
class _Made:
    until: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None


Key = tuple[Hashable, str]  # what it is, turns of the topics
_made: dict[Key, _Made] = {}
_guard = threading.Lock()


def once_per_sample(what: Hashable, make: Callable[[], T]) -> T:
    """What `make` makes; pages only read it. `what` names the account whose view it is, where it is one account's.

    Within a transaction each makes its own: what is not committed is nobody else's business.
    """
    turns = None if connection.in_atomic_block else events.turns(TOPICS)
    if turns is None:
        return make()
    entry = _entry((what, turns))
    with entry.lock:  # who asks meanwhile waits, and finds it made
        if entry.value is None:
            entry.value = make()
        found: T = entry.value
    return found


def _entry(key: Key) -> _Made:
    instant = time.monotonic()
    with _guard:
        for old in [each for each, entry in _made.items() if entry.until <= instant]:
            del _made[old]
        if len(_made) >= MOST:
            del _made[next(iter(_made))]  # the oldest
        return _made.setdefault(key, _Made(instant + LASTS_S))
