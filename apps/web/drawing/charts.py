"""Series as the data of charts, for `components/chart.html`."""

from __future__ import annotations

from typing import Any

from apps.observe.numbers import Series


def traffic_chart(series: Series, asked: str, failed: str) -> dict[str, Any]:
    """What was asked and what failed per second, as people call it; connections are not known to fail."""
    drawn = [(asked, series.requests), *([(failed, series.errors)] if failed else [])]
    return {"x": series.x, "series": [{"label": label, "values": values, "unit": "/s"} for label, values in drawn]}


def latency_chart(series: Series) -> dict[str, Any]:
    """The 95th percentile of latency."""
    return {"x": series.x, "series": [{"label": "p95", "values": series.p95_ms, "unit": "ms"}]}
