"""The stretches of time that charts can show: `?range=` names one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """The last `minutes` in about `points` steps; `key` stands in the address, `label` on it, `words` in sentences."""

    key: str
    label: str
    words: str
    minutes: int
    points: int

    @property
    def refresh_s(self) -> int:
        """Seconds after which a new look can show something new, at most a minute of it."""
        return max(10, min(60, self.minutes * 60 // self.points))


# Ten seconds are kept for a day, minutes for two weeks, hours for 31 days (apps/observe/rolling.py).
RANGES = (
    Range("15m", "15 min", "15 minutes", 15, 90),
    Range("30m", "30 min", "30 minutes", 30, 90),
    Range("3h", "3 h", "3 hours", 3 * 60, 180),
    Range("24h", "24 h", "24 hours", 24 * 60, 288),
    Range("7d", "7 d", "7 days", 7 * 24 * 60, 168),
    Range("30d", "30 d", "30 days", 30 * 24 * 60, 180),
)
DEFAULT = RANGES[1]


def range_of(key: str) -> Range:
    """The range of that key; the default for any other."""
    return next((each for each in RANGES if each.key == key), DEFAULT)
