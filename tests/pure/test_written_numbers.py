"""Numbers in words: thousands apart, no exponent, a unit beside them."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from apps.capacity.measure.results import requests_per_second
from apps.capacity.run.generator_capacity import sentence_of
from apps.core.written.numbers import measured, plain
from apps.drivers.load.bounds import check
from apps.drivers.load.contract import Endpoint, LoadError, Plan, Request
from apps.overflow.flows import RegionUse
from apps.web.overflow.what_if_form import WhatIfForm


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (5, "5"), (0.5, "0.5"), (12.345, "12.35"), (999.96, "1,000"), (1000, "1,000"), (12_345.6, "12,346"),
        (3_000_000, "3,000,000"), (0.000_01, "0.00001"), (-1234.5, "-1,234"),
    ],
)  # fmt: skip
def test_no_number_hides_digits_in_an_exponent_and_thousands_stand_apart(value: float, text: str) -> None:
    assert plain(value) == text


def test_limits_and_rates_of_millions_are_written_out_wherever_they_are_said() -> None:
    use = RegionUse("rgn-1", "eu", "EU", *(0.0,) * 6, 2_000_000, False, "", None, "", None, None, False, True)
    assert 'placeholder="2,000,000"' in str(WhatIfForm(QueryDict("factor=1"), [use], of_one_pool=True)["limit-rgn-1"])
    machine = {"rate": 1_200_000.0, "processes": 1, "cores": 2, "load": 0.5}
    assert sentence_of(machine).startswith("It offers up to 1,200,000 requests/s here")
    plan = Plan((Endpoint("192.0.2.1", 80),), Request("a.example", "/"), rate=5.0, max_answer_bytes=2**31)
    with pytest.raises(LoadError, match=r"max_answer_bytes must be between 1 and 1,073,741,824\."):
        check(plan)


def test_a_unit_stands_beside_its_number_and_has_no_plural_of_one() -> None:
    said = [measured(*each) for each in ((5, "%"), (1000, "ms"), (1, "times"), (14.4, "times"), (1, "days"), (3, ""))]
    assert said == ["5 %", "1,000 ms", "1 time", "14.4 times", "1 day", "3"]
    assert [requests_per_second(each) for each in (1, 12_345.6)] == ["1 request/s", "12,346 requests/s"]
