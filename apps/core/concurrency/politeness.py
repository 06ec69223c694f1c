"""On SQLite, whoever has written for long lets others write before it writes again.

SQLite has one writer, and no queue: who waits looks each tenth of a second whether the lock is free. One that takes it
again at once after its commit keeps everybody else out until they give up with "database is locked".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

# Longer than the longest sleep of SQLite's own busy handler, which is 0.1 s.
PAUSE_S = 0.12
LONG_S = 0.1
BEGIN = "BEGIN IMMEDIATE"


class Politeness:
    """Sees every statement of one connection; a commit is none, but comes right after the last one."""

    def __init__(self) -> None:
        self._began_at = self._spoke_at = float("-inf")

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        begins = sql == BEGIN
        if begins and self._spoke_at - self._began_at > LONG_S:
            time.sleep(max(self._spoke_at + PAUSE_S - time.monotonic(), 0.0))
        try:
            return execute(sql, params, many, context)
        finally:
            if begins or context["connection"].in_atomic_block:
                self._spoke_at = time.monotonic()
            if begins:
                self._began_at = self._spoke_at


def be_polite(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Receiver of Django's `connection_created`."""
    wrappers = connection.execute_wrappers
    if connection.vendor == "sqlite" and not any(isinstance(each, Politeness) for each in wrappers):
        wrappers.insert(0, Politeness())  # who wraps for a while takes the last one away again
