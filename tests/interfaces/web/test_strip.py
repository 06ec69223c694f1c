"""The strip says what holds now, worst first, and never that all is good where something is not, or is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.core.clock import now
from apps.observe.numbers import Numbers, Series
from apps.overflow.flows import Flow, Lane, Point, RegionUse
from apps.web.drawing.trends import KINDS, Marker, draw_trend
from apps.web.overview.figures import figures
from apps.web.overview.incidents import DOWN, Incident, alerts_alone, vanished
from apps.web.overview.strip import states, tint

QUIET = Flow((), (), 0.0, now(), 1.0, stale=False)
LANE = Lane("rgn-1", "us", "rgn-2", "eu", 5.0, 98.0, "rate")
USE = RegionUse(
    "rgn-1", "us", "", 17.0, 12.0, 12.0, 5.0, 0.0, 0.0, 10.0, False, "", None, "", None, None,
    drained=True, healthy=True,
)  # fmt: skip


def words(flow: Flow, every: list[Incident] | None = None, fleets: dict[int, str] | None = None) -> list[str]:
    """The words of the strip."""
    return [each.word for each in states(flow, every or [], fleets or {}, "12 routes.")]


def test_nothing_wrong_is_all_good() -> None:
    assert words(QUIET) == ["All good."]
    assert tint(states(QUIET, [], {1: "in_sync"}, "")) == "good"


@pytest.mark.parametrize(
    ("flow", "every", "fleets", "word", "colour"),
    [
        (replace(QUIET, lanes=(LANE,)), [], {}, "Spilling", "warn"),
        (replace(QUIET, regions=(USE,)), [], {}, "Drained", "warn"),
        (replace(QUIET, rejected_rps=2.0), [], {}, "Rejecting", "bad"),
        (QUIET, [], {1: "held"}, "Held", "warn"),
        (QUIET, [], {1: "refused"}, "Rejected", "bad"),
        (QUIET, [Incident(DOWN, "Pool shop is down.")], {}, "Failing", "bad"),
        (QUIET, [Incident(2, "The p95 latency is 4.3 s.")], {}, "Needs attention", "warn"),
        (replace(QUIET, stale=True, age_s=40.0), [], {}, "Numbers are old", "idle"),
        (replace(QUIET, at=None, age_s=None), [], {}, "No numbers yet", "idle"),
    ],
)
def test_each_state_has_its_word_and_colour(
    flow: Flow, every: list[Incident], fleets: dict[int, str], word: str, colour: str
) -> None:
    assert words(flow, every, fleets) == [word]
    assert tint(states(flow, every, fleets, "")) == colour


def test_alerts_that_fire_are_not_all_good() -> None:
    (found,) = states(QUIET, alerts_alone(2), {}, "12 routes.")
    assert (found.word, found.text, found.kind) == ("Needs attention", "2 alerts are firing.", "warn")
    assert alerts_alone(0) == []


@pytest.mark.parametrize(("now_rps", "before", "said"), [(0.0, 12.0, True), (0.0, 0.2, False), (3.0, 12.0, False)])
def test_traffic_that_ended_is_an_incident(now_rps: float, before: float, said: bool) -> None:
    series = Series(tuple(range(60)), (before,) * 60, *((None,) * 60 for _ in range(4)))
    live = Numbers(requests_rps=now_rps, stale=False)
    assert [each.title for each in vanished(live, series)] == [
        "No requests arrive; in the last hour it was 12/s."
    ] * said
    assert vanished(replace(live, stale=True), series) == []


def test_the_worst_state_stands_first() -> None:
    flow = replace(QUIET, lanes=(LANE,), regions=(USE,), rejected_rps=2.0)
    assert words(flow, [Incident(DOWN, "x")], {1: "held"}) == ["Failing", "Rejecting", "Held", "Spilling", "Drained"]
    (said,) = [each.text for each in states(flow, [], {}, "") if each.word == "Spilling"]
    assert said == "us → eu 5/s at +98 ms"


def test_a_number_is_compared_with_an_hour_ago_and_with_nothing_where_nobody_knows() -> None:
    empty: tuple[None, ...] = (None,) * 60
    asked = (10.0,) * 60
    series = Series(tuple(range(60)), asked, (0.0,) * 60, empty, empty, empty)
    live = Numbers(requests_rps=13.1, error_rate=0.08, p95_ms=1234.0, stale=False)
    moved = [Point(at, None, 0.0, 3.0 if at == 7 else 0.0) for at in range(60)]
    found = {each.id: each for each in figures(live, series, moved, QUIET)}
    assert (found["requests"].value, found["requests"].note) == ("13.1", "▲ 31 % in an hour"), "as the flow beside it"
    assert (found["errors"].value, found["errors"].note, found["errors"].kind) == ("8.0 %", "0 % an hour ago", "bad")
    assert (found["p95"].value, found["p95"].unit, found["p95"].note) == ("1.23", "s", "")
    assert found["rejected"].note == "peak 3/s in the last hour"
    started = [*[Point(at, None, None, None) for at in range(56)], *moved[:2], Point(58, None, None, None), moved[0]]
    assert figures(live, series, started, QUIET)[4].note == "none in 3 min measured"
    quiet = replace(series, requests=(0.0,) * 60)
    assert figures(live, quiet, moved, QUIET)[1].note == ""
    unknown = Series(tuple(range(60)), empty, empty, empty, empty, empty)
    assert figures(live, unknown, [], replace(QUIET, at=None))[0].note == ""
    assert figures(live, unknown, [], replace(QUIET, at=None))[3].value == ""


@pytest.mark.parametrize(
    ("capped", "why"),
    [(1.5, "accounts have used their share"), (0.5, "no region has room"), (0.0, "no region has room")],
)
def test_what_is_rejected_has_its_reason(capped: float, why: str) -> None:
    empty: tuple[None, ...] = (None,) * 60
    series = Series(tuple(range(60)), empty, empty, empty, empty, empty)
    flow = replace(QUIET, regions=(replace(USE, capped_rps=capped),), rejected_rps=2.0)
    assert figures(Numbers(stale=False), series, [], flow)[4].note == why


def test_the_hour_is_drawn_with_its_limit_and_marks_and_with_a_gap_where_nothing_is_known() -> None:
    points = [Point(at, 10.0 + at / 600, 2.0, 0.0) for at in range(0, 3600, 10)]
    drawing = draw_trend(points, limit=12.0, markers=[Marker(1800.0, "shop")], prefix="t", sentence="x")
    assert drawing is not None
    wide = drawing.plots[0]
    assert {"kept", "out", "demand", "limit", "marker"} <= {stroke.kind for stroke in wide.strokes}
    assert {"limit now 12/s", "shop", "now"} <= {text.text for text in wide.words}
    unknown = [Point(at, None, None, None) for at in range(0, 3600, 10)]
    gap = draw_trend(
        [*points[:100], *unknown[100:200], *points[200:]], limit=12.0, markers=[], prefix="t", sentence="x"
    )
    assert gap is not None
    assert [each.path.count("M") for each in gap.plots[0].strokes if each.kind in KINDS] == [2, 2, 2, 2]
    assert draw_trend(unknown, limit=None, markers=[], prefix="t", sentence="x") is None
