"""The demo's small programs: the machine queues like the tutorial's, the clients send by the clock."""

from __future__ import annotations

import asyncio
import statistics
import time

import pytest

from deploy.demo.backend import Machine
from deploy.demo.client import Node, Region, Traffic
from deploy.demo.http1 import Request, listen
from deploy.demo.ready import call

pytestmark = pytest.mark.e2e


def ask(machine: Machine, path: str, method: str = "GET", body: bytes = b"", via: str = "") -> tuple[int, bytes]:
    """Status and body of one request to the machine itself."""
    headers = {"x-forwarded-for": via} if via else {}
    answer = asyncio.run(machine.answer(Request(method, path, headers, body)))
    return answer.status, answer.body


async def measure(machine: Machine, rate: float, count: int) -> float:
    """Median latency in ms of `count` requests at a constant rate, open loop, over real connections."""
    async with await listen(machine.answer, 0) as server:
        node = Node(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        started, taken = time.monotonic(), []

        async def one() -> None:
            begun = time.monotonic()
            assert await node.get("a.example", "/") == 200
            taken.append((time.monotonic() - begun) * 1000)

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
                group.create_task(one())
        return statistics.median(taken)


def test_a_machine_below_its_capacity_answers_in_the_service_time() -> None:
    assert asyncio.run(measure(Machine("vm", "us", 40, 2), 25, 15)) < 2 * 40


def test_a_machine_above_its_capacity_queues_without_end() -> None:
    # Two lanes of 20 ms take 100/s; at 200/s the 50th of 100 requests waits a quarter of a second.
    assert asyncio.run(measure(Machine("vm", "us", 20, 2), 200, 100)) > 10 * 20


def test_the_answer_names_server_region_and_path() -> None:
    assert ask(Machine("vm-1", "us-central1", 0, 2), "/x?y=1") == (
        200,
        b"vm-1 in us-central1 answered GET /x?y=1\n",
    )


def test_a_failing_machine_fails_its_health_check_too() -> None:
    machine = Machine("vm", "us", 0, 2)
    assert ask(machine, "/control", "PUT", b'{"mode": "failing"}')[0] == 200
    assert ask(machine, "/healthz")[0] == 500
    assert ask(machine, "/")[0] == 500


@pytest.mark.parametrize("body", [b"[]", b'{"mode": "odd"}', b'{"service_ms": -1}', b'{"x": 1}', b"{"])
def test_a_strange_control_request_changes_nothing(body: bytes) -> None:
    machine = Machine("vm", "us", 0, 2)
    assert ask(machine, "/control", "PUT", body)[0] == 400
    assert (machine.mode, machine.service_ms) == ("ok", 0)


def test_control_is_refused_through_a_balancer() -> None:
    assert ask(Machine("vm", "us", 0, 2), "/control", via="192.0.2.1")[0] == 403


def test_a_machine_that_is_down_answers_nothing() -> None:
    async def status() -> int:
        machine = Machine("vm", "us", 0, 2, mode="down")
        async with await listen(machine.answer, 0) as server:
            port = server.sockets[0].getsockname()[1]
            return (await asyncio.to_thread(call, f"http://127.0.0.1:{port}/healthz"))[0]

    assert asyncio.run(status()) == 0


def test_the_clients_rate_is_bounded_and_all_or_nothing() -> None:
    regions = {name: Region(name, [], 2) for name in ("us", "eu")}
    traffic = Traffic(regions, most=60)
    for body in (b'{"us": 5, "eu": 61}', b'{"us": 5, "asia": 1}', b'{"us": "5"}', b"5"):
        assert asyncio.run(traffic.answer(Request("PUT", "/rate", {}, body))).status == 400
    assert regions["us"].rate == 2
    assert asyncio.run(traffic.answer(Request("PUT", "/rate", {}, b'{"us": 5}'))).status == 200
    assert regions["us"].rate == 5
