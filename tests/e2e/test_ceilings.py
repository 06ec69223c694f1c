"""An account that takes all it can get, on a real HAProxy: its ceiling holds, and the others are served."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import AccountShare, Pool, Region, RegionNode, RegionShare, Snapshot
from apps.compiler.model.shared import Limit, LimitKind, Protocol, WeightedPool, WhenFull
from tests.e2e.overflow_env import KEY, POOL, OverflowEnv, RegionSetup, in_flight, regions
from tests.e2e.region_servers import HOST, Gate, SlowServer
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, running
from tests.ports import spare_port
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

NODE = 200  # connections that the node can have
MANY = 260
SHARES = (AccountShare("acc-1", "acme", 25), AccountShare("acc-2", "globex", 25))
GANG = ("one", "two", "three", "four")
CEILING = NODE // 4
BUSY = Limit(LimitKind.RATE, 1_000_000)
# Threads of HAProxy look at a count at the same moment.
AT_ONCE = 8


class ManyServer(SlowServer):
    """Lets as many wait as want to."""

    request_queue_size = 1024


@dataclass
class NodeEnv:
    """A node with acme's slow shop and globex's quick site, and clients who stay."""

    proxy: RenderedProxy
    gate: Gate
    clients: list[socket.socket] = field(default_factory=list)
    answers: dict[socket.socket, bytes] = field(default_factory=dict)
    turned_away: int = 0

    def flood(self, count: int, listener_id: str = "lst-1", host: str = HOST) -> None:
        """So many clients of as many addresses ask, and keep waiting."""
        for number in range(count):
            self.ask(listener_id, host, f"127.0.{number // 200 + 1}.{number % 200 + 1}")

    def leave(self) -> None:
        """Every client goes."""
        for client in self.clients:
            client.close()

    def connect(self, count: int, sources: int = 1) -> None:
        """So many clients come and say nothing."""
        where = ("127.0.0.1", self.proxy.ports["lst-1"])
        for number in range(count):
            source = f"127.0.{number % sources // 200 + 1}.{number % sources % 200 + 1}"
            try:
                self.clients.append(socket.create_connection(where, timeout=PATIENCE_S, source_address=(source, 0)))
            except ConnectionError:
                self.turned_away += 1

    def ask(self, listener_id: str, host: str, source: str = "127.0.0.1") -> socket.socket:
        """One client asks."""
        client = socket.create_connection(
            ("127.0.0.1", self.proxy.ports[listener_id]), timeout=PATIENCE_S, source_address=(source, 0)
        )
        client.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        self.clients.append(client)
        return client

    def denied(self) -> int:
        """How many connections were refused before a byte was read, of at least as many as the node can have."""
        wait_until(lambda: self._came() >= NODE)
        rows = [line.split(",") for line in self.proxy.command("show stat -1 1 -1").splitlines() if line]
        row = next(row for row in rows if row[0] == "lst-1")
        return int(row[rows[0].index("dcon")])

    def _came(self) -> int:
        lines = self.proxy.command("show info").splitlines()
        return int(next(line for line in lines if line.startswith("CumConns: "))[10:])

    def served(self) -> int:
        """How many wait at the server."""
        return self.gate.waiting

    def refused(self) -> int:
        """How many were turned away: an answer, or the end of the connection."""
        waiting = [client for client in self.clients if client not in self.answers]
        for client in readable(waiting):
            self.answers[client] = _received(client)
        return len(self.answers) + self.turned_away


def _received(client: socket.socket) -> bytes:
    try:
        return client.recv(4096)
    except OSError:
        return b""


def wait_until(condition: Callable[[], bool]) -> None:
    """Or fail after a long time."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def answered(client: socket.socket) -> bool:
    """Whether an answer lies there within a moment."""
    return bool(readable([client], 0.5))


def readable(clients: Iterable[socket.socket], seconds: float = 0.0) -> list[socket.socket]:
    """Those at which something lies; select() itself knows no descriptor above 1 023."""
    with selectors.DefaultSelector() as chosen:
        for client in clients:
            chosen.register(client, selectors.EVENT_READ, client)
        return [key.data for key, _ in chosen.select(seconds)]


def env(shop: int, site: int, shares: tuple[AccountShare, ...], **fields: Any) -> Snapshot:
    """Acme's shop over http and tcp with two pools, globex's site; `fields` are those of the shop's pool."""

    def of(number: int, account: str, port: int, **more: Any) -> Pool:
        servers = (server(number, address="127.0.0.1", port=port),)
        return pool(number, account=account, servers=servers, server_timeout_ms=600_000, **more)

    pools = (
        of(1, "acme", shop, **fields),
        of(2, "globex", site),
        of(3, "acme", shop, protocol=Protocol.TCP),
        of(4, "acme", site),
        *(of(number, account, shop) for number, account in enumerate(GANG, 5)),
    )
    routes = (
        route(1, HOST, pools=(WeightedPool("pool-1", 1),)),
        route(2, "site.example", account="globex", pools=(WeightedPool("pool-2", 1),)),
        route(3, "second.example", pools=(WeightedPool("pool-4", 1),)),
        *(
            route(number, f"{account}.{HOST}", account=account, pools=(WeightedPool(f"pool-{number}", 1),))
            for number, account in enumerate(GANG, 5)
        ),
    )
    listeners = (listener(1), listener(2, protocol=Protocol.TCP, default_pool_id="pool-3"))
    node = RegionNode("node-1", "one", "127.0.0.1", spare_port(), spare_port(), spare_port())
    regions = (Region("rgn-1", "here", (node,)), Region("rgn-2", "there"))
    balancer = front(*routes, listeners=listeners)
    found = snapshot(balancer, pools=pools, local_development=True, region_id="rgn-1", regions=regions)
    return replace(found, overflow_key="7" * 64, shares=shares)


@contextmanager
def node_env(directory: Path, shares: tuple[AccountShare, ...] = SHARES, **fields: Any) -> Iterator[NodeEnv]:
    gate = Gate()
    with ExitStack() as stack:
        servers = [ManyServer(("127.0.0.1", 0), "here", wait) for wait in (gate.pass_through, lambda: None)]
        for each in servers:
            threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            stack.callback(each.server_close)
            stack.callback(each.shutdown)
        made = env(servers[0].server_address[1], servers[1].server_address[1], shares, **fields)
        proxy = stack.enter_context(running(compile_snapshot(made).output, directory, NODE))
        stack.enter_context(gate.closed())
        found = NodeEnv(proxy, gate)
        stack.callback(found.leave)
        yield found


def test_one_account_cannot_fill_a_node_and_the_other_is_answered(tmp_path: Path) -> None:
    with node_env(tmp_path) as shown:
        shown.flood(MANY)
        wait_until(lambda: shown.served() + shown.refused() == MANY)
        assert shown.served() <= CEILING + AT_ONCE
        assert shown.proxy.ask("lst-1", "site.example", "/").status == 200


def test_without_a_ceiling_one_account_fills_the_node_and_the_other_waits(tmp_path: Path) -> None:
    with node_env(tmp_path, shares=()) as shown:
        shown.flood(MANY)
        wait_until(lambda: shown.served() >= NODE)
        assert not answered(shown.ask("lst-1", "site.example"))


def test_four_accounts_with_a_quarter_each_do_not_fill_a_node(tmp_path: Path) -> None:
    shares = tuple(AccountShare(f"acc-{number}", account, 25) for number, account in enumerate(GANG, 5))
    with node_env(tmp_path, (*SHARES, *shares)) as shown:
        for account in GANG:
            shown.flood(NODE // 2, host=f"{account}.{HOST}")
            wait_until(lambda: shown.served() in (NODE, len(shown.clients) - shown.refused()))
        assert shown.served() <= NODE - CEILING // 2
        assert {shown.proxy.ask("lst-1", "site.example", "/").status for _ in range(AT_ONCE)} == {200}


def test_a_share_of_all_is_all_of_the_node(tmp_path: Path) -> None:
    with node_env(tmp_path, (AccountShare("acc-1", "acme", 100),)) as shown:
        shown.flood(NODE - AT_ONCE)
        wait_until(lambda: shown.served() + shown.refused() == NODE - AT_ONCE)
        assert shown.refused() == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": BUSY},
        {"elsewhere": (RegionShare("rgn-2"),)},
        {"limit": Limit(LimitKind.RATE, 1), "when_full": WhenFull.SPREAD},
        {"limit": Limit(LimitKind.CONNECTIONS, 1), "when_full": WhenFull.QUEUE},
    ],
    ids=["limit", "elsewhere", "spread", "queue"],
)
def test_pools_with_limits_have_the_same_ceiling(tmp_path: Path, fields: dict[str, Any]) -> None:
    with node_env(tmp_path, **fields) as shown:
        shown.flood(MANY)
        wait_until(lambda: shown.refused() >= MANY - CEILING - AT_ONCE)
        assert shown.proxy.ask("lst-1", "site.example", "/").status == 200


def test_connections_count_as_requests_do(tmp_path: Path) -> None:
    with node_env(tmp_path) as shown:
        shown.flood(MANY, "lst-2")
        wait_until(lambda: shown.served() + shown.refused() == MANY)
        assert shown.served() <= CEILING + AT_ONCE
        assert shown.proxy.ask("lst-1", "site.example", "/").status == 200


@pytest.mark.exhaustive  # the control of requests is asked above
def test_connections_without_a_ceiling_fill_the_node(tmp_path: Path) -> None:
    with node_env(tmp_path, shares=()) as shown:
        shown.flood(MANY, "lst-2")
        wait_until(lambda: shown.served() >= NODE)
        assert not answered(shown.ask("lst-1", "site.example"))


def test_http_and_tcp_of_an_account_count_together_and_its_other_pool_is_served(tmp_path: Path) -> None:
    with node_env(tmp_path) as shown:
        for listener_id in ("lst-1", "lst-2"):
            shown.flood(MANY // 2, listener_id)
            wait_until(lambda: shown.served() + shown.refused() == len(shown.clients))
        assert shown.served() <= CEILING + AT_ONCE
        assert shown.proxy.ask("lst-1", "second.example", "/").status == 200


@pytest.mark.exhaustive  # what the map then says is asked in tests/apps
def test_an_operator_gives_an_account_more(tmp_path: Path) -> None:
    shares = (AccountShare("acc-1", "acme", 80), SHARES[1])
    with node_env(tmp_path, shares) as shown:
        shown.flood(NODE // 2)
        wait_until(lambda: shown.served() + shown.refused() == NODE // 2)
        assert shown.refused() == 0


def test_a_refusal_says_why_is_counted_and_ends_its_connection(tmp_path: Path) -> None:
    with node_env(tmp_path) as shown:
        shown.flood(MANY)
        wait_until(lambda: shown.served() + shown.refused() == MANY)
        texts = list(shown.answers.values())
        assert all(b" 503 " in text and b"as many requests under way" in text for text in texts)
        assert all(b"retry-after: 1" in text.lower() and b"connection: close" in text.lower() for text in texts)
        flows = shown.proxy.command("show table st_flow")
        assert "key=pool-1/refuse/rgn-1/ceiling " in flows
        assert f"gpc0={len(texts)}" in flows


def test_one_address_that_asks_for_nothing_leaves_room_for_the_others(tmp_path: Path) -> None:
    with node_env(tmp_path) as shown:
        shown.connect(MANY)
        assert shown.denied() > 0
        assert shown.proxy.ask("lst-1", "site.example", "/").status == 200


@pytest.mark.exhaustive  # of one it is asked above
def test_of_many_addresses_each_gets_its_own(tmp_path: Path) -> None:
    with node_env(tmp_path) as shown:
        shown.connect(MANY, sources=MANY)
        assert shown.denied() == 0


def test_connections_do_not_idle_where_there_are_many(tmp_path: Path) -> None:
    last = NODE * 6 // 10
    with node_env(tmp_path) as shown:
        texts = [shown.ask("lst-1", "site.example", f"127.0.0.{n % 9 + 1}").recv(4096) for n in range(last + 1)]
    assert ["connection: close" in text.decode() for text in texts] == [False] * last + [True]


def flooded(env: OverflowEnv, count: int) -> tuple[int, int]:
    """So many clients of the first region that are under way at one moment: how many are held, how many answered."""
    clients: list[socket.socket] = []

    def found() -> tuple[int, int]:
        return env.gate.waiting, len(readable(clients))

    with env.gate.closed():
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", env.nodes[0][0].port), timeout=PATIENCE_S)
            client.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            clients.append(client)
            wait_until(lambda: sum(found()) == len(clients))
        return found()


def test_what_goes_to_another_region_counts_where_it_came_in() -> None:
    setups = (RegionSetup(in_flight(1), held=True), RegionSetup(held=True))
    with regions(*setups, connections=(NODE, 100 * NODE)) as env:
        held, _ = flooded(env, NODE // 2)
        assert held <= CEILING
        assert env.nodes[0][0].flows()[f"{POOL}/refuse/rgn-1/ceiling-out"] == NODE // 2 - held


def test_what_comes_from_another_region_counts_where_it_is_served() -> None:
    setups = (RegionSetup(in_flight(1), held=True), RegionSetup(held=True))
    with regions(*setups, connections=(100 * NODE, NODE), when_full=WhenFull.REFUSE) as env:
        held, _ = flooded(env, NODE // 2)
        assert held <= CEILING + 2
        assert env.nodes[0][0].flows()[f"{POOL}/refuse/rgn-1/full"] == NODE // 2 - held


def test_a_region_is_not_full_because_an_account_is_above_its_own_part() -> None:
    with regions(RegionSetup(), RegionSetup(held=True), connections=(NODE, NODE)) as env:
        port = env.nodes[1][0].facts.overflow_port
        words = f"x-spillway-key: {KEY}\r\nx-spillway-pool: {POOL}\r\nx-spillway-from: rgn-1"
        clients = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) for _ in range(CEILING - AT_ONCE)]
        with env.gate.closed():
            for client in clients:
                client.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n{words}\r\n\r\n".encode())
            wait_until(lambda: env.gate.waiting == len(clients))
        answers = [client.recv(4096) for client in clients]
        assert all(b" 200 " in answer for answer in answers)
        assert not any(b"x-spillway-over" in answer for answer in answers)


@pytest.mark.exhaustive  # the control of requests is asked above
def test_without_ceilings_another_region_takes_all_of_it() -> None:
    with regions(RegionSetup(in_flight(1), held=True), RegionSetup(held=True)) as env:
        assert flooded(env, NODE // 2) == (NODE // 2, 0)
