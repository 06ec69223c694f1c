"""What no route gets, asked of a real HAProxy: requests in a circle, hosts that are none, the balancer itself."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import FixedResponse, Protocol
from apps.compiler.questions.trace import Question, trace
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, echo_servers, running
from tests.ports import spare_port
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

MARK = "spillway-" + "ab" * 16
HOSTS = (
    "a.example", "A.Example", "a.example.", "A.EXAMPLE.:80", "a.example:8080", "a.example:", "a.example..",
    ".a.example", "a..example", "a.example/x", "a.example?x", "a.example,b.example", "a_b.example", "a.example;x",
    "a.example@b.example", "[::1]:80", "a%2eexample", "a.example\\x", "x.a.example", "unknown.example",
)  # fmt: skip
METHODS = (("CONNECT", "a.example:443"), ("OPTIONS", "*"), ("OPTIONS", "/"), ("GET", "/"))


def env(ports: list[int], mark: str = MARK) -> Snapshot:
    """One host on an echo, one on a fixed response."""
    routes = (
        route(1, "a.example", "/"),
        route(2, "a.example", "/x", fixed_response=FixedResponse(418)),
        route(3, "*.a.example", "/", fixed_response=FixedResponse(418)),
    )
    pools = (pool(1, servers=(server(1, address="127.0.0.1", port=ports[0]),)),)
    return snapshot(front(*routes), pools=pools, local_development=True, loop_mark=mark)


@pytest.fixture(scope="module")
def ports() -> Iterator[list[int]]:
    with echo_servers(1) as opened:
        yield opened


@pytest.fixture(scope="module")
def proxy(ports: list[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    with running(compile_snapshot(env(ports)).output, tmp_path_factory.mktemp("proxy")) as started:
        yield started


def raw(proxy: RenderedProxy, head: str) -> int:
    """The status of the answer to these bytes."""
    with socket.create_connection(("127.0.0.1", proxy.ports["lst-1"]), timeout=PATIENCE_S) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n")
        return int(connection.recv(4096).split()[1])


def round_trip(directory: Path, mark: str) -> tuple[int, int]:
    """One request to a pool whose server is the listener itself: its status, and connections of the proxy until then.

    The listener's port is known only when it runs, so the server is told in the end, as an address that changes.
    """
    pools = (pool(1, servers=(server(1, address="127.0.0.1", port=spare_port()),), server_timeout_ms=500),)
    whole = snapshot(front(route(1)), pools=pools, local_development=True, loop_mark=mark)
    with running(compile_snapshot(whole).output, directory) as proxy:
        proxy.command(f"set server pool-1/srv-1 addr 127.0.0.1 port {proxy.ports['lst-1']}")
        status = proxy.ask("lst-1", "a.example", "/").status
        rows = [line.split(",") for line in proxy.command("show stat -1 1 -1").splitlines() if line]
        total = next(row for row in rows if row[0] == "lst-1")[rows[0].index("stot")]
        return status, int(total)


def test_a_pool_that_leads_back_to_its_listener_is_answered_508_at_the_first_return(tmp_path: Path) -> None:
    status, connections = round_trip(tmp_path, MARK)
    assert status == 508
    assert connections <= 4  # the test that it runs, the client, the return; a circle has hundreds


def test_without_the_mark_one_request_goes_round_and_round(tmp_path: Path) -> None:
    status, connections = round_trip(tmp_path, "")
    assert status == 504
    assert connections > 20


def test_a_server_sees_our_mark_once_and_the_marks_of_others(proxy: RenderedProxy) -> None:
    headers = proxy.ask("lst-1", "a.example", "/", headers={"CDN-Loop": "other; hops=3, spillway-wrong"}).json[
        "headers"
    ]
    assert isinstance(headers, dict)
    assert headers["cdn-loop"] == ["other; hops=3, spillway-wrong", f"{MARK}; hops=1"]


@pytest.mark.parametrize("value", [f"{MARK}; hops=1", f"other, {MARK}", f"other,{MARK};hops=7"])
def test_our_mark_anywhere_in_the_header_is_a_circle(proxy: RenderedProxy, value: str) -> None:
    answer = proxy.ask("lst-1", "a.example", "/x", headers={"CDN-Loop": value})
    assert (answer.status, answer.body) == (508, answer.body)
    assert "round in circles" in answer.body


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_is_read_as_the_reference_reads_it(proxy: RenderedProxy, ports: list[int], host: str) -> None:
    balancer = env(ports).load_balancers[0]
    wanted = trace(balancer, Question(host, "/", scheme=Protocol.HTTP))
    status = raw(proxy, f"GET / HTTP/1.1\r\nHost: {host}")
    assert status == (wanted.status or 200)


@pytest.mark.parametrize(("method", "target"), METHODS)
def test_what_asks_for_the_balancer_itself_is_refused_as_the_reference_says(
    proxy: RenderedProxy, ports: list[int], method: str, target: str
) -> None:
    balancer = env(ports).load_balancers[0]
    wanted = trace(balancer, Question("a.example", target, method, Protocol.HTTP))
    host = target if method == "CONNECT" else "a.example"
    assert raw(proxy, f"{method} {target} HTTP/1.1\r\nHost: {host}") == (wanted.status or 200)


def test_servers_get_the_host_without_its_final_dot(proxy: RenderedProxy) -> None:
    headers = proxy.ask("lst-1", "a.example.:8080", "/").json["headers"]
    assert isinstance(headers, dict)
    assert (headers["host"], headers["x-forwarded-host"]) == (["a.example:8080"], ["a.example:8080"])


def test_a_request_without_any_host_is_for_no_route_and_breaks_nothing(proxy: RenderedProxy) -> None:
    assert raw(proxy, "GET / HTTP/1.0") == 404


def test_two_installations_find_the_circle_through_both(ports: list[int], tmp_path: Path) -> None:
    theirs = env(ports, "spillway-" + "cd" * 16)
    with running(compile_snapshot(theirs).output, tmp_path) as second:
        answer = second.ask("lst-1", "a.example", "/", headers={"CDN-Loop": f"{MARK}; hops=1"})
        headers = answer.json["headers"]
    assert isinstance(headers, dict)
    assert any(value.startswith(MARK) for value in headers["cdn-loop"])
