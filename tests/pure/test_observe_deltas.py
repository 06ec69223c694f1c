"""Cumulative counters become deltas that are never negative and never invented."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apps.drivers.proxy.contract import CounterReading, CounterRow
from apps.observe.collect.buckets import Gatherer, into_minutes
from apps.observe.collect.deltas import Counts, bucket_difference, node_total, take
from tests.apps.observe_env import row

POOL = ("backend", "pool-1")


def read(at: float, *rows: CounterRow, epoch: str = "one", latency: dict[int, int] | None = None) -> CounterReading:
    return CounterReading(epoch, at, rows, {"pool-1": latency} if latency else {})


def test_the_first_reading_tells_gauges_and_no_counts() -> None:
    _, found = take(None, read(100, row("backend", "pool-1", 500, queue_now=3)))
    assert (found[POOL].requests, found[POOL].seconds, found[POOL].queue_now) == (0, 0.0, 3)


def test_counts_are_differences_within_an_epoch() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500), latency={10: 7}))
    _, found = take(memory, read(102, row("backend", "pool-1", 512, status_5xx=2), latency={10: 9, 20: 1}))
    assert (found[POOL].requests, found[POOL].status_5xx, found[POOL].seconds) == (12, 2, 2.0)
    assert found[POOL].latency == {10: 2, 20: 1}


def test_a_new_epoch_counts_from_zero() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500), latency={10: 7}))
    _, found = take(memory, read(102, row("backend", "pool-1", 5), epoch="two", latency={10: 5}))
    assert (found[POOL].requests, found[POOL].latency) == (5, {10: 5})


def test_a_row_that_fell_in_the_same_epoch_began_anew() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500)))
    _, found = take(memory, read(102, row("backend", "pool-1", 4)))
    assert found[POOL].requests == 4


def test_a_row_that_was_missing_once_is_not_counted_twice() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500)))
    memory, found = take(memory, read(102))
    assert found == {}
    _, found = take(memory, read(104, row("backend", "pool-1", 503)))
    assert found[POOL].requests == 3


def test_a_server_that_was_added_counts_from_zero() -> None:
    memory, _ = take(None, read(100, row("backend", "pool-1", 500)))
    _, found = take(memory, read(102, row("backend", "pool-1", 500), row("server", "srv-9", 2)))
    assert found["server", "srv-9"].requests == 2


def test_a_silence_of_minutes_is_no_peak_and_a_clock_set_back_no_rate() -> None:
    memory, _ = take(None, read(1000, row("backend", "pool-1", 500)))
    for at in (1500, 900, 1000):
        _, found = take(memory, read(at, row("backend", "pool-1", 90_000)))
        assert (found[POOL].requests, found[POOL].seconds) == (0, 0.0)


def test_routes_at_rest_need_no_row() -> None:
    memory, _ = take(None, read(100, row("route", "route-1", 5), row("route", "route-2", 5)))
    _, found = take(memory, read(102, row("route", "route-1", 5), row("route", "route-2", 6)))
    assert set(found) == {("route", "route-2")}


values = st.integers(0, 2**40)
readings = st.lists(
    st.tuples(st.sampled_from("ab"), st.floats(0.1, 90), st.lists(st.tuples(values, values), max_size=3))
)


@given(readings)
def test_nothing_is_ever_negative(history: list[tuple[str, float, list[tuple[int, int]]]]) -> None:
    memory, at = None, 1000.0
    for epoch, step, numbers in history:
        at += step
        rows = [row("backend", f"pool-{index}", count, errors=bad) for index, (count, bad) in enumerate(numbers)]
        memory, found = take(memory, read(at, *rows, epoch=epoch, latency={10: numbers[0][0]} if numbers else None))
        for counts in found.values():
            assert min(counts.requests, counts.errors, counts.bytes_out, counts.seconds) >= 0
            assert all(count > 0 for count in counts.latency.values())


def test_a_latency_bucket_that_fell_began_anew() -> None:
    assert bucket_difference({10: 5, 20: 5}, {10: 2, 20: 6, 50: 0}) == {10: 2, 20: 1}


def test_a_node_is_the_sum_of_its_frontends_with_the_latency_and_queues_of_its_pools() -> None:
    rows = {
        ("frontend", "lst-1"): Counts(seconds=2, requests=3, connections_now=1),
        ("frontend", "lst-2"): Counts(seconds=2, requests=4, connections_now=2),
        ("backend", "pool-1"): Counts(seconds=2, requests=7, queue_now=5, latency={10: 7}),
    }
    total = node_total(rows)
    assert (total.requests, total.connections_now, total.queue_now) == (7, 3, 5)
    assert (total.latency, total.seconds) == ({10: 7}, 2)


def test_a_bucket_closes_with_the_first_reading_after_its_end() -> None:
    gatherer = Gatherer(1)
    closed = [gatherer.put(at, {POOL: Counts(seconds=2, requests=1)}) for at in (1000, 1002, 1004, 1006, 1008, 1010)]
    assert closed[:5] == [None] * 5
    bucket = closed[5]
    assert bucket is not None
    assert (bucket.at, bucket.rows[POOL].requests, bucket.rows[POOL].seconds) == (1000, 5, 10)
    assert gatherer.close(1019) is None
    assert gatherer.close(1020) is not None


def test_live_numbers_cover_about_ten_seconds() -> None:
    gatherer = Gatherer(1)
    for step in range(50):
        gatherer.put(1000 + 2 * step, {POOL: Counts(seconds=2, requests=3), ("frontend", "lst-1"): Counts(seconds=2)})
    assert gatherer.window()[POOL].seconds == 10
    assert gatherer.window()[POOL].requests == 15


def test_an_object_that_is_gone_leaves_the_live_numbers_at_once() -> None:
    gatherer = Gatherer(1)
    gatherer.put(1000, {POOL: Counts(seconds=2, requests=3)})
    gatherer.put(1002, {("backend", "pool-2"): Counts(seconds=2)})
    assert POOL not in gatherer.window()


def test_the_time_in_which_a_route_rested_counts_for_its_rate() -> None:
    gatherer, route = Gatherer(1), ("route", "route-1")
    for step in range(5):
        busy = {route: Counts(seconds=2, requests=10)} if step == 2 else {}
        gatherer.put(1000 + 2 * step, {("frontend", "lst-1"): Counts(seconds=2), **busy})
    assert (gatherer.window()[route].requests, gatherer.window()[route].seconds) == (10, 10)


def test_a_minute_counts_the_buckets_in_which_an_object_rested() -> None:
    node = ("node", "node-1")
    rows = [(1, node, Counts(seconds=10)) for _ in range(6)] + [(1, POOL, Counts(seconds=10, requests=60))]
    assert into_minutes(rows)[1, POOL].seconds == 60
