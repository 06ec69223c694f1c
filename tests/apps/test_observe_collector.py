"""The collector reads every node, is never held up by one, and survives what it depends on."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from apps.core.clock import now
from apps.drivers.proxy.contract import CounterReading
from apps.drivers.proxy.memory import forget_memory_nodes, memory_node
from apps.observe import services
from apps.observe.collect import lease, readings
from apps.observe.collect.collector import DEADLINE, Collector, Journal
from apps.observe.collect.readings import Address, Reading, read_node
from apps.observe.collect.recorder import Recorder
from apps.observe.evaluate.conditions import Type
from apps.observe.live import store as live
from apps.observe.models import CollectorLease, CollectorMember, Condition, NodeReport, Sample
from tests.apps.observe_env import START, Env, make_env, reading, row, state

DEAD_REDIS = "redis://127.0.0.1:1/0"
T = TypeVar("T")


@pytest.fixture
def env(db: None) -> Iterator[Env]:
    forget_memory_nodes()
    yield make_env()
    forget_memory_nodes()


def rows_of(env: Env, requests: int, status: str = "UP") -> tuple:  # type: ignore[type-arg]  # rows
    pool = env.pools["acme"].pk
    return (
        row("frontend", f"lst-{env.listener.pk if env.listener else 0}", requests),
        row("backend", f"pool-{pool}", requests),
        *(row("server", f"srv-{server.pk}", requests, status=status, check="L4CON") for server in env.servers[:2]),
        row("route", f"route-{env.routes['acme'].pk}", requests),
    )


def ticks(recorder: Recorder, env: Env, seconds: int, start: int = 0) -> None:
    """Read the first node each two seconds, ten requests/s."""
    node = env.nodes[0]
    for step in range(start, start + seconds, 2):
        at = START + timedelta(seconds=step)
        found = {node.pk: reading(node, at, rows_of(env, 1000 + 10 * step))}
        recorder.gather(found.values())
        recorder.close_buckets(at.timestamp())
        recorder.store(found, at)
        recorder.tend(at)


def test_samples_are_stored_in_buckets_of_ten_seconds_and_minutes(env: Env) -> None:
    ticks(Recorder(), env, 150)
    short = Sample.objects.filter(kind="backend", resolution=10).order_by("at")
    # The first reading has nothing to compare with, so the first bucket covers eight seconds.
    assert [sample.requests for sample in short][:3] == [80, 100, 100]
    assert [sample.seconds for sample in short][:3] == [8, 10, 10]
    minutes = Sample.objects.filter(kind="backend", resolution=60).order_by("at")
    assert [sample.requests for sample in minutes] == [580, 600]


def test_the_number_of_queries_does_not_grow_with_nodes_and_objects(env: Env) -> None:
    counts = []
    for nodes in (1, 4):
        recorder = Recorder()
        for step in (0, 10):
            at = START + timedelta(seconds=100 * nodes + step)
            found = {node.pk: reading(node, at, rows_of(env, 100 + step)) for node in env.nodes[:nodes]}
            recorder.gather(found.values())
            recorder.close_buckets(at.timestamp())
            with CaptureQueriesContext(connection) as queries:
                recorder.store(found, at)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[0] <= 12


def test_a_new_collector_goes_on_with_the_bucket_that_the_old_one_began(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Recorder()
    ticks(old, env, 6)
    old.flush()
    assert Sample.objects.get(kind="backend").requests == 40
    new = Recorder()
    monkeypatch.setattr("apps.observe.collect.recorder.now", lambda: START + timedelta(seconds=6))
    new.seed()
    ticks(new, env, 6, start=6)
    assert Sample.objects.get(kind="backend", at=START).requests == 40 + 20


@pytest.mark.both_engines
def test_a_report_of_a_push_is_not_overwritten_by_an_older_reading(env: Env) -> None:
    node = env.nodes[0]
    services.note_report(node_id=node.pk, state=state(9))
    old = now() - timedelta(seconds=5)
    Recorder().store({node.pk: Reading(node.pk, old, now(), state(8))}, now())
    assert NodeReport.objects.get(node=node).generation == 9
    Recorder().store({node.pk: Reading(node.pk, now(), now(), state(8))}, now())
    assert NodeReport.objects.get(node=node).generation == 8


def test_only_a_state_that_moved_is_told(env: Env) -> None:
    recorder, node = Recorder(), env.nodes[0]

    def told(found: Reading) -> list[int] | None:
        return recorder.store({node.pk: found}, START)

    assert told(Reading(node.pk, START, START, state(3))) == [node.pk]
    assert told(Reading(node.pk, START, START, state(3))) == []
    assert told(Reading(node.pk, START, START, state(4))) == [node.pk]
    assert told(Reading(node.pk, START, START, error="No answer.")) == [node.pk]
    assert told(Reading(node.pk, START, START, error="No answer.")) == []


def test_a_node_that_falls_silent_is_unreachable_after_a_little_patience(env: Env) -> None:
    recorder, node = Recorder(), env.nodes[0]
    recorder.store({node.pk: Reading(node.pk, START, START, state(3))}, START)

    def reachable() -> bool | None:
        return Condition.objects.get(object_kind="node", object_id=node.pk, type=Type.REACHABLE).status

    for seconds, expected in ((4, True), (20, False)):
        at = START + timedelta(seconds=seconds)
        recorder.store({node.pk: Reading(node.pk, at, at, error="No answer.")}, at)
        assert reachable() is expected
    serving = Condition.objects.get(object_kind="node", object_id=node.pk, type=Type.SERVING)
    assert serving.status is None


def test_servers_of_a_node_that_fell_silent_are_unknown(env: Env) -> None:
    recorder, node, server = Recorder(), env.nodes[0], env.servers[0]

    def up() -> bool | None:
        return Condition.objects.get(object_kind="server", object_id=server.pk).status

    found = {node.pk: reading(node, START, rows_of(env, 10))}
    recorder.gather(found.values())
    recorder.store(found, START)
    assert up() is True
    at = START + timedelta(seconds=30)
    recorder.store({node.pk: Reading(node.pk, at, at, error="No answer.")}, at)
    assert up() is None


def test_rows_that_are_not_ours_or_impossible_are_left_out() -> None:
    good = row("backend", "pool-1", 5)
    bad = (
        row("backend", "pool-1; drop", 5),
        row("backend", "pool-1", -5),
        row("stranger", "pool-1", 5),
        row("server", "srv-1", 5, status="UP\0"),
        row("server", "srv-1", 2**63),
    )
    found = readings.sound(CounterReading("one", 1.0, (good, *bad), {"pool-1": {100: 5, 17: 3, 200: -1}}))
    assert found.rows == (good,)
    assert found.latency_buckets == {"pool-1": {100: 5}}


@pytest.mark.parametrize("broken", [state(-1), state(2**70), state(1, digest="a\0b"), replace(state(1), workers=-1)])
def test_a_state_that_no_table_could_hold_is_refused(broken: object) -> None:
    with pytest.raises(ValueError, match=r"numbers|texts"):
        readings.check_state(broken)  # type: ignore[arg-type]  # hostile on purpose


def test_a_node_without_driver_is_a_reading_with_an_error() -> None:
    found = read_node(Address(1, "odd", "gopher://nowhere"))
    assert found.state is None
    assert "gopher" in found.error


def test_trouble_is_logged_when_it_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal()
    with caplog.at_level(logging.INFO):
        for text in ("", "away", "away", "away still", "", ""):
            journal.trouble("redis", text)
    assert [record.getMessage() for record in caplog.records] == ["redis: away", "redis: works again"]


# The process itself: it asks the database in a thread of its own, so what it is to see has to be committed.


@pytest.fixture
def committed(transactional_db: None) -> Iterator[Env]:
    forget_memory_nodes()
    env = make_env()
    for node in env.nodes:
        there = memory_node(f"observe-{node.name}")
        there.generation, there.rows = 3, rows_of(env, 10)
    yield env
    forget_memory_nodes()


def run(collector: Collector, until: Callable[[], bool], seconds: float = 20) -> None:
    """Run the collector until the condition holds, then end it in an orderly way."""

    async def whole() -> None:
        task = asyncio.create_task(collector.run())
        deadline = time.monotonic() + seconds
        while not await asyncio.to_thread(in_thread, until) and time.monotonic() < deadline:  # noqa: ASYNC110 - polls rows
            await asyncio.sleep(0.05)
        collector.stop()
        await task

    asyncio.run(whole())


def in_thread(work: Callable[[], T]) -> T:
    """What is asked of the database in a thread of its own, whose connection ends with it."""
    try:
        return work()
    finally:
        connection.close()


@pytest.mark.both_engines
def test_the_process_reads_stores_and_shows(committed: Env, live_redis: str) -> None:
    node = committed.nodes[0]
    run(Collector(), lambda: bool(live.read([node.pk], [("node", f"node-{node.pk}")])))
    assert NodeReport.objects.filter(generation=3, serving=True).count() == 4
    # The lease was given back.
    assert not CollectorLease.objects.filter(until__gt=now()).exists()
    assert not CollectorMember.objects.exists()
    assert CollectorLease.objects.count() == lease.SHARDS


def test_redis_away_costs_liveness_only(committed: Env, settings: Settings) -> None:
    settings.REDIS_URL = DEAD_REDIS
    live.client.cache_clear()
    run(Collector(), lambda: NodeReport.objects.filter(seen_at__isnull=False).count() == 4)
    live.client.cache_clear()
    assert NodeReport.objects.filter(seen_at__isnull=False).count() == 4


@pytest.mark.both_engines
def test_a_collector_waits_while_others_hold_every_shard(committed: Env, live_redis: str) -> None:
    later = now() + timedelta(hours=1)
    rows = [CollectorLease(shard=each, holder="somebody else", until=later) for each in lease.EVERY]
    CollectorLease.objects.bulk_create(rows)

    async def look() -> tuple[bool, bool]:
        collector = Collector()
        await collector.tick()
        before = collector.recorder is not None
        await asyncio.to_thread(in_thread, lambda: CollectorLease.objects.update(until=now()))
        await collector.tick()
        collector.stop()
        await collector.run()
        return before, collector.recorder is not None

    assert asyncio.run(look()) == (False, True)


class Hurried(asyncio.SelectorEventLoop):
    """A loop whose clock a test puts forward, so that nobody waits for a deadline."""

    ahead = 0.0

    def time(self) -> float:
        """As it is, and what it was put forward."""
        return super().time() + self.ahead


async def all_of(parts: AsyncIterator[dict[int, Reading]]) -> set[int]:
    """Whoever was heard in any part of a round."""
    return {node_id async for part in parts for node_id in part}


async def one_round(collector: Collector, nodes: Iterable[int], living: set[int]) -> set[int]:
    """Whom the collector heard in one round; the deadline comes when all the living have answered."""
    addresses = [Address(each, f"n{each}", "") for each in nodes]
    loop = asyncio.get_running_loop()
    heard = asyncio.ensure_future(all_of(collector.read(addresses)))
    await asyncio.sleep(0)
    await asyncio.wait([collector._running[each] for each in living], timeout=30)
    assert isinstance(loop, Hurried)
    loop.ahead += DEADLINE
    return await heard


def test_slow_and_dead_nodes_do_not_hold_up_the_others() -> None:
    release, living = threading.Event(), {0, 1, 2}

    def read(address: Address) -> Reading:
        if address.node_id not in living:
            release.wait(30)
        return Reading(address.node_id, now(), now(), state(3))

    async def rounds() -> list[set[int]]:
        collector = Collector(read=read, threads=8)
        return [await one_round(collector, (*range(100, 104), *living), living) for _ in range(2)]

    with asyncio.Runner(loop_factory=Hurried) as runner:
        try:
            assert runner.run(rounds()) == [living, living]
        finally:
            release.set()


def test_what_has_answered_is_shown_while_others_are_still_read() -> None:
    release = threading.Event()

    def read(address: Address) -> Reading:
        if address.node_id == 2:
            release.wait(30)
        return Reading(address.node_id, now(), now(), state(3))

    async def parts() -> list[set[int]]:
        found = []
        async for part in Collector(read=read, threads=2).read([Address(each, f"n{each}", "") for each in (1, 2)]):
            found.append(set(part))
            release.set()
        return found

    assert asyncio.run(parts()) == [{1}, {2}]


def test_a_node_that_answers_when_a_round_is_over_is_asked_again_in_the_next_one() -> None:
    release, asked = threading.Event(), Counter[int]()

    def read(address: Address) -> Reading:
        asked[address.node_id] += 1
        if address.node_id == 2:
            release.wait(30)
        return Reading(address.node_id, now(), now(), state(3))

    async def rounds() -> None:
        collector = Collector(read=read, threads=2)
        assert await one_round(collector, (1, 2), {1}) == {1}
        release.set()
        await collector._running[2]
        following = collector.read([Address(each, f"n{each}", "") for each in (1, 2)])
        assert set(await anext(following)) == {2}
        assert asked == {1: 1, 2: 1}, "what it said is taken first: it is asked for what changed since then"
        assert await all_of(following) == {1, 2}

    with asyncio.Runner(loop_factory=Hurried) as runner:
        try:
            runner.run(rounds())
        finally:
            release.set()


def test_dead_nodes_get_threads_of_their_own() -> None:
    release, living, dead = threading.Event(), {1, 2}, set(range(100, 120))
    rounds_done = 0

    def read(address: Address) -> Reading:
        if address.node_id in dead:
            if rounds_done:
                release.wait(30)
            return Reading(address.node_id, now(), now(), error="No answer.")
        return Reading(address.node_id, now(), now(), state(3))

    async def rounds() -> list[set[int]]:
        nonlocal rounds_done
        collector = Collector(read=read, threads=4)
        first = await one_round(collector, (*sorted(dead), *living), dead | living)
        rounds_done = 1
        return [first, await one_round(collector, (*sorted(dead), *living), living)]

    with asyncio.Runner(loop_factory=Hurried) as runner:
        try:
            # Were the twenty dead ones read by the same four threads, the living would wait behind them.
            assert runner.run(rounds()) == [dead | living, living]
        finally:
            release.set()


def test_samples_wait_while_the_database_is_away(env: Env) -> None:
    recorder, node = Recorder(), env.nodes[0]
    found = {node.pk: reading(node, START, rows_of(env, 10))}
    recorder.gather(found.values())
    recorder.gather([reading(node, START + timedelta(seconds=10), rows_of(env, 30))])
    recorder.gather([reading(node, START + timedelta(seconds=20), rows_of(env, 60))])
    assert len(recorder.pending) == 2
    with pytest.raises(RuntimeError), connection.execute_wrapper(_fail_on_samples):
        recorder.store(found, START)
    assert Sample.objects.count() == 0
    recorder.store(found, START)
    assert sum(Sample.objects.filter(kind="backend").values_list("requests", flat=True)) == 20
    assert not recorder.pending


def _fail_on_samples(execute: Callable, sql: str, *args: object) -> object:  # type: ignore[type-arg]  # Django's wrapper
    if "observe_sample" in sql:
        raise RuntimeError("away")
    return execute(sql, *args)


def test_a_haproxy_that_is_too_old_and_a_clock_that_is_off_are_conditions_of_the_node(env: Env) -> None:
    node, other = env.nodes[:2]
    memory = memory_node(f"observe-{node.name}")
    memory.haproxy_version, memory.clock_ahead_s = "2.4.30", -600.0
    found = {each.pk: read_node(Address(each.pk, each.name, each.url)) for each in (node, other)}
    Recorder().store(found, now())
    rows = Condition.objects.filter(reason__in=("VersionTooOld", "ClockOff")).order_by("type")
    assert [(row.object_id, row.type) for row in rows] == [(node.pk, "ClockRight"), (node.pk, "Supported")]
    assert "10 min behind" in rows[0].message
    memory.haproxy_version, memory.clock_ahead_s = "2.6.12", 0.4
    Recorder().store({node.pk: read_node(Address(node.pk, node.name, node.url))}, now())
    assert not rows.all().exists()
