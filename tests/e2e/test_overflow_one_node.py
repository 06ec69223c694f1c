"""What a busy node counts in advance, by one HAProxy whose peer is away, so that a second is enough.

That peers hear of it and the limit stays exact among nodes is asked in test_overflow_advance.py, which takes a minute.
"""

from __future__ import annotations

import http.client
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Region, RegionNode
from apps.compiler.model.shared import Limit, LimitKind, WhenFull
from apps.compiler.targets.haproxy.overflow.advance import BUSY, COUNTS, MUCH
from apps.compiler.targets.haproxy.overflow.limits import LIMITS_MAP
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, echo_servers, running
from tests.ports import spare_port
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

NODES, FEW = 2, COUNTS[0]
BUSY_FROM = BUSY * FEW
KEY = "pool-1/node-1"
# Much room is left even after a few rounds of sixteen.
WIDE = BUSY_FROM + NODES * MUCH * FEW + 10 * FEW


@dataclass(frozen=True)
class Node:
    """A node of a region with a limit."""

    proxy: RenderedProxy

    def limit(self, in_ten_seconds: int) -> None:
        """Change the limit at run time; that of one second is out of reach."""
        self.proxy.command(f"set map {LIMITS_MAP} pool-1/rgn-1 {in_ten_seconds}|1000000||backend")

    def has_admitted(self, requests: int) -> None:
        """As if it had, in the last ten seconds."""
        self.proxy.command(f"set table st_limits key {KEY} data.gpc0_rate {requests}")

    def counted(self) -> int:
        """What its peers would be told that it admitted."""
        rows = (line.split() for line in self.proxy.command("show table st_limits").splitlines() if KEY in line)
        words = dict(word.split("=", 1) for row in rows for word in row[1:] if "=" in word)
        return int(words.get("gpc0_rate(10000)", 0))

    def ask(self, count: int) -> Counter[int]:
        """So many requests, one after the other on one connection; counts by status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.ports["lst-1"], timeout=PATIENCE_S / 4)
        found: Counter[int] = Counter()
        for _ in range(count):
            connection.request("GET", "/", headers={"Host": "a.example"})
            response = connection.getresponse()
            response.read()
            found[response.status] += 1
        connection.close()
        return found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    facts = [
        RegionNode(f"node-{n}", f"us-{n}", "127.0.0.1", spare_port(), spare_port(), spare_port())
        for n in range(1, NODES + 1)
    ]
    with echo_servers(1) as ports:
        limited = pool(
            1,
            servers=(server(1, address="127.0.0.1", port=ports[0]),),
            limit=Limit(LimitKind.RATE, 1000),
            when_full=WhenFull.REFUSE,
        )
        given = snapshot(front(route(1)), pools=(limited,), local_development=True, region_id="rgn-1")
        given = replace(given, overflow_key="5ec2e7" * 8, regions=(Region("rgn-1", "us", tuple(facts)),))
        compiled = compile_snapshot(given)
        assert not compiled.left_out
        with running(compiled.output, tmp_path_factory.mktemp("proxy")) as started:
            yield Node(started)


@pytest.fixture
def node(shared: Node) -> Node:
    """Busy already, with nothing counted in advance and much room."""
    for table in ("st_limits", "st_advance", "st_full", "st_flow"):
        shared.proxy.command(f"clear table {table}")
    shared.limit(WIDE)
    shared.has_admitted(BUSY_FROM)
    return shared


def test_a_busy_node_counts_sixteen_at_once_and_uses_them_up_before_it_counts_again(node: Node) -> None:
    for rounds in (1, 2, 3):
        assert node.ask(1) == {200: 1}
        assert node.counted() == BUSY_FROM + rounds * FEW
        assert node.ask(FEW - 1) == {200: FEW - 1}
        assert node.counted() == BUSY_FROM + rounds * FEW


def test_what_was_counted_in_advance_is_admitted_once_and_no_more(node: Node) -> None:
    assert node.ask(4) == {200: 4}
    node.limit(BUSY_FROM)  # which the sixteen have reached
    assert node.ask(20) == {200: FEW - 4, 503: 20 - (FEW - 4)}


def test_a_node_that_is_not_busy_or_has_little_room_counts_each_request_by_itself(node: Node) -> None:
    node.has_admitted(BUSY_FROM // 2)
    assert node.ask(3) == {200: 3}
    assert node.counted() == BUSY_FROM // 2 + 3
    node.has_admitted(WIDE - 5)
    assert node.ask(8) == {200: 5, 503: 3}


def test_a_drained_region_keeps_nothing_of_what_was_counted(node: Node) -> None:
    assert node.ask(4) == {200: 4}
    node.proxy.command(f"set map {LIMITS_MAP} pool-1/rgn-1 0|0|0|backend")
    assert node.ask(3) == {503: 3}
