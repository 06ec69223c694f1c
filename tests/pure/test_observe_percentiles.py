"""Percentiles are interpolated in the buckets and never leave the bucket that they fall into."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.observe.collect.percentiles import BOUNDS, merge, percentile
from apps.observe.families.pools import cumulative


@pytest.mark.parametrize(
    ("buckets", "share", "expected"),
    [
        ({}, 0.95, None),
        ({100: 0}, 0.95, None),
        ({100: 100}, 0.5, 75.0),
        ({100: 100}, 1.0, 100.0),
        ({1: 10}, 0.5, 0.5),
        ({10: 90, 1000: 10}, 0.90, 10.0),
        ({10: 90, 1000: 10}, 0.95, 800.0),
        ({-1: 4}, 0.95, 10000.0),
    ],
)
def test_percentile(buckets: dict[int, int], share: float, expected: float | None) -> None:
    assert percentile(buckets, share) == expected


histograms = st.dictionaries(st.sampled_from(BOUNDS), st.integers(0, 1000))


@given(histograms, st.floats(0.01, 1))
def test_the_percentile_lies_in_a_bucket_with_requests(buckets: dict[int, int], share: float) -> None:
    found = percentile(buckets, share)
    if not sum(buckets.values()):
        assert found is None
        return
    assert found is not None
    lowers = dict(zip(BOUNDS, (0, *BOUNDS), strict=False))
    tops = {bound: lowers[bound] if bound == -1 else bound for bound in BOUNDS}
    assert any(lowers[bound] <= found <= tops[bound] for bound, count in buckets.items() if count)


@given(histograms)
def test_a_higher_share_is_never_faster(buckets: dict[int, int]) -> None:
    found = [percentile(buckets, share) or 0 for share in (0.1, 0.5, 0.9, 0.95, 0.99, 1)]
    assert found == sorted(found)


def test_histograms_add_up() -> None:
    assert merge([{10: 1, 20: 2}, {20: 3, -1: 1}]) == {10: 1, 20: 5, -1: 1}


def test_prometheus_buckets_are_cumulative_in_seconds_and_end_with_infinity() -> None:
    found = cumulative({5: 2, 1000: 3, -1: 1})
    assert dict(found)["0.005"] == 2
    assert dict(found)["1.0"] == 5
    assert found[-1] == ("+Inf", 6)
