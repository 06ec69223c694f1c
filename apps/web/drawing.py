"""SHOW: numbers as SVG points and as data of charts, made on the server so that they are tested and morph smoothly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.observe.numbers import Series

WIDTH, HEIGHT = 100, 24
MARGIN = 2


def points_of(values: Sequence[float | None]) -> str:
    """`x,y` pairs within 100 × 24, y growing downwards; empty when fewer than two values were measured."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    highest = max(*known, 1e-9)
    step = WIDTH / (len(values) - 1)
    room = HEIGHT - 2 * MARGIN
    return " ".join(
        f"{place * step:.1f},{HEIGHT - MARGIN - value / highest * room:.1f}"
        for place, value in enumerate(values)
        if value is not None
    )


def traffic_chart(series: Series) -> dict[str, Any]:
    """Requests and 5xx per second, for `components/chart.html`."""
    return {
        "x": series.x,
        "series": [
            {"label": "Requests", "values": series.requests, "unit": "/s"},
            {"label": "5xx", "values": series.errors, "unit": "/s"},
        ],
    }


def latency_chart(series: Series) -> dict[str, Any]:
    """The 95th percentile of latency, for `components/chart.html`."""
    return {"x": series.x, "series": [{"label": "p95", "values": series.p95_ms, "unit": "ms"}]}
