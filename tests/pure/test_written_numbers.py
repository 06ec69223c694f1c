"""Numbers in words: thousands apart, no exponent, a unit beside them."""

from __future__ import annotations

import pytest

from apps.capacity.measure.results import requests_per_second
from apps.core.written.numbers import measured, plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (5, "5"), (0.5, "0.5"), (12.345, "12.35"), (999.96, "1,000"), (1000, "1,000"), (12_345.6, "12,346"),
        (3_000_000, "3,000,000"), (0.000_01, "0.00001"), (-1234.5, "-1,234"),
    ],
)  # fmt: skip
def test_no_number_hides_digits_in_an_exponent_and_thousands_stand_apart(value: float, text: str) -> None:
    assert plain(value) == text


def test_a_unit_stands_beside_its_number_and_has_no_plural_of_one() -> None:
    said = [measured(*each) for each in ((5, "%"), (1000, "ms"), (1, "times"), (14.4, "times"), (1, "days"), (3, ""))]
    assert said == ["5 %", "1,000 ms", "1 time", "14.4 times", "1 day", "3"]
    assert [requests_per_second(each) for each in (1, 12_345.6)] == ["1 request/s", "12,346 requests/s"]
