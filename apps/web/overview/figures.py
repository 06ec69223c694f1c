"""The five numbers of the first page: each now, its line of an hour, and what it was an hour ago."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from apps.observe.numbers import Numbers, Series
from apps.overflow.flows import Flow, Point
from apps.web.kit.figures import AT_LEAST, amount, rate, share, spark
from apps.web.overflow.words import mostly_capped

OLDEST = 10  # points at the beginning of the hour that make up what it was an hour ago
STEADY = 0.1
SLOW_MS = 1000.0
BAD_SHARE, WARN_SHARE = 0.05, 0.01


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit; `note` compares it, `kind` is the colour of the note and the line; `url` leads on."""

    id: str
    label: str
    value: str
    unit: str
    note: str
    kind: str
    points: str


def figures(now: Numbers, series: Series, moved: Sequence[Point], flow: Flow) -> list[Figure]:
    """Requests, share of 5xx, p95, overflow and rejected."""
    live = flow.at is not None
    out = sum(use.overflow_out_rps for use in flow.regions)
    errors = [
        bad / asked if asked and bad is not None else None  # of no requests no share is known
        for asked, bad in zip(series.requests, series.errors, strict=True)
    ]
    bad = "bad" if (now.error_rate or 0.0) >= BAD_SHARE else "warn" if (now.error_rate or 0.0) >= WARN_SHARE else ""
    p95, unit = _latency(now.p95_ms)
    gone, refused = [each.overflow_out_rps for each in moved], [each.rejected_rps for each in moved]
    part = out / now.requests_rps if now.requests_rps else None
    lost = flow.rejected_rps
    at_least, without = (AT_LEAST, "without silent nodes") if now.partial else ("", "")
    return [
        Figure("requests", "Requests", "" if now.requests_rps is None else at_least + rate(now.requests_rps), "/s",
               without or _beside(now.requests_rps, series.requests), "", spark(series.requests)),
        Figure("errors", "5xx rate", share(now.error_rate), "", _before(errors), bad, spark(errors)),
        Figure("p95", "p95 latency", p95, unit, _beside(now.p95_ms, series.p95_ms), "", spark(series.p95_ms)),
        Figure("overflow", "Overflow", at_least + rate(out) if live else "", "/s",
               f"{share(part)} of traffic" if live and out and part is not None else "served in other regions",
               "warn" if out else "", spark(gone)),
        Figure("rejected", "Rejected", at_least + rate(lost) if live else "", "/s",
               _refused_why(flow) if lost else _peak(refused), "bad" if lost else "", spark(refused)),
    ]  # fmt: skip


def _refused_why(flow: Flow) -> str:
    """What keeps most of it out."""
    capped = mostly_capped(flow.regions, flow.rejected_rps)
    return "accounts have used their share" if capped else "no region has room"


def _latency(value: float | None) -> tuple[str, str]:
    """From a second on in seconds."""
    if value is None or value < SLOW_MS:
        return amount(value), "ms"
    return f"{value / 1000:.2f}".removesuffix("0"), "s"


def _usual(values: Sequence[float | None]) -> float | None:
    """The middle of what was measured an hour ago; None where that is too little."""
    known = [value for value in values[:OLDEST] if value is not None]
    return statistics.median(known) if len(known) >= OLDEST // 2 else None


def _beside(value: float | None, values: Sequence[float | None]) -> str:
    usual = _usual(values)
    if value is None or not usual:
        return ""
    change = value / usual - 1
    if abs(change) < STEADY:
        return "as an hour ago"
    return f"{'▲' if change > 0 else '▼'} {abs(change) * 100:,.0f} % in an hour"


def _before(values: Sequence[float | None]) -> str:
    usual = _usual(values)
    return "" if usual is None else f"{share(usual)} an hour ago"


def _peak(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    # The newest minutes are not summed up yet.
    when = "in the last hour" if len(known) >= len(values) - 2 else f"in {len(known)} min measured"
    return f"peak {rate(max(known))}/s {when}" if max(known) > 0 else f"none {when}"
