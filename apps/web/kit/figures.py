"""Measured numbers as words, and series as the points of a sparkline; nothing is invented."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from apps.observe.numbers import Numbers
from apps.overflow.reasons import number

WIDTH, HEIGHT = 100.0, 24.0
AT_LEAST = "≥ "


@dataclass(frozen=True, slots=True)
class Figures:
    """One object's numbers as text, empty where nothing was measured; `age` is set only when they are stale.

    Where a node is silent that may serve some of it, amounts are "≥ 4.5".
    """

    requests: str = ""
    errors: str = ""
    p95: str = ""
    connections: str = ""
    age: str = ""
    failing: bool = False


def figures_of(numbers: Numbers | None) -> Figures:
    """What a page prints for these numbers; rates per second, errors as the share of 5xx, latency in ms."""
    if numbers is None or numbers.requests_rps is None:
        return Figures()
    errors, at_least = numbers.error_rate, AT_LEAST if numbers.partial else ""
    return Figures(
        requests=at_least + rate(numbers.requests_rps),
        errors=share(errors),
        p95=amount(numbers.p95_ms),
        connections="" if numbers.connections is None else f"{at_least}{numbers.connections:,}",
        age=f"{numbers.age_s:.0f} s" if numbers.stale and numbers.age_s is not None else "",
        failing=bool(errors and errors >= 0.01),
    )


def amount(value: float | None) -> str:
    """A measured amount: counts whole, else one decimal below ten; empty for None."""
    if value is None:
        return ""
    if value == 0 or isinstance(value, int):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def rate(value: float) -> str:
    """Requests/s as sentences say them, but that few are not none."""
    text = number(value)
    return "<0.1" if text == "0" and value > 0 else text


def cut(value: float, digits: int) -> str:
    """Per cent rounded down, as text without a unit: nearly all is not all."""
    whole = floor(value * 10**digits + 1e-6) / 10**digits
    return f"{whole:.{digits}f}".rstrip("0").rstrip(".")


def share(value: float | None) -> str:
    """A share (0–1) in per cent; empty for None. Only nothing is 0 %, and only all of it 100 %."""
    if value is None:
        return ""
    percent = round(100 * value, 9)
    if 0 < percent < 0.005:
        return "<0.01 %"
    if 99.5 <= percent < 100:
        return f"{min(percent, 99.99):.2f} %"
    digits = 0 if percent in (0, 100) or percent >= 9.95 else 1 if percent >= 0.95 else 2
    return f"{percent:.{digits}f} %"


def spark(values: Sequence[float | None]) -> str:
    """SVG points for `components/sparkline.html` of the last stretch without a gap; empty below two points."""
    start = next((at + 1 for at in range(len(values) - 2, -1, -1) if values[at] is None), 0)
    # The newest bucket is often still open: a gap at the very end hides nothing.
    known = [(at, value) for at, value in enumerate(values) if at >= start and value is not None]
    if len(known) < 2:
        return ""
    top = max(value for _, value in known) or 1.0
    step = WIDTH / (len(values) - 1)
    points = [f"{at * step:.1f},{HEIGHT - 2 - (HEIGHT - 4) * value / top:.1f}" for at, value in known]
    return " ".join([f"{known[0][0] * step:.1f},{HEIGHT:g}", *points, f"{known[-1][0] * step:.1f},{HEIGHT:g}"])
