"""Times of Caddy: nanoseconds, or texts such as `1m30s` and `2d`."""

from __future__ import annotations

import re

from apps.importing.caddy.context import Caddy
from apps.importing.haproxy.text.durations import LONGEST_MS
from apps.importing.values.parsing import Path

_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|[smhd])")


def milliseconds(value: object) -> int | None:
    """None for no time."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return round(value / 1_000_000)
    parts = _PART.findall(value) if isinstance(value, str) else []
    if not parts or "".join("".join(each) for each in parts) != value:
        return None
    return round(sum(float(number) * _MS[unit] for number, unit in parts))


def time_at(caddy: Caddy, path: Path) -> int | None:
    """The time at a path, from a millisecond to an hour; None where none is said, or none that counts."""
    value = caddy.fields.at(*path)
    if value is None:
        return None
    found = milliseconds(value)
    if found is None:
        caddy.fields.impossible(path, "This is no time, such as 30s.")
        return None
    caddy.fields.mapped(path)
    if found > LONGEST_MS:
        caddy.fields.differs(path, "An hour is the longest time.")
    return min(max(1, found), LONGEST_MS) if found > 0 else None
