"""What a run found: the capacity with its confidence, its curve, the bottleneck, the run before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.capacity.measure.results import Point, Result, result_of
from apps.capacity.models import Run
from apps.capacity.use import staleness
from apps.core.written.numbers import plain
from apps.web.capacity.live import words_of
from apps.web.capacity.words import LIMITED_BY, inconclusive, spoken
from apps.web.drawing.runs import draw_curve
from apps.web.kit.figures import share

CURVE_LEGEND = (("p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("objective", "objective"))


def result_context(run: Run) -> dict[str, Any]:
    """What the page shows of a run that is over; little where nothing was found."""
    again = inconclusive(run) and run.test_id is not None
    if not run.result:
        return {"found": None, "again": again}
    found = result_of(run.result)
    below = (run.plan.get("objective") or {}).get("max_latency_ms", 600)
    return {
        "found": found,
        "again": again,
        "stale": staleness.verdict(run),
        "applied": _sentence(run.result.get("applied")),
        "capacity": plain(found.capacity) if found.capacity is not None else "",
        "confidence": confidence_words(found),
        "limited_by": LIMITED_BY.get(found.limited_by, found.limited_by),
        "bottleneck": _sentence(run.result.get("bottleneck")),
        "build": _facts(run.result.get("build")),
        "overloaded": f"{found.overloaded_s:.0f} s",
        "lasted": spoken(found.seconds),
        "curve": _curve(found, below) if len(found.curve) > 1 else None,
        "curve_legend": CURVE_LEGEND,
        "curve_rows": [_row(point) for point in found.curve],
        "since_last": _sentence(run.result.get("since_last")),
    }


def confidence_words(found: Result) -> str:
    """How sure the number is: `95 % sure: between 14.8 and 15.6`."""
    if found.capacity is None and found.inconclusive and found.low is not None:
        below = f", below {plain(found.high)}/s" if found.high is not None else ""
        return f"at least {plain(found.low)}/s{below}, not confirmed"
    if found.capacity is None:
        return "no rate met the objective" if found.met is False else "not found"
    sure = f"{100 * found.confidence:g} % sure"
    if found.low is not None and found.high is not None:
        return f"{sure}: between {plain(found.low)} and {plain(found.high)}"
    return f"{sure}: at least {plain(found.low if found.low is not None else found.capacity)}"


def confidence_of(run: Run) -> str:
    """How sure the number of a run is, empty where it has none."""
    return confidence_words(result_of(run.result)) if run.result else ""


def capacity_of(run: Run) -> float | None:
    """The capacity that a run found, requests/s; None where it found none."""
    value = (run.result or {}).get("capacity")
    return float(value) if value is not None else None


def _curve(found: Result, below: float) -> Any:
    knee = None
    if found.capacity is not None:
        low = found.low if found.low is not None else found.capacity
        knee = (found.capacity, low, found.high if found.high is not None else found.capacity)
    sentence = f"Latency by rate at {len(found.curve)} rates. {found.message}"
    return draw_curve(found.curve, max_latency_ms=below, knee=knee, prefix="curve", sentence=sentence)


def _row(point: Point) -> dict[str, Any]:
    """A row of the curve's table twin."""
    return {
        "rate": plain(point.rate),
        "users": point.users,
        "answered": plain(point.answered),
        "p50": words_of(point.p50_ms),
        "p95": words_of(point.p95_ms),
        "p99": words_of(point.p99_ms),
        "errors": share(point.error_rate),
        "in_flight": plain(point.in_flight),
        "good": point.status == "good",
    }


def _sentence(value: Any) -> str:
    """The bottleneck, as a sentence of a document or of a plain text."""
    return str(value.get("message", "")) if isinstance(value, Mapping) else str(value or "")


def _facts(value: Any) -> list[tuple[str, str]]:
    """The build that was measured, as names and values."""
    if not isinstance(value, Mapping):
        return []
    return [
        (str(name).replace("_", " "), str(each))
        for name, each in value.items()
        if isinstance(each, str | int | float) and not isinstance(each, bool) and each != ""
    ]
