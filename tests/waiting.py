"""Waits for what comes by itself."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(true: Callable[[], bool], patience: float = 30) -> float:
    """The seconds until it holds; fails when it does not in time."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < patience
        time.sleep(0.01)
    return time.monotonic() - began
