"""Percentiles of latency, interpolated in a histogram's buckets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# The upper bounds in ms that the data plane counts in; -1 is "above all of them".
BOUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 1000, 2000, 5000, 10000, -1)


def percentile(buckets: Mapping[int, int], share: float) -> float | None:
    """The latency in ms that `share` (0–1) of the requests did not exceed; None without requests.

    Within a bucket the requests are taken as spread evenly. In the bucket above all bounds nothing can be
    interpolated: the answer is its lower bound, a value that was certainly reached.
    """
    total = sum(buckets.values())
    if total <= 0:
        return None
    rank, passed = share * total, 0
    for position, bound in enumerate(BOUNDS):
        count = buckets.get(bound, 0)
        if count > 0 and passed + count >= rank:
            lower = BOUNDS[position - 1] if position else 0
            return float(lower) if bound == -1 else lower + (bound - lower) * max(0.0, rank - passed) / count
        passed += count
    return float(BOUNDS[-2])


def merge(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """The sum of several histograms."""
    whole: dict[int, int] = {}
    for histogram in histograms:
        for bound, count in histogram.items():
            whole[bound] = whole.get(bound, 0) + count
    return whole


def from_json(stored: Mapping[str, int]) -> dict[int, int]:
    """JSON knows only text as keys."""
    return {int(bound): count for bound, count in stored.items()}
