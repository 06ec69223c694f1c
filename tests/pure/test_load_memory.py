"""The fake's queue behaves as queueing theory says, so that what is tried on it means something."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import pytest

from apps.drivers.load.contract import Arrivals, Endpoint, Generator, LoadError, Plan, Request, Second
from apps.drivers.load.histogram import Histogram, merged, middle_of
from apps.drivers.load.memory import MemoryBackend, MemoryGenerator, forget_memory_backends, in_memory, memory_backend
from apps.drivers.load.registry import open_generator

pytestmark = pytest.mark.slow(reason="queues are simulated request by request")
HOST, PORT = "192.0.2.7", 80


@pytest.fixture(autouse=True)
def _empty_world() -> Iterator[None]:
    yield
    forget_memory_backends()


def plan_of(**values: Any) -> Plan:
    """Load at the backend in memory, without a ramp."""
    usual: dict[str, Any] = {"ramp_s": 0.0, "duration_s": 60.0, "max_connections": 20_000, "max_rate": 10_000.0}
    return Plan((Endpoint(HOST, PORT),), Request("a.example"), **{**usual, **values})


def run(plan: Plan, generator: Generator | None = None) -> list[Second]:
    """All records."""

    async def reading() -> list[Second]:
        made, found = generator or open_generator(plan), []
        await made.start(plan)
        async for second in made.seconds():
            await made.renew()
            found.append(second)
        return found

    return asyncio.run(reading())


def latency(seconds: list[Second]) -> Histogram:
    return merged(each.histogram for each in seconds)


def mean_ms(histogram: Histogram) -> float:
    """By the buckets."""
    return sum(middle_of(index) * count for index, count in histogram.counts.items()) / histogram.total / 1000


def test_one_server_at_half_load_waits_as_mm1_says() -> None:
    memory_backend(HOST, PORT, servers=1, service_ms=1.0, exponential=True)
    found = latency(run(plan_of(rate=500.0, seed=3)))
    assert mean_ms(found) == pytest.approx(2.0, rel=0.05)  # 1/(µ-λ)
    assert (found.percentile(95) or 0) / 1000 == pytest.approx(2.0 * math.log(20), rel=0.06)


def test_constant_service_waits_half_as_long_as_md1_says() -> None:
    memory_backend(HOST, PORT, servers=1, service_ms=1.0)
    assert mean_ms(latency(run(plan_of(rate=800.0, seed=3)))) == pytest.approx(1 + 0.8 / (2 * 0.2), rel=0.08)


def test_even_arrivals_below_the_limit_never_wait() -> None:
    memory_backend(HOST, PORT, servers=2, service_ms=384.0)
    found = latency(run(plan_of(rate=5.0, arrivals=Arrivals.CONSTANT)))
    assert (found.highest() or 0) == pytest.approx(384_000, rel=0.001)


def test_above_the_limit_the_queue_grows_by_what_is_too_much() -> None:
    model = memory_backend(HOST, PORT, servers=2, service_ms=384.0)
    seconds = run(plan_of(rate=7.0, arrivals=Arrivals.CONSTANT, timeout_s=300.0))
    assert seconds[59].in_flight == pytest.approx((7 - model.truth) * 60 + 2, abs=2)  # two are being served


def test_users_and_latency_obey_littles_law() -> None:
    memory_backend(HOST, PORT, servers=8, service_ms=4.0, exponential=True)
    seconds = run(plan_of(users=5, duration_s=30.0))
    throughput = sum(each.answered for each in seconds) / 30
    assert throughput * mean_ms(latency(seconds)) / 1000 == pytest.approx(5, rel=0.01)


def test_a_pause_shows_in_the_percentiles_that_theory_names() -> None:
    memory_backend(HOST, PORT, servers=1000, service_ms=0.01, stall_every_s=2.0, stall_s=0.2)
    found = latency(run(plan_of(rate=500.0, seed=1)))
    assert (found.percentile(95) or 0) == pytest.approx(100_000, rel=0.05)
    assert (found.percentile(99) or 0) == pytest.approx(180_000, rel=0.05)


def test_contention_makes_a_soft_knee() -> None:
    memory_backend(HOST, PORT, servers=8, service_ms=10.0, contention=0.1)
    rates = (10.0, 100.0, 200.0, 400.0)
    means = [mean_ms(latency(run(plan_of(rate=rate, duration_s=20.0, seed=1)))) for rate in rates]
    assert means == sorted(means)
    assert means[0] == pytest.approx(10.0, rel=0.01)
    assert 10.3 < means[-1] < 20


def test_a_cliff_is_sudden() -> None:
    memory_backend(HOST, PORT, servers=4, service_ms=10.0, thrashes_at=8)
    good, bad = (run(plan_of(rate=rate, arrivals=Arrivals.CONSTANT, duration_s=20.0)) for rate in (390.0, 420.0))
    assert (latency(good).percentile(99) or 0) < 15_000
    assert (latency(bad).percentile(50) or 0) > 1_000_000


def test_a_full_backend_says_so_at_once() -> None:
    memory_backend(HOST, PORT, servers=1, service_ms=100.0, full_at=2)
    seconds = run(plan_of(rate=50.0, arrivals=Arrivals.CONSTANT, duration_s=10.0))
    assert sum(each.statuses.get(503, 0) for each in seconds) == pytest.approx(400, abs=5)


def test_a_backend_can_begin_to_fail() -> None:
    model = memory_backend(HOST, PORT, servers=10, service_ms=1.0)

    async def reading() -> list[float]:
        generator, found = MemoryGenerator(), []
        await generator.start(plan_of(rate=1000.0, duration_s=4.0))
        async for second in generator.seconds():
            await generator.renew()
            found.append(second.statuses.get(500, 0) / max(1, second.answered))
            model.failing = 0.2 if len(found) == 2 else model.failing
        return found[:4]

    assert asyncio.run(reading()) == [0, 0, pytest.approx(0.2, abs=0.05), pytest.approx(0.2, abs=0.05)]


def test_a_generator_that_cannot_keep_up_says_so() -> None:
    memory_backend(HOST, PORT, servers=10, service_ms=1.0, generator_max=900.0)
    above, below = (run(plan_of(rate=rate, duration_s=3.0, arrivals=Arrivals.CONSTANT)) for rate in (1000.0, 800.0))
    assert all(each.generator_limited for each in above[:3])
    assert not any(each.generator_limited for each in below)
    assert above[1].sent == 900


def test_what_is_sent_is_what_the_backend_received() -> None:
    model = memory_backend(HOST, PORT, servers=10, service_ms=1.0)
    seconds = run(plan_of(rate=100.0, duration_s=5.0))
    assert model.received == sum(each.sent for each in seconds)


def test_the_same_plan_gives_the_same_records() -> None:
    records = []
    for _ in range(2):
        memory_backend(HOST, PORT, servers=3, service_ms=10.0, exponential=True, noise=0.3, seed=5)
        records.append(run(plan_of(rate=200.0, duration_s=5.0, seed=9), MemoryGenerator(clock=lambda: 1000.0)))
    assert records[0] == records[1]


def test_it_can_last_as_long_as_it_says() -> None:
    slept = []

    async def pace(seconds: float) -> None:
        slept.append(seconds)

    memory_backend(HOST, PORT, servers=10, service_ms=1.0)
    run(plan_of(rate=10.0, duration_s=2.5), MemoryGenerator(pace=pace))
    assert slept[:3] == pytest.approx([1.0, 1.0, 0.5])


def test_only_addresses_that_a_test_named_are_in_memory() -> None:
    plan = plan_of(rate=1.0)
    assert not in_memory(plan)
    with pytest.raises(LoadError, match="no backend in memory"):
        run(plan, MemoryGenerator())
    memory_backend(HOST, PORT)
    assert in_memory(plan)


def test_a_model_has_only_fields_that_exist() -> None:
    with pytest.raises(TypeError):
        memory_backend(HOST, PORT, sevrers=3)
    assert MemoryBackend(servers=2, service_ms=384).truth == pytest.approx(5.208, abs=0.001)
