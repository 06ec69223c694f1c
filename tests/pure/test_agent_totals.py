"""A node's counters go on over reloads: nothing is counted twice, nothing that was read is lost, nothing falls."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from apps.agent.process import totals as module
from apps.agent.process.counters import COUNTED, nothing
from apps.agent.process.totals import Totals

FIRST, SECOND, THIRD = "7-4000000000", "8-4000000005", "9-4000000009"
OBJECTS = {"pool-1": "backend", "lst-1": "frontend", "route-1": "route", "pool-1/to/rgn-2/rate": "flow"}


def read(worker: str, latency: int = 0, probes: int = 0, **requests: int) -> dict[str, Any]:
    """What a worker tells: requests by object, with `_` for what names cannot hold."""
    rows = []
    for written, count in requests.items():
        name = next(each for each in OBJECTS if each.replace("-", "_").replace("/", "_") == written)
        rows.append(nothing(OBJECTS[name], name) | {"requests": count, "bytes_out": 10 * count})
    return {
        "epoch": worker,
        "probes": {"lst-1": probes},
        "rows": rows,
        "latency_buckets": {"pool-1": {"100": latency}} if latency else {},
    }


def told(found: dict[str, Any]) -> dict[str, int]:
    return {row["object_id"]: row["requests"] for row in found["rows"]}


def test_counters_go_on_when_another_worker_counts() -> None:
    totals = Totals()
    assert told(totals.add(read(FIRST, pool_1=100, latency=90))) == {"pool-1": 100}
    found = totals.add(read(SECOND, pool_1=3, latency=2))
    assert told(found) == {"pool-1": 103}
    assert (found["epoch"], found["resumed"]) == (FIRST, False)
    assert found["latency_buckets"] == {"pool-1": {"100": 92}}
    assert found["rows"][0]["bytes_out"] == 1030
    assert told(totals.add(read(THIRD, pool_1=0))) == {"pool-1": 103}


def test_what_a_worker_counted_while_it_left_is_added_once() -> None:
    totals = Totals()
    totals.add(read(FIRST, pool_1=100))
    totals.add(read(SECOND, pool_1=3))
    assert list(totals.leaving) == [FIRST]
    for _ in range(2):
        assert totals.add_late(FIRST, read(FIRST, pool_1=105, route_1=2))
    assert told(totals.add(read(SECOND, pool_1=4))) == {"pool-1": 109, "route-1": 2}
    assert not totals.add_late(FIRST, read(THIRD, pool_1=900)), "its process number belongs to another one"
    totals.forget([FIRST])
    assert not totals.add_late(FIRST, read(FIRST, pool_1=900))


def test_probes_stay_no_traffic_when_a_worker_that_stops_has_emptied_its_tables() -> None:
    totals = Totals()
    assert told(totals.add(read(FIRST, lst_1=19, probes=12)))["lst-1"] == 7
    assert told(totals.add(read(FIRST, lst_1=20)))["lst-1"] == 8
    totals.add(read(SECOND, lst_1=12, probes=12))
    totals.add_late(FIRST, read(FIRST, lst_1=21))
    assert told(totals.add(read(SECOND, lst_1=13, probes=12)))["lst-1"] == 10


def test_a_route_without_a_request_yet_keeps_its_row_and_an_object_that_is_gone_does_not() -> None:
    totals = Totals()
    totals.add(read(FIRST, pool_1=100, route_1=60, pool_1_to_rgn_2_rate=7, latency=5))
    found = totals.add(read(SECOND, lst_1=0))
    assert told(found) == {"lst-1": 0, "route-1": 60, "pool-1/to/rgn-2/rate": 7}
    assert [row["parent_id"] for row in found["rows"] if row["kind"] == "flow"] == ["pool-1"]
    assert found["latency_buckets"] == {}
    assert told(totals.add(read(SECOND, lst_1=0, route_1=2)))["route-1"] == 62


def test_a_row_that_was_cleared_or_vanished_goes_on_from_what_it_had() -> None:
    totals = Totals()
    totals.add(read(FIRST, pool_1=100, route_1=60))
    assert told(totals.add(read(FIRST, pool_1=1))) == {"pool-1": 101, "route-1": 60}
    assert told(totals.add(read(FIRST, pool_1=2, route_1=4))) == {"pool-1": 102, "route-1": 64}


def test_a_probe_that_was_counted_a_moment_later_than_the_requests_is_no_new_beginning() -> None:
    totals = Totals()
    assert [told(totals.add(read(FIRST, lst_1=count)))["lst-1"] for count in (500, 499, 500, 503)] == [
        500,
        500,
        500,
        503,
    ]
    assert told(totals.add(read(FIRST, lst_1=2)))["lst-1"] == 505


@pytest.mark.parametrize(("worker", "resumed"), [("7-1", True), (FIRST, False)])
def test_a_worker_that_ran_before_the_agent_did_is_said_to_be_resumed(worker: str, resumed: bool) -> None:
    totals = Totals()
    found = totals.add(read(worker, pool_1=100))
    assert (found["epoch"], found["resumed"], told(found)) == (worker, resumed, {"pool-1": 100})


def test_more_rows_than_an_agent_keeps_begin_a_new_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = Totals()
    monkeypatch.setattr(module, "MOST_ROWS", 1)
    totals.add(read(FIRST, pool_1=100, route_1=60))
    totals.add(read(SECOND, pool_1=1))
    found = totals.add(read(THIRD, pool_1=5))
    assert (found["epoch"], found["resumed"], told(found)) == (THIRD, False, {"pool-1": 5})


STEPS = some.lists(some.tuples(some.booleans(), some.integers(0, 5), some.integers(0, 5)), max_size=30)


@given(STEPS)
def test_totals_are_the_sum_of_all_that_was_counted(steps: list[tuple[bool, int, int]]) -> None:
    """Of each step: whether another worker counts, and what."""
    totals, worker, pool, route, sent = Totals(), 1, 0, 0, {"pool-1": 0}
    for reload, to_pool, to_route in steps:
        worker, pool, route = (worker + 1, 0, 0) if reload else (worker, pool, route)
        pool, route = pool + to_pool, route + to_route
        known = {"route_1": route} if route else {}  # a worker knows a route from its first request on
        found = told(totals.add(read(f"{worker}-4000000000", pool_1=pool, **known)))
        sent["pool-1"] += to_pool
        if to_route:
            sent["route-1"] = sent.get("route-1", 0) + to_route
        assert found == sent


def test_every_count_of_a_row_is_carried_over() -> None:
    totals = Totals()
    row = nothing("server", "srv-1", "pool-1") | dict.fromkeys(COUNTED, 2) | {"connections_now": 5, "status": "UP"}
    totals.add({"epoch": FIRST, "probes": {}, "rows": [row], "latency_buckets": {}})
    (after,) = totals.add({"epoch": SECOND, "probes": {}, "rows": [dict(row)], "latency_buckets": {}})["rows"]
    assert [after[name] for name in COUNTED] == [4] * len(COUNTED)
    assert (after["connections_now"], after["status"], after["parent_id"]) == (5, "UP", "pool-1")
