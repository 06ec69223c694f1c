"""How a window is cut into bins, and what can be counted in them, the same for every store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from apps.drivers.logs.contract import FACET_FIELDS, NUMBER_FIELDS, STATUS_CLASSES, Bin, Histogram, Query, Rejected

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


def check_fields(fields: Sequence[str]) -> None:
    """Raise Rejected for a field by which lines cannot be put together."""
    for name in fields:
        if name not in FACET_FIELDS:
            raise Rejected(f"{name} cannot be counted; these can: {', '.join(FACET_FIELDS)}.")


def check_measured(step_seconds: int, of: str, percentile: int) -> None:
    """Raise Rejected for what is no number of a line, no percentile, or no step."""
    if of and (of not in NUMBER_FIELDS or of == "status"):
        raise Rejected(f"{of} is neither a time nor a size.")
    if not 0 <= percentile <= 100 or step_seconds < 1:
        raise Rejected("A percentile is a number from 0 to 100, and a step is at least a second.")
