"""The last hour of a pool in one region as a drawing: what it served, what left above it, its limit, and changes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from apps.core.written.numbers import plain
from apps.overflow.flows import Point
from apps.web.drawing.axes import Scale, linear
from apps.web.drawing.runs import Drawing, Plot, Sheet, Stroke, Words

SHEETS = (Sheet("wide", 900, 210, 34, 896, 6), Sheet("narrow", 360, 190, 30, 356, 3))
TOP, FOOT = 34.0, 22.0
TEN_MINUTES = 600
LONGEST_WORD = 26
KINDS = ("kept", "out", "lost", "demand")


@dataclass(frozen=True, slots=True)
class Marker:
    """A change at a time (Unix seconds), in a word or two."""

    at: float
    words: str


def draw_trend(
    points: Sequence[Point], *, limit: float | None, markers: Sequence[Marker], prefix: str, sentence: str
) -> Drawing | None:
    """The drawing in two widths, with a gap where nothing was measured; None where no two neighbours were."""
    asked = itertools.groupby(points, lambda point: point.demand_rps is not None)
    runs = [run for known, group in asked if known and len(run := tuple(group)) > 1]
    if not runs:
        return None
    plots = (_plot(points, runs, limit, markers, sheet, f"{prefix}-{sheet.kind}") for sheet in SHEETS)
    return Drawing(tuple(plots), sentence)


def _plot(
    points: Sequence[Point],
    runs: Sequence[Sequence[Point]],
    limit: float | None,
    markers: Sequence[Marker],
    sheet: Sheet,
    prefix: str,
) -> Plot:
    plot = Plot(sheet.kind, prefix, f"0 0 {sheet.width:g} {sheet.height:g}")
    along = Scale(points[0].at, points[-1].at, sheet.left, sheet.right)
    demands = [point.demand_rps or 0.0 for run in runs for point in run]
    up = linear([*demands, limit or 0.0], sheet.height - FOOT, TOP)
    _grid(plot, up, along, sheet, prefix)
    parts = [_paths(run, along, up) for run in runs]
    for kind, paths in zip(KINDS, zip(*parts, strict=True), strict=True):
        plot.strokes.append(Stroke(f"{prefix}-{kind}", kind, "".join(paths)))
    if limit is not None:
        y = up.at(limit)
        plot.strokes.append(Stroke(f"{prefix}-limit", "limit", f"M{sheet.left:g} {y:.1f}H{sheet.right:g}"))
        at, words = (f"{sheet.left + 4:g}", f"{y - 5:.1f}"), f"limit now {plain(limit)}/s"
        plot.words.append(Words(f"{prefix}-limit-words", "limit", *at, "start", words))
    _markers(plot, markers, along, sheet, prefix)
    return plot


def _paths(run: Sequence[Point], along: Scale, up: Scale) -> tuple[str, str, str, str]:
    """What stayed, left and was refused as areas, one above the other, and all of it as a line."""
    demand = [(along.at(point.at), up.at(point.demand_rps or 0.0)) for point in run]
    kept = [(along.at(point.at), up.at(max(0.0, _kept(point)))) for point in run]
    stayed = [(along.at(p.at), up.at(max(0.0, _kept(p) + (p.overflow_out_rps or 0.0)))) for p in run]
    floor = [(x, up.at(0.0)) for x, _ in (demand[0], demand[-1])]
    line = "M" + "L".join(_at(each) for each in demand)
    return _area(kept, floor), _area(stayed, kept), _area(demand, stayed), line


def _kept(point: Point) -> float:
    return (point.demand_rps or 0.0) - (point.overflow_out_rps or 0.0) - (point.rejected_rps or 0.0)


def _grid(plot: Plot, up: Scale, along: Scale, sheet: Sheet, prefix: str) -> None:
    for number, value in enumerate(up.ticks(3)):
        y = up.at(value)
        plot.strokes.append(Stroke(f"{prefix}-grid-{number}", "grid", f"M{sheet.left:g} {y:.1f}H{sheet.right:g}"))
        plot.words.append(
            Words(f"{prefix}-tick-{number}", "tick", f"{sheet.left - 6:g}", f"{y + 4:.1f}", "end", plain(value))
        )
    foot = f"{sheet.height - 6:g}"
    step = TEN_MINUTES * (1 if sheet.ticks > 4 else 2)
    first = -(-int(along.low) // step) * step
    for second in range(first, int(along.high) - step // 3, step):
        text = f"{datetime.fromtimestamp(second, UTC):%H:%M}"
        plot.words.append(Words(f"{prefix}-at-{second}", "tick", f"{along.at(second):.1f}", foot, "middle", text))
    plot.words.append(Words(f"{prefix}-now", "tick", f"{sheet.right:g}", foot, "end", "now"))


def _markers(plot: Plot, markers: Sequence[Marker], along: Scale, sheet: Sheet, prefix: str) -> None:
    """Dotted lines with a word each; a word that would lie on the one before is left out, its line stays."""
    free = sheet.left
    for number, each in enumerate(sorted(markers, key=lambda marker: marker.at)):
        if not along.low <= each.at <= along.high:
            continue
        x = along.at(each.at)
        plot.strokes.append(
            Stroke(f"{prefix}-mark-{number}", "marker", f"M{x:.1f} {TOP - 18:g}V{sheet.height - FOOT:g}")
        )
        text = each.words if len(each.words) <= LONGEST_WORD else f"{each.words[: LONGEST_WORD - 1]}…"
        width = 6.2 * len(text)
        begin = x + 4 if x + 4 + width <= sheet.right else x - 4 - width
        if begin >= free and sheet.kind == "wide":
            plot.words.append(Words(f"{prefix}-word-{number}", "marker", f"{begin:.1f}", "12", "start", text))
            free = begin + width + 8


def _area(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(map(_at, upper)) + "L" + "L".join(map(_at, reversed(lower))) + "Z"


def _at(point: tuple[float, float]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"
