"""Durations of haproxy.cfg: `10s`, `500` (milliseconds), and `15min`, of which HAProxy reads the `m`."""

from __future__ import annotations

import re

_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
_DURATION = re.compile(r"([0-9]+)(?:(us|ms|s|m|h|d)[a-z]*)?")
LONGEST_MS = 3_600_000


def milliseconds(text: str, *, unit: str = "ms") -> int | None:
    """Milliseconds, at least 1 of what is more than none; `unit` is that of a bare number. None for no duration."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    return max(1, round(int(found[1]) * _UNITS[found[2] or unit])) if int(found[1]) else 0


def time_limit(text: str) -> tuple[int | None, str]:
    """The milliseconds of a `timeout`, and what of them differs; `0` is no limit for HAProxy."""
    time = milliseconds(text)
    if time is None:
        return None, ""
    return (time, "") if 0 < time <= LONGEST_MS else (LONGEST_MS, "An hour is the longest time.")
