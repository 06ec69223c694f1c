"""Series as the data of charts, for `components/chart.html`."""

from __future__ import annotations

from typing import Any

from apps.observe.numbers import Series


def traffic_chart(series: Series, failed: str) -> dict[str, Any]:
    """Requests, and those that failed, per second."""
    return {
        "x": series.x,
        "series": [
            {"label": "Requests", "values": series.requests, "unit": "/s"},
            {"label": failed, "values": series.errors, "unit": "/s"},
        ],
    }


def latency_chart(series: Series) -> dict[str, Any]:
    """The 95th percentile of latency."""
    return {"x": series.x, "series": [{"label": "p95", "values": series.p95_ms, "unit": "ms"}]}
