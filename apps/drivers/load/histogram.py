"""LOAD, latencies: HDR histograms in microseconds with three digits, that merge and travel as text.

A recorded value is kept as the lowest value of its HDR bucket, so that counting one is a dictionary step; the library
does what it is best at: the interchange format, which every HDR tool reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from hdrh.histogram import HdrHistogram

HIGHEST_US = 3_600_000_000
DIGITS = 3
EXACT_BITS = 11  # three digits: values below 2 048 have a bucket each


class Histogram:
    """Counts of latencies in microseconds."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    @property
    def total(self) -> int:
        """How many values were recorded."""
        return sum(self.counts.values())

    def record(self, value_us: float, count: int = 1) -> None:
        """Count a latency; what is below 1 µs or above an hour is counted as that."""
        value = int(value_us)
        if value >> EXACT_BITS:
            shift = min(value, HIGHEST_US).bit_length() - EXACT_BITS
            value = min(value, HIGHEST_US) >> shift << shift
        elif value < 1:
            value = 1
        self.counts[value] = self.counts.get(value, 0) + count

    def add(self, other: Histogram) -> None:
        """Count all that the other counted as well."""
        for value, count in other.counts.items():
            self.counts[value] = self.counts.get(value, 0) + count

    def percentile(self, percent: float) -> float | None:
        """The latency in microseconds that so many percent do not exceed, within 0.1 %; None of nothing."""
        wanted = max(1.0, percent / 100 * self.total)
        for value, seen in self._cumulated():
            if seen >= wanted - 1e-9:
                return float(middle_of(value))
        return None

    def highest(self) -> float | None:
        """The longest latency in microseconds; None of nothing."""
        return float(middle_of(max(self.counts))) if self.counts else None

    def encode(self) -> str:
        """As base64 of the HDR interchange format, compressed; empty of nothing."""
        if not self.counts:
            return ""
        whole = HdrHistogram(1, HIGHEST_US, DIGITS)
        for value, count in self.counts.items():
            whole.record_value(value, count)
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
        except Exception as problem:  # zlib, base64, struct, two of its own: the library has no common ancestor
            raise ValueError("This is no HDR histogram.") from problem
        for index, count in enumerate(whole.counts[: whole.encoder.payload.counts_len]):
            if count:
                found.record(whole.get_value_from_index(index), count)
        return found

    def _cumulated(self) -> Iterator[tuple[int, int]]:
        values = sorted(self.counts)
        return zip(values, itertools.accumulate(self.counts[value] for value in values), strict=True)


def middle_of(value_us: int) -> float:
    """The middle of the bucket that begins at this value: what stands for all that fell into it."""
    width = 1 << max(0, value_us.bit_length() - EXACT_BITS)
    return value_us + (width - 1) / 2


def merged(texts: Iterable[str]) -> Histogram:
    """All these histograms in one."""
    whole = Histogram()
    for text in texts:
        whole.add(Histogram.decode(text))
    return whole
