"""The drawing of a flow: bands as thick as the traffic, own traffic straight, ids that stay."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from apps.overflow.comparison import misplaced
from apps.overflow.flows import Flow, Lane, RegionUse
from apps.web.drawing.flows import Drawing, Shape, draw, nice
from apps.web.kit.figures import rate
from apps.web.overflow.parts import compare, shown
from apps.web.overflow.words import flow_sentence, table_twin, use_kind, use_words

NAMES = ("europe-west1", "us-central1", "asia-east1", "us-east4", "me-west1", "africa-south1", "us-west2", "eu-north9")
NUMBER = r"-?\d+(?:\.\d)?"


def use(number: int, own: float, out: float = 0, guests: float = 0, **values: Any) -> RegionUse:
    """A region that serves `own` and `guests` and sends `out` away."""
    refused = float(values.pop("refused", 0))
    defaults: dict[str, Any] = {
        "title": "", "capacity_rps": 10.0, "unlimited": False, "capacity_set_by": "", "capacity_set_at": None,
        "measured_by": "", "in_flight": None, "flight_limit": None, "drained": False, "healthy": True, "sentences": (),
    }  # fmt: skip
    return RegionUse(
        region_id=f"rgn-{number}", name=NAMES[number - 1], demand_rps=own + out + refused, local_rps=own,
        served_rps=own + guests, overflow_out_rps=out, overflow_in_rps=guests, rejected_rps=refused,
        **(defaults | values),
    )  # fmt: skip


def lane(source: int, target: int, rps: float, added_ms: float | None = 98, reason: str = "rate") -> Lane:
    """Traffic of a region served in another."""
    return Lane(
        source_id=f"rgn-{source}", source=NAMES[source - 1], target_id=f"rgn-{target}", target=NAMES[target - 1],
        rps=rps, added_ms=added_ms, reason=reason,
    )  # fmt: skip


def flow(lanes: tuple[Lane, ...], *uses: RegionUse) -> Flow:
    """A flow of now."""
    refused = sum(each.rejected_rps for each in uses)
    return Flow(lanes=lanes, regions=uses, rejected_rps=refused, at=None, age_s=1.0, stale=False)


SPILLING = flow((lane(2, 1, 8.0),), use(1, 2.0, guests=8.0), use(2, 10.0, out=8.0))


def thickness(shape: Shape, key: str) -> float:
    """Height of a band where it begins."""
    path = next(band.path for band in shape.bands if band.id == f"{shape.id}-{key}")
    found = re.match(rf"M{NUMBER} ({NUMBER}).*V({NUMBER})", path)
    assert found
    first = float(found[1])
    ends = [float(number) for number in re.findall(rf" ({NUMBER})Z", path)]
    return (ends[-1] if ends else float(found[2])) - first


def test_bands_are_as_thick_as_the_traffic() -> None:
    for shape in draw(SPILLING, "f").shapes:
        own, over = thickness(shape, "own-rgn-2"), thickness(shape, "lane-rgn-2-rgn-1")
        assert over / own == pytest.approx(0.8, abs=0.02)


def test_own_traffic_is_straight_and_overflow_crosses_to_the_other_region() -> None:
    shape = draw(SPILLING, "f").shapes[0]
    paths = {band.id: band.path for band in shape.bands}
    curve = re.compile(rf"M{NUMBER} ({NUMBER})C{NUMBER} {NUMBER} {NUMBER} ({NUMBER})")
    begins, ends = curve.findall(paths["f-wide-own-rgn-2"])[0]
    assert begins == ends
    begins, ends = curve.findall(paths["f-wide-lane-rgn-2-rgn-1"])[0]
    assert float(ends) < float(begins)


def test_the_label_says_how_much_and_how_much_later() -> None:
    for shape in draw(SPILLING, "f").shapes:
        assert [label.text.text for label in shape.labels] == ["8/s +98 ms"]


def test_an_unknown_distance_is_not_invented() -> None:
    drawn = draw(flow((lane(2, 1, 8.0, None),), use(1, 2.0, guests=8.0), use(2, 10.0, out=8.0)), "f")
    assert drawn.shapes[0].labels[0].text.text == "8/s"


def test_refused_traffic_ends_in_a_cross() -> None:
    full = flow((), use(1, 10.0, refused=3), use(2, 1.0))
    for shape in draw(full, "f").shapes:
        assert [cross.id for cross in shape.crosses] == [f"{shape.id}-cross-rgn-1"]
        assert any(text.text == "3/s refused" for text in shape.texts)


def ids(drawing: Drawing) -> list[str]:
    """Every id of a drawing."""
    found = []
    for shape in drawing.shapes:
        pills = [label.pill for label in shape.labels] + [label.text for label in shape.labels]
        found += [part.id for part in (*shape.bands, *shape.boxes, *shape.texts, *shape.crosses, *pills)]
    return found


def test_ids_are_unique_and_stay_the_same_when_the_traffic_moves() -> None:
    before = ids(draw(SPILLING, "f"))
    more = flow((lane(2, 1, 9.0),), use(1, 1.0, guests=9.0), use(2, 10.0, out=9.0))
    assert len(before) == len(set(before))
    assert ids(draw(more, "f")) == before
    assert set(before).isdisjoint(ids(draw(SPILLING, "g")))


def test_the_height_does_not_move_with_the_traffic() -> None:
    heights = {
        draw(flow((), use(1, amount), use(2, 3.0), use(3, 40.0)), "f").shapes[0].view_box
        for amount in (0.0, 0.5, 3.0, 30.0, 300.0)
    }
    assert len(heights) == 1


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("amount", [0.0, 0.04, 12.0, 50_000.0])
def test_one_to_eight_regions_stay_on_the_sheet(count: int, amount: float) -> None:
    uses = [use(number, amount, out=amount, guests=amount) for number in range(1, count + 1)]
    lanes = tuple(lane(number, number % count + 1, amount) for number in range(1, count + 1) if count > 1)
    for shape in draw(flow(lanes, *uses), "f").shapes:
        _, _, width, height = map(float, shape.view_box.split())
        for box in shape.boxes:
            assert 0 <= float(box.x) <= float(box.x) + float(box.width) <= width + 0.2
            assert -0.2 <= float(box.y) <= float(box.y) + float(box.height) <= height + 0.2
        for text in shape.texts:
            assert 0 <= float(text.y) <= height + 0.2


def test_labels_of_lanes_that_cross_do_not_cover_each_other() -> None:
    lanes = (lane(1, 3, 10.0), lane(3, 1, 10.0), lane(2, 3, 5.0), lane(2, 1, 5.0))
    drawn = draw(flow(lanes, use(1, 5, 10, 15), use(2, 5, 10), use(3, 5, 10, 15)), "f")
    pills = [label.pill for label in drawn.shapes[0].labels]
    for at, one in enumerate(pills):
        for other in pills[at + 1 :]:
            beside = abs(float(one.x) - float(other.x)) >= min(float(one.width), float(other.width))
            assert beside or abs(float(one.y) - float(other.y)) >= 18


def test_no_traffic_draws_posts_and_no_band() -> None:
    drawn = draw(flow((), use(1, 0.0), use(2, 0.0)), "f")
    assert drawn.sentence == "No traffic."
    assert all(not shape.bands and len(shape.boxes) >= 4 for shape in drawn.shapes)


def test_the_meter_shows_own_part_guests_and_the_limit_where_it_is_passed() -> None:
    shape = draw(flow((lane(2, 1, 9.0),), use(1, 6.0, guests=9.0), use(2, 1.0, out=9.0)), "f").shapes[0]
    boxes = {box.id.removeprefix("f-wide-"): box for box in shape.boxes}
    assert float(boxes["guests-rgn-1"].width) / float(boxes["used-rgn-1"].width) == pytest.approx(1.5, abs=0.02)
    assert "mark-rgn-1" in boxes
    assert "mark-rgn-2" not in boxes


def test_a_limit_in_flight_and_no_limit_are_said_as_such() -> None:
    flying = use(1, 5.0, capacity_rps=None, in_flight=9, flight_limit=20)
    assert use_words(flying) == "9 of 20 in flight"
    assert use_words(use(1, 5.0, capacity_rps=None, unlimited=True)) == "5 requests/s, no limit"
    assert use_words(use(1, 0.0, drained=True)) == "drained, serves no traffic"
    assert use_words(use(1, 0.0, healthy=False)) == "no usable server"
    assert [use_kind(use(1, amount)) for amount in (5.0, 9.5, 12.0)] == ["", "warn", "bad"]


def test_the_table_twin_has_a_row_per_band_with_the_reason() -> None:
    both = flow((lane(2, 1, 8.0),), use(1, 2.0, guests=8.0), use(2, 10.0, out=8.0, refused=2))
    rows = [(row.source, row.target, row.rps, row.share, row.added, row.why) for row in table_twin(both)]
    assert rows == [
        ("europe-west1", "europe-west1", "2", "100 %", "0 ms", "local traffic has priority"),
        ("us-central1", "us-central1", "10", "50 %", "0 ms", "local traffic has priority"),
        ("us-central1", "europe-west1", "8", "40 %", "+98 ms", "us-central1 reached its limit"),
        ("us-central1", "nobody: refused", "2", "10 %", "–", "every region is at its limit"),
    ]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"capped_rps": 2.0}, "the account has used its share of a node"),
        ({"drained": True}, "us-central1 is drained, and no other region takes it"),
        ({"healthy": False}, "us-central1 has no usable server, and no other region takes it"),
        ({"capped_rps": 0.5}, "every region is at its limit"),
    ],
)
def test_the_table_twin_says_why_requests_are_refused(values: dict[str, Any], why: str) -> None:
    assert [row.why for row in table_twin(flow((), use(2, 0.0, refused=2, **values)))] == [why]


def test_the_sentence_says_what_the_drawing_shows() -> None:
    assert flow_sentence(SPILLING) == (
        "europe-west1 gets 2 requests/s: 2 served there. "
        "us-central1 gets 18 requests/s: 10 served there; 8 in europe-west1, +98 ms."
    )


def test_rates_are_short_and_never_round_traffic_away() -> None:
    assert [rate(value) for value in (0.0, 0.02, 9.94, 19.9, 99.97, 1234.5)] == [
        "0", "<0.1", "9.9", "19.9", "100", "1,234",
    ]  # fmt: skip


@pytest.mark.parametrize("amount", [0.001, 0.9, 1.0, 7.3, 99.0, 1234.0])
def test_scales_are_round_and_at_most_a_quarter_too_large(amount: float) -> None:
    assert amount <= nice(amount) * 1.00001 <= amount * 1.3


def test_the_error_of_a_prediction_is_the_share_that_went_elsewhere() -> None:
    actual = flow((lane(2, 1, 9.0),), use(1, 2.0, guests=9.0), use(2, 9.0, out=9.0))
    planned = flow((lane(2, 1, 8.0),), use(1, 2.0, guests=8.0), use(2, 10.0, out=8.0))
    assert misplaced(planned, actual) == pytest.approx(1.0)
    assert misplaced(actual, actual) == 0
    assert compare(planned, flow((), use(1, 0.0))) is None


def test_old_numbers_say_their_age_and_history_is_never_old() -> None:
    old = replace(SPILLING, at=datetime(2026, 11, 21, tzinfo=UTC), age_s=48.2, stale=True)
    assert shown(old, "f").age == "48 s"
    assert shown(replace(old, stale=False), "f").age == ""
    assert shown(old, "f", past=True).age == ""
    assert not shown(replace(old, at=None), "f").known
