"""Networks that may connect, in a real HAProxy: who is let in, and who is closed before anything is read."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from apps.agent.process import counters
from apps.compiler.bundle import Bundle
from apps.compiler.compile import Compilation, compile_snapshot
from apps.compiler.model.access import ConnectionAccess, NetworkList
from apps.compiler.model.listener_options import ClientAddress, ConnectionLimit
from apps.compiler.model.operations import SetMapEntry
from apps.compiler.model.shared import Protocol
from apps.compiler.plan import Runtime, plan
from apps.compiler.questions.guarding import refusal
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

HERE, THERE, NODE, BALANCER = "127.0.0.2", "127.0.0.3", "127.0.0.1", "127.0.0.4"
LISTS = (
    NetworkList("net-1", "acme/here", ("127.0.0.2/32", "192.0.2.0/24")),
    NetworkList("net-2", "acme/nobody"),
    NetworkList("net-3", "acme/all", ("127.0.0.0/8",)),
    NetworkList("geo-4", "acme/abroad", countries=("XX",)),
    NetworkList("country-XX", "XX", ("127.0.0.3/32",)),
)
ALLOWED, DENIED, BOTH, CLOSED, TCP, BEHIND, ABROAD, FREE, LIMITED = range(1, 10)
ACCESS = {
    ALLOWED: ConnectionAccess(allow=("net-1",)),
    DENIED: ConnectionAccess(deny=("net-1",)),
    BOTH: ConnectionAccess(allow=("net-3", "net-2"), deny=("net-1",)),
    CLOSED: ConnectionAccess(allow=("net-2",)),
    ABROAD: ConnectionAccess(deny=("geo-4",)),
}


def compiled(port: int, lists: tuple[NetworkList, ...]) -> Compilation[Bundle]:
    """A listener for each case, with these lists."""
    allowed = ACCESS[ALLOWED]
    listeners = (
        *(listener(number, access=access) for number, access in ACCESS.items()),
        listener(TCP, access=allowed, protocol=Protocol.TCP, default_pool_id="pool-2"),
        listener(BEHIND, access=allowed, client_address=ClientAddress((f"{BALANCER}/32",))),
        listener(FREE, access=ConnectionAccess()),
        listener(LIMITED, access=allowed, client_limit=ConnectionLimit(connections=1, per="minute")),
    )
    web, raw = (server(number, address="127.0.0.1", port=port) for number in (1, 2))
    pools = (pool(1, servers=(web,)), pool(2, servers=(raw,), protocol=Protocol.TCP))
    served = replace(front(route(1), listeners=listeners), network_lists=lists)
    return compile_snapshot(snapshot(served, pools=pools, local_development=True))


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """They all in one HAProxy."""
    with echo_servers(1) as ports:
        compilation = compiled(ports[0], LISTS)
        assert compilation.left_out == ()
        with running(compilation.output, tmp_path_factory.mktemp("access")) as found:
            yield found


def is_let_in(proxy: RenderedProxy, number: int, source: str, first: str = "") -> bool:
    """Whether a client from there gets a response."""
    where = ("127.0.0.1", proxy.ports[f"lst-{number}"])
    try:
        with socket.create_connection(where, timeout=PATIENCE_S, source_address=(source, 0)) as connection:
            connection.sendall(f"{first}GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n".encode())
            return connection.recv(12) == b"HTTP/1.1 200"
    except ConnectionError:
        return False


@pytest.mark.parametrize(
    ("number", "here", "there"),
    [
        (ALLOWED, True, False),
        (DENIED, False, True),
        (BOTH, False, True),
        (CLOSED, False, False),
        (TCP, True, False),
        (ABROAD, True, False),
        (FREE, True, True),
    ],
)
def test_connections_are_let_in_by_the_lists_of_the_listener(
    proxy: RenderedProxy, number: int, here: bool, there: bool
) -> None:
    assert (is_let_in(proxy, number, HERE), is_let_in(proxy, number, THERE)) == (here, there)
    said = ACCESS.get(number, ConnectionAccess() if number == FREE else ACCESS[ALLOWED])
    told = [refusal(said, LISTS, client) is None for client in (HERE, THERE)]
    assert told == [here, there]


@pytest.mark.parametrize("number", [ALLOWED, CLOSED, TCP])
def test_the_node_itself_is_never_closed_out(proxy: RenderedProxy, number: int) -> None:
    assert is_let_in(proxy, number, NODE)


def test_behind_a_balancer_the_client_that_it_names_counts(proxy: RenderedProxy) -> None:
    told = "PROXY TCP4 {} 127.0.0.9 5000 80\r\n"
    assert is_let_in(proxy, BEHIND, BALANCER, told.format("192.0.2.7"))
    assert not is_let_in(proxy, BEHIND, BALANCER, told.format("198.51.100.7"))
    assert not is_let_in(proxy, BEHIND, THERE)


def test_whoever_is_closed_out_does_not_count_as_a_connection(proxy: RenderedProxy) -> None:
    assert [is_let_in(proxy, LIMITED, THERE) for _ in range(3)] == [False] * 3
    assert [is_let_in(proxy, LIMITED, HERE) for _ in range(2)] == [True, False]


def test_every_connection_that_is_closed_is_counted(proxy: RenderedProxy) -> None:
    def rejected() -> int:
        rows = counters.read(proxy.command(counters.COMMAND))["rows"]
        found = {row["object_id"]: row["connections"] for row in rows if row["kind"] == "rejected"}
        return int(found.get(f"lst-{CLOSED}", 0))

    before = rejected()
    for client in (HERE, THERE, NODE):
        is_let_in(proxy, CLOSED, client)
    assert rejected() - before == 2


def test_a_change_of_a_list_is_a_map_entry() -> None:
    longer = replace(LISTS[0], networks=(*LISTS[0].networks, "198.51.100.0/24"))
    made = plan(compiled(9, LISTS).output, compiled(9, (longer, *LISTS[1:])).output)
    assert isinstance(made, Runtime)
    assert made.operations == (SetMapEntry("maps/net-1.map", "198.51.100.0/24", "1"),)


def test_a_listener_whose_list_is_missing_or_wrong_is_left_out() -> None:
    for lists in (LISTS[1:], (replace(LISTS[0], networks=("all",)), *LISTS[1:])):
        left_out = {each.object_id for each in compiled(9, lists).left_out}
        assert left_out == {f"lst-{number}" for number in (ALLOWED, DENIED, BOTH, TCP, BEHIND, LIMITED)}
