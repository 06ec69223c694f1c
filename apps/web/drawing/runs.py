"""A capacity test as the geometry of charts: second by second, and latency against rate.

Each chart is drawn for two widths of the page, the style sheet shows the one that fits. Latencies stand on a
logarithmic scale: the interesting part is around the objective, and an overload is a hundred times above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from apps.capacity.measure.results import Point
from apps.core.written.numbers import plain
from apps.web.drawing.axes import Scale, linear, logarithmic

PERCENTILES = ("p50", "p95", "p99")
MOST_POINTS = 240


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line or an area; `kind` is its class."""

    id: str
    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle behind the lines; `title` says what it stands for."""

    id: str
    kind: str
    x: str
    y: str
    width: str
    height: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A measured point; a good one is a circle, a bad one a cross."""

    id: str
    kind: str
    x: str
    y: str
    title: str


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text; `anchor` is start, middle or end."""

    id: str
    kind: str
    x: str
    y: str
    anchor: str
    text: str


@dataclass(slots=True)
class Plot:
    """A chart for one width of the page."""

    kind: str
    id: str
    view_box: str
    areas: list[Area] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart in two widths; `sentence` says it to those who listen."""

    plots: tuple[Plot, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class SecondPoint:
    """One second of a run: `at` counts from the first one; rates per second, latencies in ms."""

    at: float
    target: float
    offered: float
    answered: float
    errors: float
    in_flight: float
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Held:
    """A step that is over, in seconds of the run, with its status."""

    begin: float
    end: float
    status: str
    words: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """The size of a chart, what it leaves at its left for numbers, and how many ticks fit."""

    kind: str
    width: float
    height: float
    left: float
    right: float
    ticks: int


SHEETS = (Sheet("wide", 1080, 300, 52, 1064, 8), Sheet("narrow", 360, 300, 40, 354, 4))
TIMELINES = (Sheet("wide", 1080, 380, 52, 1064, 10), Sheet("narrow", 360, 400, 40, 354, 4))


def draw_seconds(
    moments: Sequence[SecondPoint], held: Sequence[Held], *, max_latency_ms: float, prefix: str, sentence: str
) -> Drawing:
    """Offered against achieved above, latency below, each second; bands are the steps with their statuses."""
    shown = thinned(moments)
    plots = tuple(_timeline(shown, held, max_latency_ms, sheet, f"{prefix}-{sheet.kind}") for sheet in TIMELINES)
    return Drawing(plots, sentence)


def draw_curve(
    points: Sequence[Point],
    *,
    max_latency_ms: float,
    knee: tuple[float, float, float] | None,
    prefix: str,
    sentence: str,
) -> Drawing:
    """Latency against rate; `knee` is the capacity with the lowest and highest that it may be, in requests/s."""
    shown = sorted(points, key=lambda point: point.rate)
    plots = tuple(_curve(shown, max_latency_ms, knee, sheet, f"{prefix}-{sheet.kind}") for sheet in SHEETS)
    return Drawing(plots, sentence)


def thinned(moments: Sequence[SecondPoint]) -> list[SecondPoint]:
    """At most MOST_POINTS: of a few neighbouring seconds rates are averaged, of latencies the worst is shown."""
    size = -(-len(moments) // MOST_POINTS)
    if size <= 1:
        return list(moments)
    return [_together(moments[at : at + size]) for at in range(0, len(moments), size)]


def _together(some: Sequence[SecondPoint]) -> SecondPoint:
    def mean(of: Callable[[SecondPoint], float]) -> float:
        return sum(of(moment) for moment in some) / len(some)

    def worst(name: str) -> float | None:
        return max((value for moment in some if (value := getattr(moment, name)) is not None), default=None)

    return SecondPoint(
        at=some[0].at,
        target=some[0].target,
        offered=mean(lambda moment: moment.offered),
        answered=mean(lambda moment: moment.answered),
        errors=mean(lambda moment: moment.errors),
        in_flight=mean(lambda moment: moment.in_flight),
        p50=worst("p50"),
        p95=worst("p95"),
        p99=worst("p99"),
    )


def _timeline(
    moments: list[SecondPoint], held: Sequence[Held], max_latency_ms: float, sheet: Sheet, prefix: str
) -> Plot:
    plot = Plot(sheet.kind, prefix, f"0 0 {sheet.width:g} {sheet.height:g}")
    last = max((moment.at for moment in moments), default=0.0)
    first = min((moment.at for moment in moments), default=0.0)
    along = Scale(first, max(last, first + 10.0), sheet.left, sheet.right)
    middle = sheet.height * 0.5
    rates = [value for moment in moments for value in (moment.target, moment.offered, moment.answered)]
    upper = linear(rates, middle - 16, 20)
    latencies = [value for moment in moments for name in PERCENTILES if (value := getattr(moment, name))]
    lower = logarithmic([*latencies, max_latency_ms], sheet.height - 24, middle + 22)
    _bands(plot, held, along, (20, middle - 16), prefix)
    _grid(plot, upper, sheet, f"{prefix}-rate", "requests/s")
    _grid(plot, lower, sheet, f"{prefix}-latency", "ms")
    _seconds_axis(plot, along, sheet, prefix)
    _objective(plot, lower, max_latency_ms, sheet, prefix)
    steps = _stairs([(along.at(moment.at), upper.at(moment.target)) for moment in moments])
    plot.strokes.append(Stroke(f"{prefix}-target", "target", steps))
    for name in ("offered", "answered", "errors"):
        path = _path((along.at(moment.at), upper.at(getattr(moment, name))) for moment in moments)
        plot.strokes.append(Stroke(f"{prefix}-{name}", name, path))
    for name in reversed(PERCENTILES):
        positions = [
            (along.at(moment.at), None if (value := getattr(moment, name)) is None else lower.at(value))
            for moment in moments
        ]
        plot.strokes.append(Stroke(f"{prefix}-{name}", name, _broken(positions)))
    return plot


def _bands(plot: Plot, held: Sequence[Held], along: Scale, span: tuple[float, float], prefix: str) -> None:
    """The steps behind the lines; those that ended before the first second shown are left out."""
    top, bottom = span
    for number, step in enumerate(held):
        if step.end <= along.low:
            continue
        x, end = along.at(step.begin), along.at(step.end)
        area = (_n(x), _n(top), _n(max(end - x - 1, 1)), _n(bottom - top))
        plot.areas.append(Area(f"{prefix}-step-{number}", f"step {step.status}", *area, step.words))


def _grid(plot: Plot, scale: Scale, sheet: Sheet, prefix: str, unit: str) -> None:
    """Lines across with their numbers, and the unit above them."""
    for number, value in enumerate(scale.ticks(4)):
        y = scale.at(value)
        plot.strokes.append(Stroke(f"{prefix}-grid-{number}", "grid", f"M{_n(sheet.left)} {_n(y)}H{_n(sheet.right)}"))
        text = Words(f"{prefix}-tick-{number}", "tick", _n(sheet.left - 6), _n(y + 4), "end", plain(value))
        plot.words.append(text)
    plot.words.append(Words(f"{prefix}-unit", "unit", "0", _n(scale.end - 8), "start", unit))


def _seconds_axis(plot: Plot, along: Scale, sheet: Sheet, prefix: str) -> None:
    for number, value in enumerate(along.ticks(sheet.ticks)):
        y, text = _n(sheet.height - 6), f"{value:g} s"
        plot.words.append(Words(f"{prefix}-second-{number}", "tick", _n(along.at(value)), y, "middle", text))


def _objective(plot: Plot, scale: Scale, max_latency_ms: float, sheet: Sheet, prefix: str) -> None:
    y = scale.at(max_latency_ms)
    plot.strokes.append(Stroke(f"{prefix}-objective", "objective", f"M{_n(sheet.left)} {_n(y)}H{_n(sheet.right)}"))
    text = f"objective {plain(max_latency_ms)} ms"
    plot.words.append(Words(f"{prefix}-objective-words", "said", _n(sheet.right), _n(y - 5), "end", text))


def _curve(
    points: Sequence[Point], max_latency_ms: float, knee: tuple[float, float, float] | None, sheet: Sheet, prefix: str
) -> Plot:
    plot = Plot(sheet.kind, prefix, f"0 0 {sheet.width:g} {sheet.height:g}")
    rates = [point.rate for point in points] + (list(knee) if knee else [])
    along = linear(rates, sheet.left, sheet.right)
    latencies = [value for point in points for name in PERCENTILES if (value := latency(point, name))]
    scale = logarithmic([*latencies, max_latency_ms], sheet.height - 40, 24)
    if knee:
        _knee(plot, knee, along, sheet, prefix)
    _grid(plot, scale, sheet, f"{prefix}-latency", "ms")
    for number, value in enumerate(along.ticks(sheet.ticks)):
        x_text = _n(along.at(value))
        words = Words(f"{prefix}-rate-{number}", "tick", x_text, _n(sheet.height - 22), "middle", plain(value))
        plot.words.append(words)
    plot.words.append(Words(f"{prefix}-along", "unit", _n(sheet.right), _n(sheet.height - 4), "end", "requests/s"))
    _objective(plot, scale, max_latency_ms, sheet, prefix)
    for name in reversed(PERCENTILES):
        positions = [
            (along.at(point.rate), None if (value := latency(point, name)) is None else scale.at(value))
            for point in points
        ]
        plot.strokes.append(Stroke(f"{prefix}-{name}", name, _broken(positions)))
        plot.marks += [
            Mark(f"{prefix}-{name}-{at}", f"{name} {point.status}", _n(x), _n(y), point_words(point))
            for at, (point, (x, y)) in enumerate(zip(points, positions, strict=True))
            if y is not None
        ]
    return plot


def _knee(plot: Plot, knee: tuple[float, float, float], along: Scale, sheet: Sheet, prefix: str) -> None:
    """Where the capacity is, with the span in which the true one lies."""
    capacity, low, high = knee
    x, top, bottom = along.at(capacity), 24.0, sheet.height - 40
    begin, end = along.at(low), along.at(high)
    words = f"between {plain(low)} and {plain(high)} requests/s"
    area = (_n(begin), _n(top), _n(max(end - begin, 1.5)), _n(bottom - top))
    plot.areas.append(Area(f"{prefix}-span", "span", *area, words))
    plot.strokes.append(Stroke(f"{prefix}-knee", "knee", f"M{_n(x)} {_n(top)}V{_n(bottom)}"))
    right = x > sheet.left + (sheet.right - sheet.left) * 0.7
    text = f"capacity {plain(capacity)}/s"
    x_text = _n(min(x, begin) - 6 if right else max(x, end) + 6)
    plot.words.append(Words(f"{prefix}-knee-words", "found", x_text, _n(top + 10), "end" if right else "start", text))


def latency(point: Point, name: str) -> float | None:
    """A percentile (`p95`) of a point, ms."""
    value: float | None = getattr(point, f"{name}_ms")
    return value


def point_words(point: Point) -> str:
    """A point in words."""
    p95 = f", p95 {plain(point.p95_ms)} ms" if point.p95_ms is not None else ""
    errors = f", {100 * point.error_rate:.1f} % errors" if point.error_rate else ""
    return f"{plain(point.rate)} requests/s{p95}{errors}: {point.status}"


def _n(value: float) -> str:
    return f"{value:.1f}"


def _path(positions: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{'L' if number else 'M'}{_n(x)} {_n(y)}" for number, (x, y) in enumerate(positions))


def _broken(positions: Iterable[tuple[float, float | None]]) -> str:
    """A path that stops where nothing was measured."""
    parts, open_ = [], False
    for x, y in positions:
        if y is not None:
            parts.append(f"{'L' if open_ else 'M'}{_n(x)} {_n(y)}")
        open_ = y is not None
    return " ".join(parts)


def _stairs(positions: Sequence[tuple[float, float]]) -> str:
    """A path that goes level until the next value."""
    if not positions:
        return ""
    first = f"M{_n(positions[0][0])} {_n(positions[0][1])}"
    return first + "".join(f"H{_n(x)}V{_n(y)}" for _, (x, y) in pairwise(positions))
