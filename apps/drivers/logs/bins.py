"""How a window is cut into bins, the same for every store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from apps.drivers.logs.contract import STATUS_CLASSES, Bin, Histogram, Query

STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


def step_of(query: Query, bins: int) -> int:
    """How many seconds a bin is: the shortest round step that gives no more bins than asked for."""
    seconds = (query.end - query.start).total_seconds()
    return next((step for step in STEPS if seconds / step <= bins), STEPS[-1])


def histogram_of(query: Query, step: int, counts: Mapping[int, Mapping[str, int]]) -> Histogram:
    """All bins of the window, in order, those without lines too."""
    first = int(query.start.timestamp()) // step * step
    last = -(-int(query.end.timestamp() * 1000) // 1000)
    nothing = dict.fromkeys(STATUS_CLASSES, 0)
    bins = (Bin(datetime.fromtimestamp(at, UTC), counts.get(at, nothing)) for at in range(first, last, step))
    return Histogram(step, tuple(bins))
