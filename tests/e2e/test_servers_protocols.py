"""What is spoken with servers through real HAProxy: PROXY protocol, Host, backups, bounds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.servers import Connections, ProxyProtocol, Retries, RetryOn
from tests.e2e.overflow_env import RegionSetup, regions
from tests.e2e.rendered_proxy import RenderedProxy, echo_servers, running
from tests.e2e.test_servers_checks import Talk, talking
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e
HOST = "a.example"
V2 = b"\r\n\r\n\0\r\nQUIT\n"


def fleet_of(*ports: int, backups: tuple[int, ...] = (), **fields: Any) -> Snapshot:
    """A pool with these servers."""
    servers = tuple(
        server(number, address="127.0.0.1", port=port, backup=port in backups) for number, port in enumerate(ports, 1)
    )
    return snapshot(front(route(1)), pools=(pool(1, servers=servers, **fields),), local_development=True)


@contextmanager
def proxied(directory: Path, fleet: Snapshot) -> Iterator[RenderedProxy]:
    compilation = compile_snapshot(fleet)
    assert compilation.left_out == ()
    with running(compilation.output, directory) as proxy:
        yield proxy


def heard(found: list[bytes]) -> Talk:
    """Keep what comes first, and answer."""

    def talk(connection: Any) -> None:
        request = b""
        while b"\r\n\r\n" not in request.removeprefix(V2):
            part = connection.recv(65536)
            if not part:
                return
            request += part
        found.append(request)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    return talk


@pytest.mark.parametrize(
    ("version", "begins"),
    [(ProxyProtocol.V1, b"PROXY TCP4 127.0.0.1 127.0.0.1 "), (ProxyProtocol.V2, V2), (ProxyProtocol.NONE, b"GET / ")],
)
def test_each_connection_begins_with_the_clients_address(tmp_path: Path, version: ProxyProtocol, begins: bytes) -> None:
    found: list[bytes] = []
    with talking(heard(found)) as port, proxied(tmp_path, fleet_of(port, proxy_protocol=version)) as proxy:
        assert proxy.ask("lst-1", HOST, "/").status == 200
    assert found[0].startswith(begins)


def test_the_host_header_is_the_pools_where_it_says_one(tmp_path: Path) -> None:
    with echo_servers(1) as ports, proxied(tmp_path, fleet_of(*ports, host_header="inner.example")) as proxy:
        answer: Any = proxy.ask("lst-1", HOST, "/").json
        assert (answer["headers"]["host"], answer["headers"]["x-forwarded-host"]) == (["inner.example"], [HOST])


def test_servers_get_the_headers_of_their_pool_whatever_the_client_says(tmp_path: Path) -> None:
    with echo_servers(1) as ports, proxied(tmp_path, fleet_of(*ports, request_headers=(("X-Side", "blue"),))) as proxy:
        answer: Any = proxy.ask("lst-1", HOST, "/", headers={"x-side": "green"}).json
        assert answer["headers"]["x-side"] == ["blue"]


def test_a_backup_serves_only_while_nobody_else_is_up(tmp_path: Path) -> None:
    with echo_servers(2) as (first, backup), proxied(tmp_path, fleet_of(first, backup, backups=(backup,))) as proxy:
        assert _ports(proxy) == {str(first)}
        proxy.command("set server pool-1/srv-1 state maint")
        assert _ports(proxy) == {str(backup)}


def _ports(proxy: RenderedProxy) -> set[str]:
    return {proxy.ask("lst-1", HOST, "/").headers["x-echo-port"] for _ in range(6)}


@pytest.mark.parametrize(("bounds", "most"), [(Connections(2, max_queue=50), 2), (None, 8)])
def test_a_server_gets_no_more_requests_at_once_than_its_bound(
    tmp_path: Path, bounds: Connections | None, most: int
) -> None:
    now, peak, lock = [0], [0], threading.Lock()

    def talk(connection: Any) -> None:
        connection.recv(65536)
        with lock:
            now[0] += 1
            peak[0] = max(peak[0], now[0])
        time.sleep(0.5)
        with lock:
            now[0] -= 1
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    with talking(talk) as port, proxied(tmp_path, fleet_of(port, connections=bounds)) as proxy:
        threads = [threading.Thread(target=proxy.ask, args=("lst-1", HOST, "/")) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert peak[0] <= most
    assert bounds is not None or peak[0] > 2


@pytest.mark.parametrize(("retries", "status"), [(Retries(3, (RetryOn.S503,)), 200), (None, 503)])
def test_a_status_that_is_named_is_tried_again(tmp_path: Path, retries: Retries | None, status: int) -> None:
    answers = iter(["503 Busy", "503 Busy", *["200 OK"] * 9])

    def talk(connection: Any) -> None:
        connection.recv(65536)
        text = f"HTTP/1.1 {next(answers)}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        connection.sendall(text.encode())

    with talking(talk) as port, proxied(tmp_path, fleet_of(port, retries=retries)) as proxy:
        assert proxy.ask("lst-1", HOST, "/").status == status


def test_what_overflows_is_sent_with_the_clients_own_address_and_the_pools_settings() -> None:
    setups = (RegionSetup(scaler=0.0), RegionSetup())
    with regions(*setups, proxy_protocol=ProxyProtocol.V1, host_header="inner.example") as env:
        found: list[bytes] = []
        with talking(heard(found)) as port:
            for node in env.nodes[1]:
                node.command(f"set server pool-1/srv-11 addr 127.0.0.1 port {port}")
                node.command("set server pool-1/srv-11 health up")
            assert env.nodes[0][0].ask(headers={"X-Forwarded-For": "198.51.100.7"}).status == 200
        served = next(each for each in found if b"inner.example" in each)
        assert served.startswith(b"PROXY TCP4 127.0.0.1 ")
