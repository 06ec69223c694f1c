"""What reloads and operations leave of servers: who is down stays down, the configuration has the last word."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.operations import SetMapEntry, SetServerState, SetServerWeight
from apps.compiler.model.shared import Balance, HealthCheck, Server, ServerState
from apps.compiler.plan import Runtime, plan
from tests.conformance.inside import Inside, inside
from tests.conformance.real_agent import wait_until
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

# Who is slow, as all are on a busy machine, is not ill.
CHECK = HealthCheck(path="/health", interval_ms=100, timeout_ms=20_000, rise=2, fall=2)
UP, DOWN = "2", "0"
IN_MAINTENANCE = 1


class _Sick(BaseHTTPRequestHandler):
    """Refuses its health check, later if it is told to, and counts the requests that come all the same."""

    protocol_version = "HTTP/1.1"
    server: Counting

    def do_GET(self) -> None:
        """503 to the check, 200 to everything else."""
        ill = self.server.ill and self.path == "/health"
        if ill:
            self.server.talks.wait()
        self.server.asked += self.path != "/health"
        self.send_response(503 if ill else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the base class's name
        """Quiet."""


class Counting(ThreadingHTTPServer):
    """A server that may be ill."""

    daemon_threads = True
    ill = False
    asked = 0

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self.talks = threading.Event()
        self.talks.set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that haproxy cut is nothing to report."""


@contextmanager
def two_servers() -> Iterator[tuple[Counting, Counting]]:
    """A server that is well and one that is ill."""
    servers = (Counting(("127.0.0.1", 0), _Sick), Counting(("127.0.0.1", 0), _Sick))
    servers[1].ill = True
    for each in servers:
        threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield servers
    finally:
        for each in servers:
            each.talks.set()
            each.shutdown()
            each.server_close()


def compiled(port: int, *servers: Server, more: int = 0, check: HealthCheck | None = CHECK, host: str = "") -> Bundle:
    """The compiler's real bundle: one listener, pool-1 with these servers; `more` pools before it; one more host."""
    main = pool(1, servers=servers, health_check=check, balance=Balance.ROUNDROBIN)
    others = tuple(pool(number, servers=(server(number + 50),)) for number in range(2, 2 + more))
    routes = [route(1), *(route(number, f"h{number}.example", pools=route(1).pools) for number in range(2, 2 + more))]
    routes += [route(99, host)] if host else []
    balancer = front(*routes, listeners=(listener(1, port=port),))
    compilation = compile_snapshot(snapshot(balancer, pools=(*others, main), local_development=True))
    assert compilation.left_out == ()
    return compilation.output


def at(counting: Counting, number: int, **fields: Any) -> Server:
    """A server of the model at a real one's port."""
    return server(number, address="127.0.0.1", port=counting.server_address[1], **fields)


def servers_of(node: Inside) -> dict[str, dict[str, str]]:
    """The worker's own words on its servers, by name."""
    lines = node.node.proxy.worker("show servers state").splitlines()
    names = lines[1].lstrip("# ").split()
    return {row["srv_name"]: row for line in lines[2:] if line and (row := dict(zip(names, line.split(), strict=True)))}


def _requests_to_a_sick_server(change: Callable[[int, Server, Server], Bundle], **taken_away: Any) -> int:
    with two_servers() as (well, ill), inside(**taken_away) as node:
        pair = at(well, 1), at(ill, 2)
        node.push(compiled(node.port, *pair), 1)
        wait_until(lambda: servers_of(node)["srv-2"]["srv_op_state"] == DOWN, "the sick server is down")
        ill.talks.clear()  # a new worker knows what it was told, and finds out nothing itself
        before = ill.asked
        node.push(change(node.port, *pair), 2)
        for _ in range(20):
            assert node.get()[0] == 200
        return ill.asked - before


def _with_more_pools(port: int, *pair: Server) -> Bundle:
    return compiled(port, *pair, more=2)


def test_a_server_that_is_down_before_a_reload_gets_no_request_after_it() -> None:
    assert _requests_to_a_sick_server(_with_more_pools) == 0


def test_without_handing_on_health_a_reload_sends_requests_to_a_server_that_is_down() -> None:
    found = _requests_to_a_sick_server(_with_more_pools, health=lambda _shown, _config, _may_stay: "1\n")
    assert found > 0


def test_a_server_that_recovers_after_a_reload_comes_back() -> None:
    with two_servers() as (well, ill), inside() as node:
        pair = at(well, 1), at(ill, 2)
        node.push(compiled(node.port, *pair), 1)
        wait_until(lambda: servers_of(node)["srv-2"]["srv_op_state"] == DOWN, "the sick server is down")
        node.push(compiled(node.port, *pair, more=1), 2)
        assert servers_of(node)["srv-2"]["srv_op_state"] == DOWN
        assert servers_of(node)["srv-1"]["srv_op_state"] == UP
        ill.ill = False
        wait_until(lambda: servers_of(node)["srv-2"]["srv_op_state"] == UP, "it is up again")


def test_a_server_that_is_no_longer_checked_or_has_moved_starts_as_up() -> None:
    with two_servers() as (well, ill), inside() as node, socket.create_server(("127.0.0.1", 0)) as silent:
        pair = at(well, 1), at(ill, 2)
        node.push(compiled(node.port, *pair), 1)
        wait_until(lambda: servers_of(node)["srv-2"]["srv_op_state"] == DOWN, "the sick server is down")
        moved = server(2, address="127.0.0.1", port=silent.getsockname()[1])
        node.push(compiled(node.port, at(well, 1), moved), 2)
        assert servers_of(node)["srv-2"]["srv_op_state"] == UP
        node.push(compiled(node.port, *pair), 3)
        wait_until(lambda: servers_of(node)["srv-2"]["srv_op_state"] == DOWN, "the sick server is down again")
        node.push(compiled(node.port, *pair, check=None), 4)
        assert servers_of(node)["srv-2"]["srv_op_state"] == UP


def test_weights_and_maintenance_of_the_configuration_win_over_what_was_said_at_run_time() -> None:
    """By the worker's memory srv-1 had weight 3 and srv-2 was in maintenance; the file says otherwise."""
    with two_servers() as (well, ill), inside() as node:
        pair = at(well, 1, weight=100), at(ill, 2, weight=100)
        node.push(compiled(node.port, *pair), 1)
        node.node.proxy.worker("set server pool-1/srv-1 weight 3")
        node.node.proxy.worker("set server pool-1/srv-2 state maint")
        node.push(compiled(node.port, *pair, more=1), 2)
        rows = servers_of(node)
        assert (rows["srv-1"]["srv_uweight"], rows["srv-2"]["srv_admin_state"]) == ("100", "0")


def test_planned_operations_and_a_reload_of_the_same_bundle_agree() -> None:
    with two_servers() as (well, other), inside() as node:
        other.ill = False
        before = compiled(node.port, at(well, 1, weight=100), at(other, 2, weight=50))
        node.push(before, 1)
        after = compiled(node.port, at(well, 1, weight=7), at(other, 2, weight=50, state=ServerState.MAINTENANCE))
        steps = plan(before, after)
        assert isinstance(steps, Runtime)
        assert set(steps.operations) == {
            SetServerWeight("pool-1", "srv-1", 7), SetServerState("pool-1", "srv-2", "maint")
        }  # fmt: skip
        state = node.operate(steps.operations, after, before.digest, 2, "haproxy.cfg")
        assert (state["digest"], state["on_disk"], state["reloads"]) == (after.digest, after.digest, 1)
        by_operations = _facts(node)
        assert node.push(after, 3)["reloads"] == 2
        assert _facts(node) == by_operations == {"srv-1": ("7", False), "srv-2": ("50", True)}
        back = plan(after, before)
        assert isinstance(back, Runtime)
        node.operate(back.operations, before, after.digest, 4, "haproxy.cfg")
        assert _facts(node) == {"srv-1": ("100", False), "srv-2": ("50", False)}


def _facts(node: Inside) -> dict[str, tuple[str, bool]]:
    """Weight, and whether in maintenance, by server."""
    rows = servers_of(node)
    return {name: (row["srv_uweight"], int(row["srv_admin_state"]) & IN_MAINTENANCE != 0) for name, row in rows.items()}


def test_a_planned_route_is_served_without_a_reload_and_after_one() -> None:
    with two_servers() as (well, _ill), inside() as node:
        one = compiled(node.port, at(well, 1))
        two = compiled(node.port, at(well, 1), host="new.example")
        node.push(one, 1)
        assert node.get("new.example")[0] == 404
        steps = plan(one, two)
        assert isinstance(steps, Runtime)
        assert all(isinstance(each, SetMapEntry) for each in steps.operations)
        assert node.operate(steps.operations, two, one.digest, 2)["reloads"] == 1
        assert node.get("new.example")[0] == 200
        assert node.push(two, 3)["reloads"] == 2
        assert node.get("new.example")[0] == 200


def test_reloads_lose_no_request_and_count_none_twice() -> None:
    with two_servers() as (well, _), inside() as node:
        told = 0
        for generation in range(1, 6):
            node.push(compiled(node.port, at(well, 1), more=generation), generation)
            told += sum(node.get()[0] == 200 for _ in range(7))
        assert told == 35
        names = ("lst-1", "route-1", "pool-1")

        def counted() -> dict[str, int]:
            found = {row["object_id"]: row["requests"] for row in node.node.samples()["rows"]}
            return {name: found[name] for name in names}

        # HAProxy counts a response a moment after the client has it.
        wait_until(lambda: min(counted().values()) >= told, "all requests are counted")
        assert counted() == dict.fromkeys(names, told)
        epoch = node.node.samples()["epoch"]
        node.push(compiled(node.port, at(well, 1)), 6)
        assert node.node.samples()["epoch"] == epoch
