"""The benches' pure parts: schedules, HAProxy's counters as arithmetic, how reports are read and judged."""

from __future__ import annotations

import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench import overflow_cost, overflow_replay, overflow_split
from tests.bench.frequency import Frequency, admitted
from tests.bench.open_loop import (
    CONSTANT,
    POISSON,
    Outcome,
    arrivals,
    most_in_one_second,
    percentile,
)
from tests.bench.windows import COMPILED, RULES, burst_times, try_rule

HTTPERF = """
Total: connections 500 requests 500 replies 500 test-duration 25.336 s
Connection time [ms]: min 384.4 avg 400.6 max 568.3 median 387.5 stddev 35.1
Reply status: 1xx=0 2xx=499 3xx=0 4xx=0 5xx=1
"""
WRK = """
  Latency Distribution
     50%  512.00us
     99%    2.40ms
  335448 requests in 6.00s, 30.07MB read
Requests/sec:  55907.81
"""


def _outcome(sent: float, region: str = "rgn-1", status: int = 200) -> Outcome:
    return Outcome(sent, 0, sent, 0.001, status, region)


def test_poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_stream() -> None:
    times = arrivals(POISSON, 100, 200, seed=4)
    gaps = [after - before for before, after in pairwise(times)]
    assert len(times) == pytest.approx(20_000, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(0.01, rel=0.05)


def test_the_most_in_one_second_is_found_wherever_the_second_begins() -> None:
    assert most_in_one_second([0.0, 0.9, 1.0, 1.1, 1.85, 3.0]) == 4
    assert most_in_one_second([]) == 0
    assert percentile([3, 1, 2], 0.99) == 3


def test_a_counter_fades_out_over_the_period_behind_the_events() -> None:
    counter = Frequency(1000)
    for at in range(0, 1000, 10):
        counter.count(at)
    assert counter.rate(999) == 100
    assert counter.rate(1500) == 50
    assert counter.rate(2100) == 0


@given(st.lists(st.integers(0, 40), max_size=200))
def test_a_counter_never_says_more_than_the_events_of_two_periods(gaps: list[int]) -> None:
    counter, at, times = Frequency(1000), 0, list[int]()
    for gap in gaps:
        at += gap * 10
        counter.count(at)
        times.append(at)
        assert counter.rate(at) <= sum(each > at - 2000 for each in times)
        assert counter.rate(at) >= 1


@pytest.mark.parametrize("limit", [10, 100])
def test_both_windows_hold_the_limit_over_time_and_below_it_nothing_is_lost(limit: int) -> None:
    double = admitted(arrivals(POISSON, 2 * limit, 110), 10 * limit, limit * 3 // 2)
    calm = admitted(arrivals(CONSTANT, 0.8 * limit, 50), 10 * limit, limit * 3 // 2)
    assert sum(double) == pytest.approx(110 * limit, rel=0.03)
    assert all(calm)


def test_without_a_bound_everything_is_admitted_and_the_short_one_alone_refuses_bursts() -> None:
    times, extra = burst_times(100)
    assert all(admitted(times, None, None))
    assert sum(not room for room in admitted(times, None, 100)) > 0.4 * len(extra)


def test_the_compiled_windows_spill_nothing_at_eighty_percent_of_a_large_limit() -> None:
    rules = {rule.name: rule for rule in RULES}
    compiled, alone = try_rule(rules[COMPILED], 100, 60), try_rule(rules["10 s alone"], 100, 60)
    assert compiled.spilled_80_poisson == 0
    assert abs(compiled.error_200) < 0.01
    assert compiled.first_seconds < 1.35 < alone.first_seconds
    assert rules[COMPILED].word(100) == "1000|130|"
    assert rules["1 s alone"].word(100) == "|100|"


def test_a_split_is_judged_after_the_first_window() -> None:
    cell = overflow_split.Cell(20, 10, CONSTANT)
    early = [_outcome(at / 15) for at in range(100)]
    steady = [_outcome(11 + at / 10) for at in range(200)] + [_outcome(11.05 + at / 10, "rgn-2") for at in range(200)]
    exact = overflow_split.evaluate(cell, early + steady, "1", 31)
    assert exact.error == pytest.approx(0)
    assert exact.really_offered == pytest.approx(20)
    assert overflow_split.misses(exact) == ""
    short = overflow_split.evaluate(cell, steady[10:], "1", 31)
    assert overflow_split.misses(short) == "split"


def test_a_request_spilled_below_the_limit_or_failed_misses_the_goal() -> None:
    cell = overflow_split.Cell(200, 250, POISSON)
    calm = [_outcome(11 + at / 200) for at in range(2000)]
    assert overflow_split.misses(overflow_split.evaluate(cell, calm, "1", 21)) == ""
    assert overflow_split.misses(overflow_split.evaluate(cell, [*calm, _outcome(12, "rgn-2")], "1", 21)) == "spilled"
    assert overflow_split.misses(overflow_split.evaluate(cell, [*calm, _outcome(12, "", 503)], "1", 21)) == "1 failed"


def test_the_report_of_httperf_is_read() -> None:
    run = overflow_replay.Run("two regions, 20/s, run 1", 20, 7, "6 397")
    found = overflow_replay.read(run, HTTPERF)
    assert (found.mean, found.median, found.longest) == (400.6, 387.5, 568.3)
    assert (found.answers, found.failed) == (499, 1)
    with pytest.raises(ValueError, match="nothing to be read"):
        overflow_replay.read(run, "httperf: connection refused")


def test_the_replay_is_measured_in_multiples_of_the_unloaded_time() -> None:
    runs = (overflow_replay.FIRST[0], *overflow_replay.second(2))
    found = [
        overflow_replay.Measured(run.name, run.theirs, mean, 1, 1, 1, 0)
        for run, mean in zip(runs, (400, 420, 400), strict=True)
    ]
    text, ratios = overflow_replay.report(found)
    assert list(ratios.values()) == [1.05, 1.0]
    assert "3 783" in text


def test_the_report_of_wrk_is_read_and_failures_are_refused() -> None:
    assert overflow_cost.read(WRK) == (55907.81, 2.4, 335448)
    assert overflow_cost.milliseconds("512.00us") == pytest.approx(0.512)
    with pytest.raises(ValueError, match="Non-2xx"):
        overflow_cost.read(WRK + "Non-2xx or 3xx responses: 3\n")


def test_a_way_carries_its_median_and_costs_its_lower_quartile() -> None:
    ways = (overflow_cost.PLAIN, overflow_cost.UNGOVERNED, overflow_cost.GOVERNED)
    goes = [overflow_cost.Go(way, number, 3, 0.5, number, 100 + number) for way in ways for number in range(1, 8)]
    goes.append(overflow_cost.Go(overflow_cost.PLAIN, 900, 5, 1, 900, 900))
    found = overflow_cost.typical(goes)
    assert found[overflow_cost.GOVERNED] == overflow_cost.Go(overflow_cost.GOVERNED, 4, 3, 0.5, 2, 102)
    assert found[overflow_cost.PLAIN].cpu_us < 3
