"""Two agents of two regions run what the compiler makes, and tell who served whose requests."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import OverflowPorts, Region, RegionNode, RegionShare, Snapshot
from apps.compiler.model.node_settings import NodeSettings
from apps.compiler.model.operations import SetServerMaxconn
from apps.compiler.model.shared import Limit, LimitKind, Listener, LoadBalancer, Protocol, WhenFull
from apps.compiler.plan import Runtime, plan
from tests.conformance.real_agent import RealAgent, wait_until
from tests.e2e.agents import operate, push
from tests.ports import spare_port
from tests.pure.compiler_fixtures import listener, pool, route, server

pytestmark = pytest.mark.e2e


class _Answering(BaseHTTPRequestHandler):
    """200 to everybody."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Nothing but that."""
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Quiet."""


@contextmanager
def a_server() -> Iterator[int]:
    """One server for all pools; yields its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as found:
        threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield found.server_address[1]
        found.shutdown()


class Regions:
    """Two regions with one agent each, both called us-1; node-5 is at home, node-6 elsewhere.

    Their ports are new, so that no worker of an earlier test tells them what it has admitted.
    """

    def __init__(self, agents: tuple[RealAgent, RealAgent], port: int) -> None:
        self.agents = agents
        self.port = port
        self.tcp_ports = [spare_port(), spare_port()]
        self.ports = [OverflowPorts(spare_port(), spare_port(), spare_port()) for _ in agents]

    def bundle(
        self, index: int, limit: Limit, when_full: WhenFull = WhenFull.SPREAD, threads: int | None = None
    ) -> Bundle:
        """What a region's fleet runs when the first region has this limit and the second one none."""
        regions = tuple(
            Region(f"rgn-{number}", f"r{number}", (RegionNode(f"node-{4 + number}", "us-1", "127.0.0.1", *_of(each)),))
            for number, each in enumerate(self.ports, 1)
        )
        limits = [limit, Limit()]
        share = (RegionShare(f"rgn-{2 - index}", limits[1 - index], 1.0, 1),)
        own = {"limit": limits[index], "elsewhere": share, "when_full": when_full}
        servers = (server(1, address="127.0.0.1", port=self.port),)
        web = pool(1, servers=servers, **own)
        database = pool(2, servers=(server(2, address="127.0.0.1", port=self.port),), protocol=Protocol.TCP)
        listeners = (
            listener(1, port=self.agents[index].port),
            Listener("lst-2", "db", Protocol.TCP, self.tcp_ports[index], default_pool_id="pool-2"),
        )
        compiled = compile_snapshot(
            Snapshot(
                "fleet", f"r{index + 1}", (LoadBalancer("lb-1", "front", "acme", listeners, (route(1),)),),
                (web, database), local_development=True, region_id=f"rgn-{index + 1}", regions=regions,
                overflow_key="7" * 64, overflow_ports=self.ports[index],
                node_settings=NodeSettings(threads=threads),
            )
        )  # fmt: skip
        assert compiled.left_out == ()
        return compiled.output

    def counted(self, index: int) -> Counter[str]:
        """Requests of each pool at a node, and its requests that did not simply stay, from the agent's first day on."""
        rows = self.agents[index].driver.read_counters().rows
        return Counter({row.object_id: row.requests for row in rows if row.kind in {"flow", "backend"}})


def _of(ports: OverflowPorts) -> tuple[int, int, int]:
    return ports.peer, ports.http, ports.tcp


@pytest.fixture
def regions(both: tuple[RealAgent, RealAgent]) -> Iterator[Regions]:
    """Two agents, which may have counted what earlier tests asked for, and a server."""
    with a_server() as port:
        yield Regions(both, port)


def rate(value: int) -> Limit:
    """So many requests per second."""
    return Limit(LimitKind.RATE, value)


def test_what_is_over_the_limit_is_told_by_both_regions(regions: Regions) -> None:
    home, elsewhere = regions.agents
    bundle = regions.bundle(0, rate(1))
    assert {bind.listener_id for bind in bundle.binds} == {"lst-1", "lst-2", "overflow", "overflow-tcp"}
    push(elsewhere, regions.bundle(1, rate(1)))
    push(home, bundle)
    wait_until(lambda: "rgn-2" in home.driver.read_counters().distances_ms, "the way to the other region is known")
    before = [regions.counted(index) for index in (0, 1)]
    assert [home.get()[0] for _ in range(20)] == [200] * 20
    at_home, at_the_guest = (regions.counted(index) - earlier for index, earlier in enumerate(before))
    sent = at_home["pool-1/to/rgn-2/rate"]
    assert 10 <= sent < 20
    assert at_the_guest == {"pool-1/from/rgn-1/-": sent, "pool-1": sent}
    assert elsewhere.driver.read_counters().admitted["pool-1/node-6/guest"] == sent
    for agent in regions.agents:
        assert agent.state().drift == ()


def test_a_limit_changes_without_a_reload(regions: Regions) -> None:
    home, elsewhere = regions.agents
    push(elsewhere, regions.bundle(1, rate(1)))
    old, new = regions.bundle(0, rate(1)), regions.bundle(0, rate(1000))
    before = push(home, old)
    decided = plan(old, new)
    assert isinstance(decided, Runtime), decided
    state = operate(home, decided.operations, new, old)
    assert (state.digest, state.on_disk, state.reloads) == (new.digest, new.digest, before.reloads)
    moved = regions.counted(0)
    assert [home.get()[0] for _ in range(20)] == [200] * 20
    assert regions.counted(0) - moved == {"pool-1": 20}


def test_slots_of_a_queue_change_without_a_reload(regions: Regions) -> None:
    home = regions.agents[0]
    old = regions.bundle(0, Limit(LimitKind.CONNECTIONS, 4), WhenFull.QUEUE)
    new = regions.bundle(0, Limit(LimitKind.CONNECTIONS, 9), WhenFull.QUEUE)
    before = push(home, old)
    decided = plan(old, new)
    assert isinstance(decided, Runtime), decided
    assert SetServerMaxconn("queue-1", "srv-1", 9) in decided.operations
    state = operate(home, decided.operations, new, old)
    assert (state.digest, state.on_disk, state.reloads) == (new.digest, new.digest, before.reloads)
    assert home.get()[0] == 200
