"""Two things measured in turn, A B A B: what differs, by how much, and whether it can be shown; pure.

The unit of observation is a round: what happens to one second of a round happens to its neighbours too, so seconds are
no independent witnesses. The difference is the mean of the differences between the two runs of each round, relative
to A. Its confidence comes from Student's t over the rounds; with two rounds it is wide, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any

# Student's t, two-sided 95 %, by degrees of freedom.
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
        12: 2.179, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.0}  # fmt: skip
FIELDS = {
    "throughput": ("requests/s", True),
    "capacity": ("requests/s", True),
    "p50_ms": ("ms", False),
    "p95_ms": ("ms", False),
    "p99_ms": ("ms", False),
    "error_rate": ("of the requests", False),
}
NAMES = {
    "throughput": "throughput",
    "capacity": "capacity",
    "p50_ms": "p50",
    "p95_ms": "p95",
    "p99_ms": "p99",
    "error_rate": "errors",
}


@dataclass(frozen=True, slots=True)
class Observation:
    """What one run found: requests/s, latencies in ms, share of errors; None where it was not measured."""

    throughput: float | None = None
    capacity: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    error_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """One number of A against B: means, the difference relative to A (absolute for errors) and half its interval.

    `shown` says that the interval leaves out zero. `message` says it to people.
    """

    field: str
    unit: str
    first: float
    second: float
    change: float
    plus_minus: float | None
    shown: bool
    rounds: int
    message: str


def observed(result: dict[str, Any]) -> Observation:
    """The observation that a stored result (results.py) amounts to."""
    knee = result.get("knee") or {}
    return Observation(
        throughput=knee.get("answered"),
        capacity=result.get("capacity"),
        p50_ms=knee.get("p50_ms"),
        p95_ms=knee.get("p95_ms"),
        p99_ms=knee.get("p99_ms"),
        error_rate=knee.get("error_rate"),
    )


def compare(
    first: Sequence[Observation], second: Sequence[Observation], *, names: tuple[str, str] = ("A", "B")
) -> list[Difference]:
    """All numbers that every round of both has; rounds without a partner are left out."""
    rounds = list(zip(first, second, strict=False))
    found = []
    for field in FIELDS:
        pairs = [(getattr(a, field), getattr(b, field)) for a, b in rounds]
        whole = [(float(a), float(b)) for a, b in pairs if a is not None and b is not None]
        if whole:
            found.append(_difference(field, whole, names))
    return found


def _difference(field: str, pairs: Sequence[tuple[float, float]], names: tuple[str, str]) -> Difference:
    a, b = fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs)
    relative = field != "error_rate" and a > 0
    scale = a if relative else 1.0
    changes = [(second - first) / scale for first, second in pairs]
    change = fmean(changes)
    half = student(len(changes) - 1) * stdev(changes) / sqrt(len(changes)) if len(changes) > 1 else None
    shown = half is not None and abs(change) > half
    message = _sentence(field, change, half, names, relative=relative)
    return Difference(field, FIELDS[field][0], a, b, change, half, shown, len(pairs), message)


def student(freedom: int) -> float:
    """Student's t for 95 %, rounded to the safe side between the table's rows."""
    return T_95[max(row for row in T_95 if row <= max(1, freedom))]


def _sentence(field: str, change: float, half: float | None, names: tuple[str, str], *, relative: bool) -> str:
    name = NAMES[field]
    if half is None:
        return f"One round gives no confidence: {name} of {names[1]} was {100 * change:+.1f} % off {names[0]}'s."
    spread = f"± {half * 100:.1f} {'%' if relative else 'percentage points'}"
    if abs(change) <= half:
        return f"No difference in {name} can be shown ({change * 100:+.1f} {spread})."
    size = f"{abs(change) * 100:.1f} {'%' if relative else 'percentage points'}"
    return f"{names[1]} {_how(field, size, rises=change > 0)} ({spread})."


def _how(field: str, size: str, *, rises: bool) -> str:
    """`is 12 % slower at p95`, `takes 3 % more requests/s`."""
    if field == "error_rate":
        return f"has {size} {'more' if rises else 'fewer'} errors"
    if FIELDS[field][1]:
        return f"has {size} {'more' if rises else 'less'} {NAMES[field]}"
    return f"is {size} {'slower' if rises else 'faster'} at {NAMES[field]}"


def summary(differences: Sequence[Difference]) -> str:
    """All that can be shown, or that nothing can."""
    shown = [difference.message for difference in differences if difference.shown]
    return " ".join(shown) if shown else "No difference can be shown."


def document(differences: Sequence[Difference]) -> dict[str, Any]:
    """As it is stored in `Comparison.result`."""
    return {"message": summary(differences), "differences": [asdict(difference) for difference in differences]}
