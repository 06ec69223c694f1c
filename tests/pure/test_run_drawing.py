"""Charts of capacity tests: scales that do not lie, and geometry that stays within its sheet."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.capacity.measure.results import Point
from apps.web.drawing.axes import linear, logarithmic
from apps.web.drawing.runs import Held, SecondPoint, draw_curve, draw_seconds, thinned

RATES = st.floats(0.01, 1e6)


def point(rate: float, p95: float, verdict: str = "good") -> Point:
    return Point(rate, rate, p95 / 2, p95, p95 * 1.2, 0.0, rate * p95 / 1000, verdict)


def moment(at: float, p95: float | None = 400.0, rate: float = 10.0) -> SecondPoint:
    return SecondPoint(at, rate, rate, rate, 0.0, 4.0, p95, p95, p95)


@given(st.lists(RATES, min_size=1, max_size=8))
def test_a_scale_holds_every_value_and_begins_at_nothing(values: list[float]) -> None:
    scale = linear(values, 100, 0)
    assert scale.low == 0
    assert scale.high >= max(values)
    assert scale.at(scale.high) == pytest.approx(0)
    assert scale.ticks(4)[0] == 0


@given(st.lists(RATES, min_size=1, max_size=8))
def test_a_logarithmic_scale_holds_every_value_and_has_few_ticks(values: list[float]) -> None:
    scale = logarithmic(values, 100, 0)
    assert scale.low <= min(values) * 1.00001
    assert scale.high >= max(values) * 0.99999
    assert 2 <= len(scale.ticks(4)) <= 12
    positions = [scale.at(value) for value in scale.ticks(4)]
    assert positions == sorted(positions, reverse=True)


@given(st.lists(st.tuples(RATES, RATES), min_size=2, max_size=12))
def test_nothing_of_a_curve_leaves_its_sheet(pairs: list[tuple[float, float]]) -> None:
    points = [point(rate, p95) for rate, p95 in pairs]
    knee = (points[0].rate, points[0].rate * 0.9, points[0].rate * 1.1)
    drawing = draw_curve(points, max_latency_ms=600, knee=knee, prefix="x", sentence="s")
    for plot in drawing.plots:
        _, _, width, height = (float(word) for word in plot.view_box.split())
        for mark in plot.marks:
            assert 0 <= float(mark.x) <= width
            assert 0 <= float(mark.y) <= height


def test_bad_points_are_crosses_and_every_id_is_there_once() -> None:
    drawing = draw_curve(
        [point(5, 400), point(15, 560), point(20, 4000, "bad")],
        max_latency_ms=600,
        knee=(15, 14.8, 16),
        prefix="c",
        sentence="s",
    )
    plot = drawing.plots[0]
    assert {mark.kind for mark in plot.marks if "20 requests/s" in mark.title} == {"p50 bad", "p95 bad", "p99 bad"}
    ids = [part.id for parts in (plot.areas, plot.strokes, plot.marks, plot.words) for part in parts]
    assert len(ids) == len(set(ids))


def test_a_line_stops_where_nothing_was_answered() -> None:
    drawing = draw_seconds([moment(0), moment(1, None), moment(2)], [], max_latency_ms=600, prefix="x", sentence="s")
    path = next(stroke.path for stroke in drawing.plots[0].strokes if stroke.kind == "p95")
    assert len(re.findall("M", path)) == 2


def test_a_long_run_is_thinned_and_its_worst_second_stays() -> None:
    moments = [moment(at, 9000.0 if at == 3333 else 400.0) for at in range(7200)]
    found = thinned(moments)
    assert len(found) <= 240
    assert max(each.p95 or 0 for each in found) == 9000.0
    assert thinned(moments[:100]) == moments[:100]


def test_steps_before_the_first_second_shown_are_left_out() -> None:
    held = [Held(0, 5, "good", "old"), Held(100, 110, "bad", "new")]
    drawing = draw_seconds([moment(at) for at in range(95, 120)], held, max_latency_ms=600, prefix="x", sentence="s")
    assert [area.title for area in drawing.plots[0].areas] == ["new"]
