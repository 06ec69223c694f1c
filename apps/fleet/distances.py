"""How far regions are from each other, in ms, and from where each number comes; pure arithmetic.

What somebody set counts first, then what nodes measured, then an estimate by coordinates. A number of one direction
holds for the other one as well, unless that has its own of the same kind.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from math import asin, cos, radians, sin, sqrt

EARTH_RADIUS_KM = 6371.0
# Light in fibre, and how much longer cables are than the great circle (rule of thumb).
FIBRE_KM_PER_MS = 200.0
DETOUR = 1.5
LEAST_MS = 1.0


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Degrees; None where nobody said."""

    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """Round trips in one direction that were set and measured, ms; None is unknown."""

    set_ms: float | None = None
    measured_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """A round trip in ms and its source: set, measured, estimated, or unknown (then `ms` is None)."""

    ms: float | None = None
    source: str = "unknown"


Pair = tuple[int, int]
Table = dict[Pair, Latency]
NOTHING = Known()


@functools.lru_cache(maxsize=10_000)
def estimate_ms(first: Coordinates, second: Coordinates) -> float | None:
    """The round trip by great-circle distance, at least 1 ms; None without coordinates of both."""
    if None in (first.latitude, first.longitude, second.latitude, second.longitude):
        return None
    corners = (first.latitude, first.longitude, second.latitude, second.longitude)
    lat1, lon1, lat2, lon2 = (radians(degrees) for degrees in corners if degrees is not None)
    half = sin((lat2 - lat1) / 2) ** 2 + cos(lat1) * cos(lat2) * sin((lon2 - lon1) / 2) ** 2
    km = 2 * EARTH_RADIUS_KM * asin(sqrt(min(1.0, half)))
    return max(LEAST_MS, round(2 * km / FIBRE_KM_PER_MS * DETOUR, 1))


def choose(there: Known, back: Known, estimated_ms: float | None) -> Latency:
    """The number that counts from one region to another."""
    candidates = (
        ("set", there.set_ms),
        ("set", back.set_ms),
        ("measured", there.measured_ms),
        ("measured", back.measured_ms),
        ("estimated", estimated_ms),
    )
    return next((Latency(ms, source) for source, ms in candidates if ms is not None), Latency())


def table(coordinates: Mapping[int, Coordinates], known: Mapping[Pair, Known]) -> Table:
    """Every ordered pair of the regions."""
    return {
        (first, second): choose(
            known.get((first, second), NOTHING),
            known.get((second, first), NOTHING),
            estimate_ms(coordinates[first], coordinates[second]),
        )
        for first, second in permutations(coordinates, 2)
    }


def nearest_first(own: int, names: Mapping[int, str], latencies: Table) -> list[str]:
    """The names of other regions, nearest first; alike or unknown ones by name, unknown ones last."""

    def key(region: int) -> tuple[float, str]:
        ms = latencies.get((own, region), Latency()).ms
        return (float("inf") if ms is None else ms), names[region]

    return [names[region] for region in sorted((each for each in names if each != own), key=key)]


def orders(names: Mapping[int, str], latencies: Table) -> dict[int, list[str]]:
    """For each region the others, nearest first: what overflow follows where nobody ordered it."""
    return {region: nearest_first(region, names, latencies) for region in names}


def noticeably_differs(old_ms: float | None, new_ms: float) -> bool:
    """Whether a measurement is news: more than a fifth and more than a millisecond off what was known."""
    return old_ms is None or abs(new_ms - old_ms) > max(1.0, old_ms / 5)
