"""One suite for every generator: the fake in simulated time, one process, and several processes as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from apps.drivers.load.contract import ERRORS, Arrivals, Endpoint, Generator, LoadError, Plan, Request, Second
from apps.drivers.load.histogram import merged
from apps.drivers.load.memory import MemoryGenerator, forget_memory_backends, memory_backend
from apps.drivers.load.process import ProcessGenerator
from apps.drivers.load.registry import open_generator
from apps.drivers.load.several import SeveralGenerator
from tests.conformance.load_server import load_server

Act = Callable[[Generator, int], Awaitable[None]]


@dataclass
class Env:
    """A way to make a generator, and a backend that answers after 20 ms, or 500 ms where `slow`."""

    make: Callable[[], Generator]
    endpoint: Endpoint
    slow: Endpoint
    closed: Endpoint

    def plan(self, **values: Any) -> Plan:
        """Two seconds of 50 requests/s, evenly, without a ramp."""
        usual: dict[str, Any] = {
            "endpoints": (self.endpoint,),
            "request": Request("a.example"),
            "arrivals": Arrivals.CONSTANT,
            "ramp_s": 0.0,
            "duration_s": 2.0,
            "timeout_s": 5.0,
            "rate": 0.0 if "users" in values else 50.0,
        }
        return Plan(**{**usual, **values})

    def run(self, plan: Plan, act: Act | None = None, *, renewed: bool = True) -> list[Second]:
        """All records; `act` is called after each with its number."""
        return asyncio.run(self._run(plan, act, renewed=renewed))

    async def _run(self, plan: Plan, act: Act | None, *, renewed: bool) -> list[Second]:
        generator, found = self.make(), []
        await generator.start(plan)
        async for second in _closing(generator.seconds()):
            found.append(second)
            if renewed:
                await generator.renew()
            if act is not None:
                await act(generator, len(found))
        await generator.stop()
        return found


async def _closing(seconds: AsyncIterator[Second]) -> AsyncIterator[Second]:
    async for second in seconds:
        yield second


PROCESSES: dict[str, Callable[[], Generator]] = {"process": ProcessGenerator, "several": lambda: SeveralGenerator(2)}
EVERY_KIND = {"memory": MemoryGenerator, **PROCESSES}


@pytest.fixture(params=["memory", *(pytest.param(kind, marks=pytest.mark.exhaustive) for kind in PROCESSES)])
def env(request: pytest.FixtureRequest) -> Iterator[Env]:
    """Each kind of generator in turn; processes live in real time, and what they count in it is exact only in peace."""
    if request.param == "memory":
        memory_backend("192.0.2.1", 80, servers=50, service_ms=20.0)
        memory_backend("192.0.2.2", 80, servers=50, service_ms=500.0)
        memory_backend("192.0.2.3", 80, down=True)
        yield Env(MemoryGenerator, *(Endpoint(f"192.0.2.{number}", 80) for number in (1, 2, 3)))
        forget_memory_backends()
        return
    with ExitStack() as servers:
        quick = servers.enter_context(load_server(delay_s=0.02))
        slow = servers.enter_context(load_server(delay_s=0.5))
        yield Env(PROCESSES[request.param], *(Endpoint("127.0.0.1", port) for port in (quick.port, slow.port, 1)))


def total(seconds: Sequence[Second], name: str) -> int:
    """The sum of a count over all records."""
    return sum(getattr(each, name) for each in seconds)


def errors(seconds: Sequence[Second]) -> dict[str, int]:
    """All errors by kind."""
    found: dict[str, int] = {}
    for each in seconds:
        for kind, count in each.errors.items():
            found[kind] = found.get(kind, 0) + count
    return found


def test_what_was_asked_for_is_offered_and_answered(env: Env) -> None:
    seconds = env.run(env.plan())
    assert total(seconds, "offered") == pytest.approx(100, abs=1)
    assert total(seconds, "sent") == total(seconds, "answered") == total(seconds, "offered")
    assert sum(each.statuses.get(200, 0) for each in seconds) == total(seconds, "answered")
    assert errors(seconds) == {}
    assert [round(each.target) for each in seconds[:2]] == [50, 50]


def test_there_is_one_record_for_each_second(env: Env) -> None:
    seconds = env.run(env.plan(duration_s=3.0))
    whole = [each.at for each in seconds if each.offered]
    assert len(whole) == 3
    assert whole[2] - whole[0] == pytest.approx(2.0, abs=0.01)


def test_latency_is_what_the_backend_takes(env: Env) -> None:
    latency = merged(each.histogram for each in env.run(env.plan()))
    assert latency.total == pytest.approx(100, abs=1)
    assert 19_900 <= (latency.percentile(50) or 0) < 60_000


def test_answers_are_counted_when_they_come_and_waited_for_at_the_end(env: Env) -> None:
    seconds = env.run(env.plan(endpoints=(env.slow,), duration_s=1.0))
    assert seconds[0].in_flight > 20
    assert total(seconds, "answered") == total(seconds, "offered")
    assert seconds[-1].in_flight == 0


def test_an_open_loop_does_not_wait_for_answers(env: Env) -> None:
    seconds = env.run(env.plan(endpoints=(env.slow,), rate=100.0))
    assert seconds[0].offered == pytest.approx(100, abs=2)
    assert seconds[0].sent == seconds[0].offered


def test_a_closed_loop_has_as_many_in_flight_as_users(env: Env) -> None:
    seconds = env.run(env.plan(endpoints=(env.slow,), users=10, duration_s=2.2))
    assert seconds[0].in_flight == 10
    assert seconds[0].target == 10
    assert total(seconds, "answered") == pytest.approx(50, abs=10)  # five rounds of 500 ms begin


def test_users_come_and_go(env: Env) -> None:
    async def act(generator: Generator, number: int) -> None:
        if number in (1, 3):
            await generator.set_users(20 if number == 1 else 4)

    seconds = env.run(env.plan(endpoints=(env.slow,), users=10, max_connections=50, duration_s=5.0), act)
    assert [seconds[index].in_flight for index in (0, 2, 4)] == pytest.approx([10, 20, 4], abs=2)


def test_when_all_connections_are_busy_a_request_is_refused(env: Env) -> None:
    seconds = env.run(env.plan(endpoints=(env.slow,), rate=100.0, max_connections=10))
    found = errors(seconds)
    assert set(found) == {"refused"}
    assert found["refused"] + total(seconds, "answered") == total(seconds, "offered")
    assert max(each.in_flight for each in seconds) == 10
    assert all(each.connections <= 10 for each in seconds)
    assert total(seconds, "sent") == total(seconds, "answered")


def test_a_request_that_takes_too_long_is_given_up(env: Env) -> None:
    seconds = env.run(env.plan(endpoints=(env.slow,), timeout_s=0.2, duration_s=1.0))
    assert set(errors(seconds)) == {"timeout"}
    assert total(seconds, "answered") == 0


def test_a_server_that_is_not_there_is_an_error_of_connecting(env: Env) -> None:
    seconds = env.run(env.plan(endpoints=(env.closed,), duration_s=1.0))
    assert errors(seconds) == {"connect": total(seconds, "offered")}


def test_users_do_not_hammer_a_server_that_is_not_there(env: Env) -> None:
    seconds = env.run(env.plan(endpoints=(env.closed,), users=2, duration_s=1.0))
    assert total(seconds, "offered") <= 24


def test_the_rate_can_be_changed_while_it_runs(env: Env) -> None:
    async def act(generator: Generator, number: int) -> None:
        if number == 1:
            await generator.set_rate(200.0)

    seconds = env.run(env.plan(max_rate=200.0, duration_s=3.0), act)
    assert [each.offered for each in seconds[:3]] == pytest.approx([50, 200, 200], abs=12)


def test_a_change_is_spread_over_the_ramp(env: Env) -> None:
    seconds = env.run(env.plan(ramp_s=2.0, rate=100.0, duration_s=3.0))
    assert [each.offered for each in seconds[:3]] == pytest.approx([25, 75, 100], abs=2)
    assert [each.target for each in seconds[:3]] == pytest.approx([25, 75, 100], abs=1)


def test_a_pause_sends_nothing(env: Env) -> None:
    async def act(generator: Generator, number: int) -> None:
        if number == 1:
            await generator.set_rate(0.0)

    seconds = env.run(env.plan(duration_s=3.0), act)
    assert seconds[1].offered <= 5
    assert seconds[2].offered == 0


def test_stop_ends_it(env: Env) -> None:
    async def act(generator: Generator, number: int) -> None:
        if number == 1:
            await generator.stop()

    seconds = env.run(env.plan(duration_s=60.0), act)
    assert len(seconds) <= 3
    assert total(seconds[1:], "offered") <= 10


def test_without_renewal_it_ends_after_five_seconds(env: Env) -> None:
    seconds = env.run(env.plan(duration_s=60.0), renewed=False)
    assert 200 <= total(seconds, "offered") <= 255


def test_with_renewal_it_goes_on(env: Env) -> None:
    assert total(env.run(env.plan(duration_s=7.0)), "offered") == pytest.approx(350, abs=2)


def test_independent_callers_come_unevenly_and_the_same_again(env: Env) -> None:
    first, again, other = (
        [each.offered for each in env.run(env.plan(arrivals=Arrivals.POISSON, seed=seed))[:2]] for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_every_kind_of_error_is_a_known_one(env: Env) -> None:
    seconds = env.run(env.plan(endpoints=(env.closed, env.slow), timeout_s=0.1, duration_s=1.0))
    assert set(errors(seconds)) <= set(ERRORS)
    assert len(errors(seconds)) == 2


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"rate": 0.0}, "either a rate or a number of users"),
        ({"rate": 300_000.0}, "at most"),
        ({"rate": 10.0, "max_rate": 5.0}, "at most max_rate"),
        ({"users": 50, "max_connections": 10}, "a connection for each user"),
        ({"endpoints": (Endpoint("localhost", 80),)}, "not an IP address"),
        ({"endpoints": ()}, "endpoints"),
        ({"request": Request("a.example", "no-slash")}, "slash"),
        ({"request": Request("a.example", "/a b")}, "spaces"),
        ({"request": Request("a.example\r\nevil: 1")}, "hostname"),
        ({"request": Request("a.example", headers={"x": "1\r\nevil: 1"})}, "does not allow"),
        ({"request": Request("a.example", headers={"Host": "b.example"})}, "own"),
        ({"request": Request("a.example", method="CONNECT")}, "method"),
        ({"duration_s": 1e9}, "duration_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": float("inf")}, "rate"),
    ],
)
@pytest.mark.parametrize("make", EVERY_KIND.values(), ids=EVERY_KIND)
def test_a_plan_out_of_bounds_is_refused(make: Callable[[], Generator], values: dict[str, Any], sentence: str) -> None:
    usual = {
        "endpoints": (Endpoint("127.0.0.1", 1),),
        "request": Request("a.example"),
        "rate": 0.0 if "users" in values else 50.0,
    }
    with pytest.raises(LoadError, match=sentence):
        asyncio.run(make().start(Plan(**{**usual, **values})))


def test_nothing_exceeds_the_plan_later(env: Env) -> None:
    async def act(generator: Generator, number: int) -> None:
        with pytest.raises(LoadError, match="as the plan says"):
            await generator.set_rate(51.0)
        with pytest.raises(LoadError, match="no users"):
            await generator.set_users(1)

    env.run(env.plan(duration_s=1.0), act)


@pytest.mark.parametrize("make", EVERY_KIND.values(), ids=EVERY_KIND)
def test_orders_before_the_start_are_refused(make: Callable[[], Generator]) -> None:
    generator = make()
    for order in (generator.set_rate(1.0), generator.set_users(1), generator.renew()):
        with pytest.raises(LoadError, match="not started"):
            asyncio.run(_awaited(order))


async def _awaited(order: Awaitable[None]) -> None:
    await order


async def _ordered_about(generator: Generator, plan: Plan, *orders: Callable[[], Awaitable[None]]) -> list[Second]:
    """Carry it out; after each record comes the next order."""
    found: list[Second] = []
    await generator.start(plan)
    async for second in generator.seconds():
        await generator.renew()
        if len(found) < len(orders):
            await orders[len(found)]()
        found.append(second)
    return found


@pytest.mark.slow(reason="three records of processes, one each second")
def test_processes_obey_their_orders() -> None:
    """All of them at the same time; how exactly they keep to a rate is asked where nothing else runs."""

    async def run(port: int) -> list[list[Second]]:
        endpoint = (Endpoint("127.0.0.1", port),)
        plan = Plan(endpoint, Request("a.example"), rate=50.0, max_rate=200.0, arrivals=Arrivals.CONSTANT, ramp_s=0.0)
        users = replace(plan, rate=0.0, max_rate=0.0, users=10)
        first, second, third, fourth = (make() for make in (*PROCESSES.values(), *PROCESSES.values()))

        def orders_of(each: Generator) -> tuple[Callable[[], Awaitable[None]], ...]:
            return partial(each.set_rate, 200.0), partial(each.set_rate, 0.0), partial(asyncio.sleep, 0), each.stop

        return await asyncio.gather(
            *(_ordered_about(each, plan, *orders_of(each)) for each in (first, second)),
            *(_ordered_about(each, users, partial(each.set_users, 3), each.stop) for each in (third, fourth)),
        )

    with load_server(delay_s=0.2) as seen:
        *rates, one, two = asyncio.run(run(seen.port))
    for seconds in rates:
        assert seconds[0].offered == pytest.approx(50, abs=1)
        assert seconds[1].offered > 60
        # A busy machine hears an order late, but within two seconds.
        assert min(each.offered for each in seconds[2:]) < seconds[1].offered
    for seconds in (one, two):
        assert [each.in_flight for each in seconds[:2]] == pytest.approx([10, 3], abs=2)
    for seconds in (*rates, one, two):
        assert total(seconds, "answered") == sum(each.statuses.get(200, 0) for each in seconds) > 0
        assert errors(seconds) == {}


def test_a_plan_for_real_addresses_gets_a_process() -> None:
    plan = Plan((Endpoint("127.0.0.1", 1),), Request("a.example"), rate=1.0)
    assert isinstance(open_generator(plan), ProcessGenerator)
