"""The last few hundred things that happened, for `GET /v1/events`."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import Any


class Events:
    """A ring of `{"id", "at", "kind", "text"}`; every entry is written to standard error as well."""

    def __init__(self, size: int = 500) -> None:
        self._ring: deque[dict[str, Any]] = deque(maxlen=size)
        self._next = 1
        self._changed = threading.Condition()

    def add(self, kind: str, text: str) -> None:
        """Note something; `kind` is state, error or log."""
        line = " ".join(text.split())
        with self._changed:
            self._ring.append({"id": self._next, "at": time.time(), "kind": kind, "text": line})
            self._next += 1
            self._changed.notify_all()
        sys.stderr.write(f"{kind}: {line}\n")
        sys.stderr.flush()

    def since(self, number: int, wait: float = 0.0) -> list[dict[str, Any]]:
        """Entries with a higher id; waits up to `wait` seconds for the first."""
        with self._changed:
            found = [each for each in self._ring if each["id"] > number]
            if not found and wait > 0:
                self._changed.wait(wait)
                found = [each for each in self._ring if each["id"] > number]
            return found
