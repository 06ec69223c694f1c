"""Histograms keep three digits, merge without loss, and are what other HDR tools read."""

from __future__ import annotations

import random

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from apps.drivers.load.histogram import HIGHEST_US, Histogram, merged, middle_of

LATENCIES = st.lists(st.integers(1, HIGHEST_US), min_size=1, max_size=200)


def of(values: list[int]) -> Histogram:
    found = Histogram()
    for value in values:
        found.record(value)
    return found


@given(values=LATENCIES)
def test_the_text_is_what_the_reference_library_writes(values: list[int]) -> None:
    reference = HdrHistogram(1, HIGHEST_US, 3)
    for value in values:
        reference.record_value(value)
    assert of(values).encode() == reference.encode().decode()


@given(values=LATENCIES)
def test_a_histogram_survives_its_journey(values: list[int]) -> None:
    assert Histogram.decode(of(values).encode()).counts == of(values).counts


@given(value=st.integers(1, HIGHEST_US))
def test_three_digits_are_kept(value: int) -> None:
    assert middle_of(next(iter(of([value]).counts))) == pytest.approx(value, rel=0.001)


@given(values=LATENCIES, more=LATENCIES)
def test_merging_is_recording_all(values: list[int], more: list[int]) -> None:
    assert merged([of(values).encode(), "", of(more).encode()]).counts == of(values + more).counts


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 99.9, 100])
def test_percentiles_are_those_of_the_sorted_values(percent: float) -> None:
    values = sorted(random.Random(3).choices(range(100, 900_000), k=10_000))
    exact = values[max(0, round(percent / 100 * len(values)) - 1)]
    assert of(values).percentile(percent) == pytest.approx(exact, rel=0.001)


def test_a_percentile_of_few_values_is_one_of_them() -> None:
    assert [of([10, 20]).percentile(percent) for percent in (50, 51, 100)] == [10, 20, 20]


def test_nothing_has_no_percentile_and_no_text() -> None:
    assert (Histogram().percentile(95), Histogram().highest(), Histogram().encode()) == (None, None, "")
    assert Histogram.decode("").total == 0


def test_what_is_out_of_range_counts_at_its_edge() -> None:
    assert of([0]).highest() == 1
    assert of([10 * HIGHEST_US]).highest() == pytest.approx(HIGHEST_US, rel=0.001)


@pytest.mark.parametrize("text", ["nonsense", "HISTFAAA", "AAAA", "é"])
def test_what_is_no_histogram_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no HDR histogram"):
        Histogram.decode(text)
