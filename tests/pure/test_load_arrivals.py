"""The timetable of due instants under changing rates, by arithmetic and by statistics."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.drivers.load.contract import Arrivals
from apps.drivers.load.http1.arrivals import NEVER, Timetable

CHANGES = st.lists(st.tuples(st.floats(0.01, 3.0), st.floats(0.0, 200.0), st.floats(0.0, 3.0)), min_size=1, max_size=8)


def taken(table: Timetable, until: float) -> list[float]:
    """All instants before `until`."""
    found = []
    while table.next < until:
        found.append(table.take())
    return found


def steady(arrivals: Arrivals, rate: float, seed: int = 0, phase: float = 1.0) -> Timetable:
    table = Timetable(arrivals, 0.0, seed, phase)
    table.change(0.0, rate)
    return table


def test_even_arrivals_are_as_far_apart_as_the_rate_says() -> None:
    assert taken(steady(Arrivals.CONSTANT, 4.0), 1.1) == [0.25, 0.5, 0.75, 1.0]


def test_a_timetable_without_a_rate_never_comes() -> None:
    assert Timetable(Arrivals.POISSON, 0.0).next == NEVER


def test_a_ramp_from_zero_brings_half_as_many() -> None:
    table = Timetable(Arrivals.CONSTANT, 0.0)
    table.change(0.0, 100.0, 2.0)
    ramp = taken(table, 2.0 + 1e-9)
    assert len(ramp) == 100
    assert ramp[0] == pytest.approx(math.sqrt(2 / 50))  # 25 t² = 1
    assert len(taken(table, 3.0 + 1e-9)) == 100


def test_a_ramp_downwards_ends_at_the_lower_rate() -> None:
    table = steady(Arrivals.CONSTANT, 100.0)
    taken(table, 1.0 + 1e-9)
    table.change(1.0, 20.0, 1.0)
    assert len(taken(table, 2.0 + 1e-9)) == 60
    assert len(taken(table, 3.0 + 1e-9)) == 20


def test_a_pause_loses_no_arrival_and_doubles_none() -> None:
    table = steady(Arrivals.CONSTANT, 10.0)
    taken(table, 0.25)  # the one of 0.2; half of the way to the next is done
    table.change(0.25, 0.0)
    assert table.next == NEVER
    table.change(7.0, 10.0)
    assert table.take() == pytest.approx(7.05)


def test_what_is_due_already_stays_due_when_the_rate_falls() -> None:
    table = steady(Arrivals.CONSTANT, 10.0)
    table.change(0.5, 0.0)
    assert table.next == pytest.approx(0.5)


def test_the_same_seed_gives_the_same_instants_and_another_does_not() -> None:
    first, same, other = (taken(steady(Arrivals.POISSON, 50.0, seed), 10.0) for seed in (1, 1, 2))
    assert first == same
    assert first != other


def test_independent_callers_are_distributed_as_poisson_says() -> None:
    instants = taken(steady(Arrivals.POISSON, 200.0, 7), 500.0)
    gaps = sorted(later - earlier for earlier, later in itertools.pairwise(instants))
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(1 / 200, rel=0.02)
    assert spread == pytest.approx(mean, rel=0.02)  # an exponential distribution
    longest = max(abs(_below(gaps, 200.0, at / 1000) - at / 1000) for at in range(1, 1000))
    assert longest < 1.95 / math.sqrt(len(gaps))  # Kolmogorov–Smirnov at 0.1 %


def _below(gaps: list[float], rate: float, share: float) -> float:
    """The share of the gaps, in their order, below the quantile that theory names."""
    return bisect_right(gaps, -math.log(1 - share) / rate) / len(gaps)


def test_even_arrivals_fail_the_same_test_of_randomness() -> None:
    gaps = [1 / 200] * 1000
    assert max(abs(_below(gaps, 200.0, at / 100) - at / 100) for at in range(1, 100)) > 0.3


def test_poisson_on_a_ramp_has_the_expected_number() -> None:
    counts = []
    for seed in range(200):
        table = Timetable(Arrivals.POISSON, 0.0, seed)
        table.change(0.0, 100.0, 4.0)
        counts.append(len(taken(table, 4.0)))
    assert sum(counts) / len(counts) == pytest.approx(200, abs=4 * math.sqrt(200 / 200))


@pytest.mark.parametrize("processes", [2, 3, 7])
def test_several_timetables_with_phases_keep_the_pace_of_one(processes: int) -> None:
    parts = [steady(Arrivals.CONSTANT, 70.0 / processes, phase=(each + 1) / processes) for each in range(processes)]
    together = sorted(itertools.chain(*(taken(part, 2.001) for part in parts)))
    assert together == pytest.approx(taken(steady(Arrivals.CONSTANT, 70.0), 2.001))


@given(changes=CHANGES)
def test_even_arrivals_follow_the_integral_of_any_rate(changes: list[tuple[float, float, float]]) -> None:
    table, now, wanted, seen = Timetable(Arrivals.CONSTANT, 0.0), 0.0, 0.0, 0
    last = 0.0
    for wait, rate, ramp in changes:
        table.change(now, rate, ramp)
        wanted += table.expected(now, now + wait)
        now += wait
        instants = taken(table, now)
        assert instants == sorted(instants)
        assert all(at >= last for at in instants)
        last = instants[-1] if instants else last
        seen += len(instants)
    assert abs(seen - wanted) <= 1 + 1e-6
