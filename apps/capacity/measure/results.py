"""What a run found, as data and as sentences: capacity with confidence, curve, in flight, overload; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from apps.core.written.numbers import plain


def requests_per_second(rate: float) -> str:
    """`1 request/s`, `12.5 requests/s`, `12,345 requests/s`."""
    text = plain(rate)
    return f"{text} request/s" if text == "1" else f"{text} requests/s"


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the curve; rates in requests/s, latencies in ms, share of errors 0–1, status good or bad."""

    rate: float
    answered: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    error_rate: float
    in_flight: float
    status: str
    users: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What a run found; rates in requests/s, None where nothing is known.

    `capacity` is the highest rate that meets the objective: confirmed by a longer step, and for independent callers the
    most likely border by all steps together. The true one lies between `low` and `high` with `confidence` (0–1); `high`
    is None when nothing broke. Where no capacity was confirmed, `low` held and `high` did not: more is not known, and
    `met` is None. `limited_by` says what ended the search:
    objective, max_rate, generator, time, overload, stopped. `in_flight_limit` is the limit in flight that belongs to
    the capacity (rate × latency there). `overloaded_s` counts the seconds in which certainly more requests were slow
    or failed than the objective allows.
    """

    kind: str
    message: str
    limited_by: str
    capacity: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    confirmed: bool = False
    knee: Point | None = None
    curve: tuple[Point, ...] = ()
    in_flight_limit: int | None = None
    overloaded_s: float = 0.0
    seconds: float = 0.0
    met: bool | None = None

    @property
    def inconclusive(self) -> bool:
        """Whether it searched and could not tell; that not even the lowest rate was good is an answer."""
        return self.capacity is None and self.kind == "search" and self.limited_by != "nothing"

    def document(self) -> dict[str, Any]:
        """As it is stored in `Run.result` and shown to people and machines; `with_environment` adds more."""
        found = asdict(self)
        found["curve"] = [asdict(point) for point in self.curve]
        return found


def result_of(document: Mapping[str, Any]) -> Result:
    """The result that a stored document holds; fields that are not of the result (bottleneck, build …) are left."""
    own = {name: document[name] for name in Result.__dataclass_fields__ if name in document}
    own["curve"] = tuple(Point(**point) for point in own.get("curve", ()))
    own["knee"] = Point(**own["knee"]) if own.get("knee") else None
    return Result(**own)
