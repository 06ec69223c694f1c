"""Distances between regions: what counts first, and who is nearest."""

from __future__ import annotations

import pytest

from apps.fleet.distances import (
    Coordinates,
    Known,
    Latency,
    choose,
    estimate_ms,
    nearest_first,
    noticeably_differs,
    orders,
    table,
)

IOWA, BELGIUM, TOKYO = Coordinates(41.26, -95.86), Coordinates(50.47, 3.87), Coordinates(35.68, 139.69)
NAMES = {1: "us", 2: "eu", 3: "asia"}


def test_the_estimate_is_one_and_a_half_times_the_light_in_fibre_there_and_back() -> None:
    ms = estimate_ms(IOWA, BELGIUM)
    assert ms is not None
    assert ms == pytest.approx(2 * 7171 / 200 * 1.5, rel=0.01)
    assert ms == estimate_ms(BELGIUM, IOWA)


def test_two_regions_in_one_town_are_a_millisecond_apart() -> None:
    assert estimate_ms(IOWA, IOWA) == 1.0


def test_without_coordinates_there_is_no_estimate() -> None:
    assert estimate_ms(IOWA, Coordinates()) is None
    assert estimate_ms(Coordinates(1.0, None), IOWA) is None


def test_set_counts_before_measured_before_estimated() -> None:
    assert choose(Known(98, 90), Known(97, 80), 107.0) == Latency(98, "set")
    assert choose(Known(None, 90), Known(97, 80), 107.0) == Latency(97, "set")
    assert choose(Known(None, 90), Known(), 107.0) == Latency(90, "measured")
    assert choose(Known(), Known(None, 80), 107.0) == Latency(80, "measured")
    assert choose(Known(), Known(), 107.0) == Latency(107.0, "estimated")
    assert choose(Known(), Known(), None) == Latency(None, "unknown")


def test_nearest_first_then_by_name_and_unknown_ones_last() -> None:
    latencies = table({1: IOWA, 2: BELGIUM, 3: TOKYO, 4: Coordinates()}, {})
    assert nearest_first(1, NAMES | {4: "a-moon"}, latencies) == ["eu", "asia", "a-moon"]
    assert nearest_first(1, {2: "eu", 3: "asia"}, {}) == ["asia", "eu"]


def test_a_number_that_was_set_changes_who_is_nearest_for_both_sides() -> None:
    coordinates = {1: IOWA, 2: BELGIUM, 3: TOKYO}
    assert orders(NAMES, table(coordinates, {}))[3] == ["eu", "us"]
    after = orders(NAMES, table(coordinates, {(1, 3): Known(set_ms=5)}))
    assert (after[1], after[3]) == (["asia", "eu"], ["us", "eu"])


@pytest.mark.parametrize(("old", "new", "news"), [(None, 5, True), (100, 119, False), (100, 121, True), (2, 3, False)])
def test_a_measurement_is_news_when_it_is_a_fifth_off(old: float | None, new: float, news: bool) -> None:
    assert noticeably_differs(old, new) is news
