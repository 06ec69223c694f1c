"""Cumulative counters become deltas that are never negative and never invented."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.drivers.proxy.contract import CounterReading, CounterRow
from apps.observe.collect.buckets import Gatherer, into_one
from apps.observe.collect.deltas import Counts, Memory, Step, UnknownBase, bucket_difference, node_total, take
from tests.apps.observe_env import row

POOL = ("backend", "pool-1")


def read(at: float, *rows: CounterRow, epoch: str = "one", latency: dict[int, int] | None = None) -> CounterReading:
    return CounterReading(epoch, at, rows, {"pool-1": latency} if latency else {})


def test_the_first_reading_tells_gauges_and_no_counts() -> None:
    _, step = take(None, read(100, row("backend", "pool-1", 500, queue_now=3)))
    assert (step.rows[POOL].requests, step.rows[POOL].seconds, step.rows[POOL].queue_now) == (0, 0.0, 3)


def test_counts_are_differences_within_an_epoch() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500), latency={10: 7}))
    _, step = take(memory, read(102, row("backend", "pool-1", 512, status_5xx=2), latency={10: 9, 20: 1}))
    assert (step.rows[POOL].requests, step.rows[POOL].status_5xx, step.rows[POOL].seconds) == (12, 2, 2.0)
    assert step.rows[POOL].latency == {10: 2, 20: 1}


def test_a_new_epoch_counts_from_zero() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500), latency={10: 7}))
    _, step = take(memory, read(102, row("backend", "pool-1", 5), epoch="two", latency={10: 5}))
    assert (step.rows[POOL].requests, step.rows[POOL].latency) == (5, {10: 5})


def test_of_an_epoch_that_is_resumed_only_what_comes_now_counts() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500)))
    memory, step = take(memory, replace(read(102, row("backend", "pool-1", 505), epoch="two"), resumed=True))
    assert (step.seconds, step.rows[POOL].requests) == (0.0, 0)
    _, step = take(memory, replace(read(104, row("backend", "pool-1", 507), epoch="two"), resumed=True))
    assert (step.seconds, step.rows[POOL].requests) == (2.0, 2)


def test_a_row_that_fell_in_the_same_epoch_began_anew() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500)))
    _, step = take(memory, read(102, row("backend", "pool-1", 4)))
    assert step.rows[POOL].requests == 4


def test_a_listener_whose_counts_waver_by_a_probe_did_not_begin_anew() -> None:
    memory, _ = take(None, read(100, row("frontend", "lst-1", 500, connections=40)))
    memory, step = take(memory, read(102, row("frontend", "lst-1", 500, status_2xx=499, connections=39)))
    assert (step.rows or {("frontend", "lst-1"): Counts()})["frontend", "lst-1"].requests == 0
    memory, step = take(memory, read(104, row("frontend", "lst-1", 503, connections=41)))
    found = step.rows["frontend", "lst-1"]
    assert (found.requests, found.status_2xx, found.connections) == (3, 3, 1)
    _, step = take(memory, read(106, row("frontend", "lst-1", 4)))
    assert step.rows["frontend", "lst-1"].requests == 4, "one that really began anew counts from zero"


def test_a_row_that_was_missing_once_is_not_counted_twice() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500)))
    memory, step = take(memory, read(102))
    assert (step.rows, step.gone) == ({}, {POOL})
    _, step = take(memory, read(104, row("backend", "pool-1", 503)))
    assert step.rows[POOL].requests == 3


def test_a_server_that_was_added_counts_from_zero() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500)))
    _, step = take(memory, read(102, row("backend", "pool-1", 500), row("server", "srv-9", 2)))
    assert step.rows["server", "srv-9"].requests == 2


def test_a_silence_of_minutes_is_no_peak_and_a_clock_set_back_no_rate() -> None:
    memory, _ = take(None, read(1000, row("backend", "pool-1", 500)))
    for at in (1500, 900, 1000):
        _, step = take(memory, read(at, row("backend", "pool-1", 90_000)))
        assert (step.rows[POOL].requests, step.rows[POOL].seconds) == (0, 0.0)


def test_routes_at_rest_need_no_row() -> None:
    memory, _ = take(None, read(100, row("route", "route-1", 5), row("route", "route-2", 5)))
    _, step = take(memory, read(102, row("route", "route-1", 5), row("route", "route-2", 6)))
    assert set(step.rows) == {("route", "route-2")}


values = st.integers(0, 2**40)
readings = st.lists(
    st.tuples(st.sampled_from("ab"), st.floats(0.1, 90), st.lists(st.tuples(values, values), max_size=3))
)


@given(readings)
def test_nothing_is_ever_negative(history: list[tuple[str, float, list[tuple[int, int]]]]) -> None:
    memory, at = None, 1000.0
    for epoch, pause, numbers in history:
        at += pause
        rows = [row("backend", f"pool-{index}", count, errors=bad) for index, (count, bad) in enumerate(numbers)]
        memory, step = take(memory, read(at, *rows, epoch=epoch, latency={10: numbers[0][0]} if numbers else None))
        for counts in step.rows.values():
            assert min(counts.requests, counts.errors, counts.bytes_out, counts.seconds) >= 0
            assert all(count > 0 for count in counts.latency.values())


def test_a_latency_bucket_that_fell_began_anew() -> None:
    assert bucket_difference({10: 5, 20: 5}, {10: 2, 20: 6, 50: 0}) == {10: 2, 20: 1}


def test_a_node_is_the_sum_of_its_frontends_with_the_latency_and_queues_of_its_pools() -> None:
    rows = {
        ("frontend", "lst-1"): Counts(seconds=2, requests=3),
        ("frontend", "lst-2"): Counts(seconds=2, requests=4),
        ("backend", "pool-1"): Counts(seconds=2, requests=7, latency={10: 7}),
    }
    waiting = {("frontend", "lst-1"): 1, ("frontend", "lst-3"): 2, ("backend", "pool-9"): 5}
    total = node_total(Step(2, rows), waiting)
    assert (total.requests, total.connections_now, total.queue_now) == (7, 3, 5)
    assert (total.latency, total.seconds) == ({10: 7}, 2)


def test_what_waits_at_rows_that_rest_counts_for_the_node() -> None:
    memory, _ = take(None, read(100, row("frontend", "lst-1", 5, connections_now=3), row("frontend", "lst-2")))
    memory, step = take(memory, changes(102, memory, row("frontend", "lst-2", 1, connections_now=1)))
    assert node_total(step, memory.waiting).connections_now == 4
    memory, step = take(memory, changes(104, memory, gone=(("frontend", "lst-1"),)))
    assert node_total(step, memory.waiting).connections_now == 1


def test_a_bucket_closes_with_the_first_reading_after_its_end() -> None:
    gatherer = Gatherer(1)
    closed = [gatherer.put(at, read(at, row("backend", "pool-1", at))) for at in range(998, 1012, 2)]
    assert closed[0] is None
    assert closed[1] is not None
    assert closed[2:6] == [None] * 4
    bucket = closed[6]
    assert bucket is not None
    assert (bucket.at, bucket.rows[POOL].requests, bucket.rows[POOL].seconds) == (1000, 10, 10)
    assert gatherer.close(1019) is None
    assert gatherer.close(1020) is not None


def test_live_numbers_cover_about_ten_seconds() -> None:
    gatherer = Gatherer(1)
    for step in range(50):
        gatherer.put(1000 + 2 * step, read(1000 + 2 * step, row("backend", "pool-1", 3 * step)))
    assert gatherer.window()[POOL].seconds == 10
    assert gatherer.window()[POOL].requests == 15


def test_what_was_before_a_silence_of_minutes_is_not_shown_as_live() -> None:
    gatherer = Gatherer(1)
    for at, requests in ((1000, 0), (1002, 50), (1300, 90)):
        gatherer.put(at, read(at, row("backend", "pool-1", requests)))
    assert (gatherer.window()[POOL].requests, gatherer.window()[POOL].seconds) == (0, 0)


def test_an_object_that_is_gone_leaves_the_live_numbers_at_once() -> None:
    gatherer = Gatherer(1)
    gatherer.put(1000, read(1000, row("backend", "pool-1", 3)))
    gatherer.put(1002, read(1002, row("backend", "pool-2")))
    assert POOL not in gatherer.window()
    assert gatherer.rests([POOL]) == {}


def test_the_time_in_which_a_route_rested_counts_for_its_rate() -> None:
    gatherer, route = Gatherer(1), ("route", "route-1")
    for step in range(5):
        requests = 10 if step >= 2 else 0
        gatherer.put(
            1000 + 2 * step, read(1000 + 2 * step, row("frontend", "lst-1"), row("route", "route-1", requests))
        )
    assert (gatherer.window()[route].requests, gatherer.window()[route].seconds) == (10, 8)


def test_a_server_that_came_lately_has_a_rate_of_the_time_since_then() -> None:
    gatherer, server = Gatherer(1), ("server", "srv-1")
    for at in range(1000, 1010, 2):
        servers = (row("server", "srv-1", 8),) if at >= 1006 else ()
        gatherer.put(at, read(at, row("backend", "pool-1", at), *servers))
    assert (gatherer.window()[server].requests, gatherer.window()[server].seconds) == (8, 4)


def test_a_pool_at_rest_has_a_row_in_one_bucket_of_a_minute_and_other_nodes_in_another() -> None:
    stored: dict[int, list[int]] = {}
    for node_id in (1, 2):
        gatherer = Gatherer(node_id)
        closed = [
            gatherer.put(at, read(at, row("backend", "pool-1"), row("server", "srv-1"))) for at in range(0, 122, 2)
        ]
        buckets = [bucket for bucket in closed if bucket is not None and bucket.at]
        stored[node_id] = [bucket.at for bucket in buckets if POOL in dict(bucket.worth_storing())]
        assert all(("server", "srv-1") not in bucket.rows for bucket in buckets)
    assert stored == {1: [50, 110], 2: [40, 100]}


def changes(
    at: float, memory: Memory, *rows: CounterRow, gone: tuple[tuple[str, str], ...] = (), base: str = ""
) -> CounterReading:
    """Only what differs from the reading in memory."""
    memory.token = memory.token or f"token-{at}"
    return CounterReading(memory.epoch, at, rows, {}, base=base or memory.token, gone=gone)


def test_a_row_that_is_not_told_again_rested_and_one_that_is_told_gone_is_gone() -> None:
    gatherer, other = Gatherer(1), ("backend", "pool-2")
    gatherer.put(100, replace(read(100, row("backend", "pool-1", 5), row("backend", "pool-2", 7)), token="a"))
    gatherer.put(102, CounterReading("one", 102, (row("backend", "pool-1", 9),), {}, token="b", base="a"))
    assert gatherer.window()[POOL].requests == 4
    assert gatherer.rests([other])[other].seconds == 2
    gatherer.put(104, CounterReading("one", 104, (), {}, token="c", base="b", gone=(other,)))
    assert other not in gatherer.window() | gatherer.rests([other])
    gatherer.put(106, CounterReading("one", 106, (row("backend", "pool-2", 8),), {}, base="c"))
    assert gatherer.window()[other].requests == 1


@pytest.mark.parametrize("base", ["another", "a"])
def test_changes_of_a_reading_that_was_not_heard_are_refused(base: str) -> None:
    gatherer = Gatherer(1)
    gatherer.put(100, replace(read(100, row("backend", "pool-1", 5)), token="a"))
    later = CounterReading("one" if base == "another" else "two", 102, (row("backend", "pool-2", 1),), {}, base=base)
    with pytest.raises(UnknownBase):
        gatherer.put(102, later)
    # Nothing is known any more, so the node is asked for everything.
    assert gatherer.seen is None or gatherer.seen.token == ""
    gatherer.put(104, replace(read(104, row("backend", "pool-2", 1)), token="c"))
    assert gatherer.rests([POOL]) == {}


def test_a_minute_counts_the_buckets_in_which_an_object_rested() -> None:
    node = ("node", "node-1")
    rows = [(1, node, Counts(seconds=10)) for _ in range(6)] + [(1, POOL, Counts(seconds=10, requests=60))]
    assert into_one(rows)[1, POOL].seconds == 60
