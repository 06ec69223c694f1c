"""The maximum that is stated: found in few tries whatever it is, kept for a while, said with a margin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from apps.drivers.load import maximum
from apps.drivers.load.bounds import MOST_RATE
from apps.drivers.load.contract import Endpoint, Maximum, Plan, Request, Second, Tls
from apps.drivers.load.http1.calibrating import CLOSE_ENOUGH, LOWEST, highest, kept

PLAN = Plan((Endpoint("127.0.0.1", 1),), Request("a.example"), rate=1.0)
CALM = Maximum(40_000.0, 1, 1_000.0, 2, 0.5)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """Before and after."""
    maximum.forget()
    yield
    maximum.forget()


def machine(border: float, tried: list[float]) -> Callable[[float], Awaitable[bool]]:
    """One that holds every rate up to the border."""

    async def holds(rate: float) -> bool:
        tried.append(rate)
        return rate <= border

    return holds


@pytest.mark.parametrize("border", [LOWEST, 130.0, 999.0, 3_999.0, 4_000.0, 13_000.0, 45_000.0, 199_000.0])
def test_the_border_is_found_to_a_tenth_from_below_in_few_tries(border: float) -> None:
    tried: list[float] = []
    found = asyncio.run(highest(machine(border, tried)))
    assert border / CLOSE_ENOUGH <= found <= border
    assert len(tried) <= 12


def test_a_machine_without_end_is_asked_no_more_than_any_plan_may_have_and_a_dead_one_holds_nothing() -> None:
    tried: list[float] = []
    assert asyncio.run(highest(machine(1e9, tried))) == max(tried) == MOST_RATE
    assert asyncio.run(highest(machine(0.0, tried))) == 0


def test_when_the_time_is_over_the_last_rate_that_held_is_said() -> None:
    times = iter([True, True, True, False])
    assert asyncio.run(highest(machine(1e9, []), lambda: next(times))) == 16_000


def second(**values: object) -> Second:
    """A twentieth of a second in which all was well."""
    made = Second(0.0, 1000.0, 50, 50, 50, {200: 50}, {}, 0, 1, "")
    return replace(made, **values)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("last", "fine"),
    [({}, True), ({"sent": 40}, False), ({"generator_limited": True}, False), ({"errors": {"refused": 9}}, False)],
)
def test_a_rate_holds_when_all_left_in_time_at_the_end(last: dict[str, object], fine: bool) -> None:
    assert kept([second(), second(), second(**last)]) is fine


def test_what_happens_in_the_middle_and_is_made_good_does_not_count() -> None:
    assert kept([second(generator_limited=True), second(), second()])


def test_a_maximum_is_kept_for_an_hour_and_that_of_a_busy_machine_for_a_minute() -> None:
    busy = replace(CALM, load=8.0)
    assert [maximum.stale(CALM, 1_000.0 + age) for age in (1, 3_599, 3_601)] == [False, False, True]
    assert [maximum.stale(busy, 1_000.0 + age) for age in (1, 59, 61)] == [False, False, True]
    assert maximum.stale(CALM, 0.0)  # a clock that was set back


@pytest.mark.parametrize(
    ("values", "rate"),
    [
        ({}, 32_000.0),
        ({"tls": Tls("a.example")}, 19_000.0),
        ({"keep_alive": False}, 8_000.0),
        ({"keep_alive": False, "tls": Tls("a.example")}, 480.0),
    ],
)
def test_what_is_stated_is_less_than_what_was_found_by_a_margin_and_the_protocol(
    values: dict[str, object], rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_001.0)
    maximum.remember(CALM)
    maximum.remember(replace(CALM, rate=10_000.0), keep_alive=False)
    assert maximum.stated(replace(PLAN, **values)) == replace(CALM, rate=rate)  # type: ignore[arg-type]  # by name


def test_all_cores_but_one_count_and_processes_are_as_many_as_the_found_rate_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_001.0)
    maximum.remember(replace(CALM, cores=8))
    found = maximum.stated(PLAN)
    assert (found.rate, found.processes) == (7 * 32_000.0, 7)
    assert maximum.per_process(PLAN) == 32_000.0
    assert maximum.stated(replace(PLAN, max_connections=2)).processes == 2


@pytest.mark.parametrize(("rate", "said"), [(45_254.8, 45_000), (999.0, 990), (36.4, 36), (4.8, 4), (0.2, 0)])
def test_rates_are_said_to_two_digits_from_below(rate: float, said: float) -> None:
    assert maximum.rounded(rate) == said
