"""Flows become samples, what nodes count together and how far regions are is kept for who watches overflow."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from apps.drivers.proxy.contract import CounterReading, CounterRow
from apps.fleet.models import RegionLatency
from apps.observe import selectors
from apps.observe.collect import readings
from apps.observe.collect.readings import Reading
from apps.observe.collect.recorder import Recorder
from apps.observe.live import store as live
from apps.observe.models import NodeReport, Sample
from tests.apps.observe_env import START, Env, make_env, reading, row

pytestmark = pytest.mark.django_db
TO, BOUNCE = "pool-1/to/rgn-2/rate", "pool-1/bounce/rgn-1/rate"


@pytest.fixture
def env(db: None) -> Env:
    return make_env()


def flow(key: str, requests: int) -> CounterRow:
    """A flow as the agent tells it."""
    return row("flow", key, requests, parent_id="pool-1", connections=0, status_2xx=0, bytes_out=0, status="")


def tick(recorder: Recorder, env: Env, second: int, *rows: CounterRow, epoch: str = "one", **more: object) -> None:
    """The first node is read, stored and tended."""
    node, at = env.nodes[0], START + timedelta(seconds=second)
    found = reading(node, at, rows, epoch)
    assert found.counters is not None
    counters = replace(found.counters, **more)  # type: ignore[arg-type]  # field names are the caller's
    read = {node.pk: replace(found, counters=counters)}
    recorder.gather(read.values())
    recorder.close_buckets(at.timestamp())
    recorder.store(read, at)
    recorder.tend(at)
    recorder.measure(at)


@pytest.mark.both_engines
def test_flows_are_stored_by_ten_seconds_and_by_minutes(env: Env) -> None:
    recorder = Recorder()
    for second in range(0, 150, 2):
        tick(recorder, env, second, flow(TO, 100 + 5 * second), flow(BOUNCE, 7))
    short = Sample.objects.filter(kind="flow", resolution=10).order_by("at")
    assert [sample.requests for sample in short][:3] == [40, 50, 50]
    assert {(sample.object_id, sample.parent_id) for sample in short} == {(TO, "pool-1")}
    minutes = Sample.objects.filter(kind="flow", resolution=60).order_by("at")
    assert [(sample.requests, sample.seconds) for sample in minutes] == [(290, 58), (300, 60)]


def test_rejected_connections_are_counted_for_operators_and_make_no_traffic(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    assert env.listener is not None
    name = f"lst-{env.listener.pk}"
    for second in range(0, 24, 2):
        tick(recorder, env, second, row("frontend", name, 7), row("rejected", name, 0, connections=second))
    monkeypatch.setattr(selectors, "now", lambda: START + timedelta(seconds=24))
    listeners, half_an_hour = [env.listener.pk], timedelta(minutes=30)
    counted = [selectors.rejected_connections(who, listeners, half_an_hour) for who in (env.operator, env.acme)]
    assert counted == [{env.listener.pk: 18}, {}]
    assert not Sample.objects.filter(kind="node", connections__gt=0).exists()


def test_a_flow_that_began_in_the_middle_of_a_bucket_is_no_faster_for_that(env: Env) -> None:
    recorder, pool = Recorder(), row("backend", "pool-1", 7)
    for second in range(0, 18, 2):
        tick(recorder, env, second, pool)
    tick(recorder, env, 18, pool, flow(TO, 20))
    tick(recorder, env, 20, pool)
    stored = Sample.objects.get(kind="flow")
    assert (stored.requests, stored.seconds) == (20, 10)


def test_a_reload_loses_no_flow_and_counts_none_twice(env: Env) -> None:
    recorder = Recorder()
    tick(recorder, env, 0, flow(TO, 100))
    tick(recorder, env, 2, flow(TO, 110))
    tick(recorder, env, 4, flow(TO, 3), epoch="two")
    tick(recorder, env, 6, flow(TO, 8), epoch="two")
    tick(recorder, env, 12)
    assert Sample.objects.get(kind="flow").requests == 10 + 3 + 5


def test_flows_show_live(env: Env, live_redis: str) -> None:
    recorder, node = Recorder(), env.nodes[0]
    read = {}
    for second in (0, 2):
        at = START + timedelta(seconds=second)
        read = {node.pk: reading(node, at, (flow(TO, 10 * second),))}
        recorder.gather(read.values())
    recorder.show(read)
    shown = live.read_kind([node.pk], "flow")
    assert shown is not None
    counts = shown[node.pk].rows["flow", TO]
    assert (counts.requests, counts.seconds) == (20, 2)


@pytest.mark.both_engines
def test_what_nodes_count_together_is_kept_without_zeros_each_ten_seconds(env: Env) -> None:
    recorder, node = Recorder(), env.nodes[0]
    admitted = {"pool-1/node-5": 93, "pool-1/node-6": 0}
    tick(recorder, env, 0, admitted=admitted, peers={"node-6": True})
    report = NodeReport.objects.get(node=node)
    assert (report.admitted, report.peers, report.counted_at) == ({"pool-1/node-5": 93}, {"node-6": True}, START)
    tick(recorder, env, 2, peers={"node-6": False})
    report.refresh_from_db()
    assert report.peers == {"node-6": True}
    tick(recorder, env, 12, peers={"node-6": False})
    report.refresh_from_db()
    assert (report.admitted, report.peers) == ({}, {"node-6": False})
    # A reading without counters, as during a restart, says nothing of them.
    at = START + timedelta(seconds=24)
    recorder.store({node.pk: Reading(node.pk, at, at, error="No answer.")}, at)
    report.refresh_from_db()
    assert report.peers == {"node-6": False}
    # Where the node counts alone again, nothing is left of it.
    tick(recorder, env, 36)
    report.refresh_from_db()
    assert (report.admitted, report.peers) == ({}, {})


def test_the_quickest_of_half_a_minute_is_how_far_a_region_is(env: Env) -> None:
    eu, us = env.regions
    recorder = Recorder()
    tick(recorder, env, 0)
    for second, ms in ((2, 31), (4, 12), (6, 90)):
        tick(recorder, env, second, distances_ms={f"rgn-{us.pk}": ms, "rgn-999999": 4})
    assert not RegionLatency.objects.exists()
    tick(recorder, env, 30, distances_ms={f"rgn-{us.pk}": 44})
    known = RegionLatency.objects.get()
    assert (known.from_region_id, known.to_region_id, known.measured_ms) == (eu.pk, us.pk, 12)


def test_words_of_a_broken_agent_are_left_out() -> None:
    found = readings.sound(
        CounterReading(
            "one",
            1.0,
            (flow(TO, 1), flow("pool-1/steal/rgn-2/rate", 1), flow(TO + "/more", 1), flow("pool-1/to/moon/rate", 1)),
            {},
            admitted={"pool-1/node-5": 3, "pool-1/node-5/guest": 4, "pool-1/node-5/thief": 5, "pool-1/node-6": -1},
            peers={"node-6": True, "node-7": 1, "moon": True},  # type: ignore[dict-item]  # hostile on purpose
            distances_ms={"rgn-2": 5, "rgn-3": -1, "rgn-4": 10**9, "moon": 1},
        )
    )
    assert [each.object_id for each in found.rows] == [TO]
    assert found.admitted == {"pool-1/node-5": 3, "pool-1/node-5/guest": 4}
    assert found.peers == {"node-6": True, "node-7": False}
    assert found.distances_ms == {"rgn-2": 5}
