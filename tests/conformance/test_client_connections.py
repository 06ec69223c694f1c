"""Limits of new connections per client in a real HAProxy: who is let in, and who is closed before anything is read."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import ClientAddress, ConnectionLimit
from apps.compiler.model.shared import Protocol
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

# A minute's limit does not depend on how busy the machine is; 127.0.0.0/8 is where the tests come from.
FEW = ConnectionLimit(connections=3, per="minute")
CLIENT, OTHER, NODE = "127.0.0.2", "127.0.0.3", "127.0.0.1"
BALANCER, CDN = "127.0.0.4", "127.0.0.5"
PLAIN, WIDER, EXEMPT, NOT_EXEMPT, LOGGED, BEHIND_BALANCER, BEHIND_CDN, TCP, BURST, FREE = range(1, 11)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """A listener for each case."""
    listeners = (
        listener(PLAIN, client_limit=FEW),
        listener(WIDER, client_limit=replace(FEW, ipv4_prefix=24)),
        listener(EXEMPT, client_limit=replace(FEW, exempt=("127.0.0.0/30", "2001:db8::/32"))),
        listener(NOT_EXEMPT, client_limit=replace(FEW, exempt=tuple(f"198.51.100.{n}/32" for n in range(100)))),
        listener(LOGGED, client_limit=replace(FEW, log_only=True)),
        listener(BEHIND_BALANCER, client_limit=FEW, client_address=ClientAddress((f"{BALANCER}/32",))),
        listener(BEHIND_CDN, client_limit=FEW, client_address=ClientAddress((), (f"{CDN}/32",))),
        listener(TCP, client_limit=FEW, protocol=Protocol.TCP, default_pool_id="pool-2"),
        listener(BURST, client_limit=ConnectionLimit(connections=1000, per="minute", burst=2)),
        listener(FREE),
    )
    directory: Path = tmp_path_factory.mktemp("connections")
    with echo_servers(1) as ports:
        web, raw = (server(number, address="127.0.0.1", port=ports[0]) for number in (1, 2))
        pools = (pool(1, servers=(web,)), pool(2, servers=(raw,), protocol=Protocol.TCP))
        compilation = compile_snapshot(
            snapshot(front(route(1), listeners=listeners), pools=pools, local_development=True)
        )
        assert compilation.left_out == ()
        with running(compilation.output, directory) as found:
            yield found


@pytest.fixture(autouse=True)
def _nobody_has_come(proxy: RenderedProxy) -> None:
    proxy.command("clear table st_clients_minute")


def come(proxy: RenderedProxy, number: int, source: str = CLIENT, first: bytes = b"", mark: str = "") -> str:
    """What the server was told of a client that opens a connection and asks once; "" for who is not let in."""
    where = ("127.0.0.1", proxy.ports[f"lst-{number}"])
    connection = http.client.HTTPConnection(*where, timeout=PATIENCE_S)
    try:
        connection.sock = socket.create_connection(where, timeout=PATIENCE_S, source_address=(source, 0))
        connection.sock.sendall(first)
        connection.request("GET", "/", headers={"Host": "a.example"} | ({"X-Client-Limit": mark} if mark else {}))
        return connection.getresponse().read().decode()
    except ConnectionError:
        return ""
    finally:
        connection.close()


def let_in(proxy: RenderedProxy, number: int, count: int, source: str = CLIENT, first: bytes = b"") -> int:
    """How many of some connections are let in."""
    return sum(bool(come(proxy, number, source, first)) for _ in range(count))


def test_one_address_opens_so_many_connections_and_others_theirs(proxy: RenderedProxy) -> None:
    assert let_in(proxy, PLAIN, 5) == 3
    assert let_in(proxy, PLAIN, 5, OTHER) == 3
    assert let_in(proxy, FREE, 5) == 5


def test_an_open_connection_asks_as_often_as_it_likes(proxy: RenderedProxy) -> None:
    where = ("127.0.0.1", proxy.ports[f"lst-{PLAIN}"])
    connection = http.client.HTTPConnection(*where, timeout=PATIENCE_S, source_address=(CLIENT, 0))
    for _ in range(6):
        connection.request("GET", "/", headers={"Host": "a.example"})
        assert connection.getresponse().read()
    connection.close()
    assert let_in(proxy, PLAIN, 5) == 2


def test_listeners_count_apart(proxy: RenderedProxy) -> None:
    assert let_in(proxy, PLAIN, 4) == 3
    assert let_in(proxy, NOT_EXEMPT, 4) == 3


def test_a_prefix_joins_addresses(proxy: RenderedProxy) -> None:
    assert let_in(proxy, WIDER, 2) == 2
    assert let_in(proxy, WIDER, 2, OTHER) == 1
    assert let_in(proxy, WIDER, 2, "127.0.1.1") == 2


def test_exempt_networks_and_the_node_itself_open_any_number(proxy: RenderedProxy) -> None:
    assert let_in(proxy, EXEMPT, 6) == 6
    assert let_in(proxy, EXEMPT, 6, "127.0.0.9") == 3
    assert let_in(proxy, PLAIN, 6, NODE) == 6  # the agent asks so whether its listeners answer


def test_log_only_lets_in_and_tells_the_server(proxy: RenderedProxy) -> None:
    found = [come(proxy, LOGGED, mark="forged") for _ in range(5)]
    assert ['"x-client-limit": ["exceeded"]' in each for each in found] == [False] * 3 + [True] * 2
    assert "forged" not in "".join(found)


def test_the_server_still_sees_the_client_and_not_the_key(proxy: RenderedProxy) -> None:
    assert f'"x-forwarded-for": ["{CLIENT}"]' in come(proxy, PLAIN)


def test_behind_a_balancer_the_client_counts_and_not_the_balancer(proxy: RenderedProxy) -> None:
    def said(last: int) -> bytes:
        return f"PROXY TCP4 198.51.100.{last} 192.0.2.1 40000 80\r\n".encode()

    assert let_in(proxy, BEHIND_BALANCER, 5, BALANCER, said(1)) == 3
    assert let_in(proxy, BEHIND_BALANCER, 5, BALANCER, said(2)) == 3
    assert let_in(proxy, BEHIND_BALANCER, 5) == 3


def test_who_forwards_for_many_is_spared(proxy: RenderedProxy) -> None:
    assert let_in(proxy, BEHIND_CDN, 6, CDN) == 6
    assert let_in(proxy, BEHIND_CDN, 6) == 3


def test_a_listener_of_tcp_limits_as_well(proxy: RenderedProxy) -> None:
    assert let_in(proxy, TCP, 5) == 3


def test_a_burst_bounds_each_second(proxy: RenderedProxy) -> None:
    assert let_in(proxy, BURST, 20) < 20  # a machine on which this takes ten seconds cannot tell
