"""Counts over time as bars to draw: their heights, what they say, and where a click on each leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.logs.searching import Bin, Histogram
from apps.web.requests.asked import Asked

HEIGHT = 100.0
# From below: what went well, then what did not. A class of the store → the class of the drawing.
LAYERS = (("ok", ("1xx", "2xx", "3xx")), ("client", ("4xx",)), ("bad", ("5xx",)), ("none", ("none",)))
MARKS = 5


@dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle of a bar; y counts from above."""

    layer: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """What happened in one stretch of time."""

    x: int
    start: datetime
    end: datetime
    total: int
    failed: int
    says: str
    address: str
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class Drawing:
    """All bars of a window, the highest of them full; `marks` are times below the axis, `dated` with their days."""

    bars: Sequence[Bar]
    highest: int
    total: int
    failed: int
    marks: Sequence[str]
    dated: bool


def drawing(histogram: Histogram, asked: Asked) -> Drawing:
    """Bars of a histogram; an empty window has bars without height."""
    highest = max((sum(each.counts.values()) for each in histogram.bins), default=0)
    step = timedelta(seconds=histogram.step_seconds)
    dated = bool(histogram.bins) and histogram.bins[0].start.date() != histogram.bins[-1].start.date()
    shown = "%m-%d %H:%M" if dated else "%H:%M:%S"
    said = f"{shown}:%S" if dated and step % timedelta(minutes=1) else shown
    bars = [_bar(x, each, step, highest, asked, said) for x, each in enumerate(histogram.bins)]
    failed = sum(each.counts.get("5xx", 0) for each in histogram.bins)
    return Drawing(bars, highest, sum(bar.total for bar in bars), failed, _marks(bars, shown), dated)


def _bar(x: int, found: Bin, step: timedelta, highest: int, asked: Asked, shown: str) -> Bar:
    end, total = found.start + step, sum(found.counts.values())
    failed = found.counts.get("5xx", 0)
    says = f"{found.start:{shown}}–{end:{shown}} UTC: {total:,} request{'' if total == 1 else 's'}, {failed:,} with 5xx"
    address = asked.address(**{"from": found.start.isoformat(), "to": end.isoformat()})
    return Bar(x, found.start, end, total, failed, says, address, list(_pieces(found, highest)))


def _pieces(found: Bin, highest: int) -> Iterator[Piece]:
    top = HEIGHT
    for layer, classes in LAYERS:
        count = sum(found.counts.get(each, 0) for each in classes)
        if count:
            # What happened at all can be seen.
            height = max(1.5, count / highest * HEIGHT)
            top = max(0.0, top - height)
            yield Piece(layer, round(top, 2), round(height, 2))


def _marks(bars: Sequence[Bar], shown: str) -> list[str]:
    if not bars:
        return []
    return [f"{bars[index * (len(bars) - 1) // (MARKS - 1)].start:{shown}}" for index in range(MARKS)]
