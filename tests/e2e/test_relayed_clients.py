"""A node that is nearly full, with clients behind a balancer or a CDN: each counts by its own address."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import ClientAddress
from apps.compiler.model.shared import FixedResponse
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, running
from tests.pure.compiler_fixtures import front, listener, route, snapshot

pytestmark = pytest.mark.e2e

NODE = 200  # connections that the node can have
MANY = 190
CDN, BALANCER = "127.0.0.2", "127.0.0.4"
HEAD = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"


@contextmanager
def node(directory: Path) -> Iterator[tuple[RenderedProxy, list[socket.socket]]]:
    """Listeners for anybody, behind a balancer and behind a CDN; and their clients, who leave in the end."""
    listeners = (
        listener(1),
        listener(2, client_address=ClientAddress(proxy_protocol_from=(f"{BALANCER}/32",))),
        listener(3, client_address=ClientAddress(forwarded_from=(f"{CDN}/32",))),
    )
    made = snapshot(front(route(1, fixed_response=FixedResponse(200)), listeners=listeners))
    clients: list[socket.socket] = []
    with ExitStack() as stack:
        proxy = stack.enter_context(running(compile_snapshot(made).output, directory, NODE))
        yield proxy, clients
        for client in clients:
            client.close()


def come(proxy: RenderedProxy, clients: list[socket.socket], number: int, source: str, said: list[bytes]) -> None:
    """Clients that say this and nothing more."""
    for each in said:
        where = ("127.0.0.1", proxy.ports[f"lst-{number}"])
        # Who is refused may learn it while it still connects.
        with suppress(ConnectionResetError):
            client = socket.create_connection(where, timeout=PATIENCE_S, source_address=(source, 0))
            clients.append(client)
            client.sendall(each)


def denied(proxy: RenderedProxy, number: int) -> int:
    """How many were refused before they asked anything, a moment after the last one came."""
    time.sleep(0.5)
    rows = [line.split(",") for line in proxy.command("show stat -1 1 -1").splitlines() if line]
    row = next(row for row in rows if row[0] == f"lst-{number}")
    return sum(int(row[rows[0].index(name)]) for name in ("dcon", "dses"))


def client_at(address: str) -> bytes:
    """What the balancer says of a client."""
    return f"PROXY TCP4 {address} 192.0.2.1 40000 80\r\n".encode()


def test_behind_a_balancer_one_client_leaves_room_for_the_others(tmp_path: Path) -> None:
    with node(tmp_path) as (proxy, clients):
        come(proxy, clients, 2, BALANCER, [client_at("198.51.100.8")] * MANY)
        assert denied(proxy, 2) > 0
        come(proxy, clients, 2, BALANCER, [client_at("198.51.100.9") + HEAD])
        assert clients[-1].recv(12) == b"HTTP/1.1 200"


def test_behind_a_balancer_each_of_many_clients_gets_its_own(tmp_path: Path) -> None:
    with node(tmp_path) as (proxy, clients):
        come(proxy, clients, 2, BALANCER, [client_at(f"198.51.100.{number}") for number in range(MANY)])
        assert denied(proxy, 2) == 0


def test_who_comes_past_the_balancer_counts_by_its_own_address(tmp_path: Path) -> None:
    with node(tmp_path) as (proxy, clients):
        come(proxy, clients, 2, "127.0.0.9", [b""] * MANY)
        assert denied(proxy, 2) > 0


def test_a_cdn_may_have_many_connections_and_a_stranger_may_not(tmp_path: Path) -> None:
    with node(tmp_path) as (proxy, clients):
        come(proxy, clients, 3, CDN, [b""] * MANY)
        assert denied(proxy, 3) == 0
    with node(tmp_path) as (proxy, clients):
        come(proxy, clients, 1, CDN, [b""] * MANY)
        assert denied(proxy, 1) > 0
