"""The law of growth through measured sizes, and why there is none."""

from __future__ import annotations

import pytest

from apps.capacity.measure.fitting import Scalability
from apps.capacity.use.growth import growth


def test_three_sizes_make_a_law_with_an_end() -> None:
    truth = Scalability(100.0, 0.05, 0.0)
    found = growth([(n, truth.capacity(n)) for n in (1, 2, 4)])
    assert found.law is not None
    assert found.law.contention == pytest.approx(0.05, abs=0.01)
    assert found.believed == 8
    assert [size.servers for size in found.sizes] == [1, 2, 4, 8]
    assert "Above 8 servers the fit is not reliable" in found.message


def test_a_law_ends_where_another_server_takes_capacity_away() -> None:
    truth = Scalability(100.0, 0.02, 0.02)
    found = growth([(n, truth.capacity(n)) for n in (1, 2, 4, 6)])
    assert 6 <= found.believed <= 8


@pytest.mark.parametrize(
    ("sizes", "words"),
    [([], "No capacity"), ([1], "Only 1 server was"), ([3], "Only 3 servers were"), ([2, 4], "Only 2, 4")],
)
def test_too_few_sizes_are_no_law_and_say_so(sizes: list[int], words: str) -> None:
    found = growth([(n, 100.0 * n) for n in sizes])
    assert found.law is None
    assert found.message.startswith(words)


def test_of_a_size_the_last_measurement_counts() -> None:
    assert growth([(3, 10.0), (3, 20.0)]).sizes[0].measured == 20.0
