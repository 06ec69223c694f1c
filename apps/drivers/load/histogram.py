"""Latencies: HDR histograms in microseconds with three digits, that merge and travel as text.

Values are counted by the index of their HDR bucket in a dictionary: one step for each. The library does what it is
best at: the interchange format, which every HDR tool reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from hdrh.histogram import HdrHistogram

HIGHEST_US = 3_600_000_000
DIGITS = 3
EXACT_BITS = 11  # three digits: values below 2 048 have a bucket each, above 1 024 buckets for each power of two
HALF_BITS = EXACT_BITS - 1


class Histogram:
    """Counts of latencies in microseconds; `counts` by index of the bucket."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    @property
    def total(self) -> int:
        """How many values were recorded."""
        return sum(self.counts.values())

    def record(self, value_us: float) -> None:
        """Count a latency; what is below 1 µs or above an hour is counted as that."""
        index = int(value_us)
        if index >> EXACT_BITS:
            value = min(index, HIGHEST_US)
            shift = value.bit_length() - EXACT_BITS
            index = (shift << HALF_BITS) + (value >> shift)
        elif index < 1:
            index = 1
        self.counts[index] = self.counts.get(index, 0) + 1

    def add(self, other: Histogram) -> None:
        """Count all that the other counted as well."""
        for index, count in other.counts.items():
            self.counts[index] = self.counts.get(index, 0) + count

    def percentile(self, percent: float) -> float | None:
        """The latency in microseconds that so many percent do not exceed, within 0.1 %; None of nothing."""
        wanted = max(1.0, percent / 100 * self.total)
        for index, seen in self._cumulated():
            if seen >= wanted - 1e-9:
                return middle_of(index)
        return None

    def highest(self) -> float | None:
        """The longest latency in microseconds; None of nothing."""
        return middle_of(max(self.counts)) if self.counts else None

    def encode(self) -> str:
        """As base64 of the HDR interchange format, compressed; empty of nothing."""
        if not self.counts:
            return ""
        whole = HdrHistogram(1, HIGHEST_US, DIGITS)
        for index, count in self.counts.items():
            whole.counts[index] = count
        whole.set_internal_tacking_values(min(self.counts), max(self.counts), self.total)
        encoded: bytes = whole.encode()
        return encoded.decode("ascii")

    @classmethod
    def decode(cls, text: str) -> Histogram:
        """What `encode` wrote; raises ValueError of anything else."""
        found = cls()
        if not text:
            return found
        try:
            whole = HdrHistogram.decode(text)
        except Exception as problem:  # zlib, base64, struct, two of its own: they have no common ancestor
            raise ValueError("This is no HDR histogram.") from problem
        counts = whole.counts[: whole.get_counts_array_index(whole.max_value) + 1]  # beyond, 16 000 and more are 0
        found.counts = dict(itertools.compress(enumerate(counts), counts))  # and most of these
        return found

    def _cumulated(self) -> Iterator[tuple[int, int]]:
        indexes = sorted(self.counts)
        return zip(indexes, itertools.accumulate(self.counts[index] for index in indexes), strict=True)


def middle_of(index: int) -> float:
    """The middle of a bucket in microseconds: what stands for all that fell into it."""
    shift = max(0, (index >> HALF_BITS) - 1)
    lowest = (index - (shift << HALF_BITS)) << shift
    return lowest + ((1 << shift) - 1) / 2


def merged(texts: Iterable[str]) -> Histogram:
    """All these histograms in one."""
    whole = Histogram()
    for text in texts:
        whole.add(Histogram.decode(text))
    return whole
