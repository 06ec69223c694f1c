"""What a watch is: a thread that lists what a registry has, follows what changes, and lists again where it must."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from apps.core.concurrency.backoff import pause_after
from apps.definitions.server_sources.deciding import FoundServer
from apps.definitions.shapes.servers.source import Source

logger = logging.getLogger(__name__)
ONCE_IN_S = 1.0
MOST_BYTES = 32 * 1024 * 1024
FIRST, LATEST = timedelta(seconds=1), timedelta(seconds=30)


class Failed(Exception):
    """A registry gave no answer that counts; the text is a sentence without its address and its secrets."""


class Gone(Exception):
    """The registry has forgotten the version that is followed: list again."""


class Unclear(Exception):
    """What the registry has does not say what the servers are; the text is a sentence for the pool's owner."""


def read_json(text: bytes, of: str) -> Any:
    """What a registry answered. Raises Failed."""
    if len(text) > MOST_BYTES:
        raise Failed(f"The answer of {of} is longer than 32 MB.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Failed(f"The answer of {of} is not JSON.") from None


def read_object(text: bytes, of: str) -> dict[str, Any]:
    """The JSON object that a registry answered. Raises Failed."""
    found = read_json(text, of)
    if not isinstance(found, dict):
        raise Failed(f"The answer of {of} is no object.")
    return found


class Watched(threading.Thread, ABC):
    """What is known of one place: `known` after the first list, `error` while the registry fails."""

    def __init__(self, name: str, changed: Callable[[], None]) -> None:
        super().__init__(daemon=True, name=f"watch {name}")
        self.error = ""
        self.dirty = self.known = False
        self.lists = 0
        self._changed = changed
        self._lock, self._ended = threading.Lock(), threading.Event()

    @abstractmethod
    def load(self) -> None:
        """Read everything, and what `follow` goes on from. Raises Failed."""

    @abstractmethod
    def follow(self) -> None:
        """Take what changes until the registry ends it. Raises Failed; Gone where it cannot go on from there."""

    @abstractmethod
    def cut(self) -> None:
        """End what is followed, from another thread."""

    @abstractmethod
    def servers_of(self, source: Source) -> list[FoundServer]:
        """The servers that the source names, as of now. Raises Unclear."""

    def run(self) -> None:
        """List and follow until the end; wait longer and longer while the registry fails."""
        failures, listed = 0, False
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                if not listed:
                    self.load()
                    self.lists, self.known, listed = self.lists + 1, True, True
                    self.note("")
                self.follow()
                failures = 0
            except Gone:
                listed = False
            except Failed as error:
                failures = failures + 1 if self.error else 1
                self.note(str(error))
            except Exception:
                logger.exception("a watch failed")
                failures, listed = failures + 1, False
                self.note("The answer cannot be read.")
            # A watch that ends after its minutes goes on at once; nothing makes us ask in a circle.
            pause = pause_after(failures, first=FIRST, longest=LATEST).total_seconds() if failures else 0.0
            pause *= random.uniform(0.8, 1.2)  # noqa: S311 - nothing secret
            self._ended.wait(max(pause, began + ONCE_IN_S - time.monotonic(), 0.0))

    def stop(self) -> None:
        """End soon; nobody waits for it."""
        self._ended.set()
        self.cut()

    def taken(self) -> bool:
        """Whether something changed since this was asked last."""
        with self._lock:
            dirty, self.dirty = self.dirty, False
        return dirty

    def note(self, error: str) -> None:
        """Something changed: what is known, or that it fails."""
        self.error, self.dirty = error, True
        self._changed()
