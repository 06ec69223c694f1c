"""Pages of errors, bounds of bodies, times and repetition by policy, in a real HAProxy, each beside a route without."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.policy import Body, ErrorPages, Retries, Rules, Timeouts
from apps.compiler.model.shared import WeightedPool
from apps.compiler.policies import rule_set
from tests.conformance.plain_servers import answering, read_until
from tests.e2e.rendered_proxy import Answer, RenderedProxy, running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

PAGE = '<h1>Sorry: {status}</h1>\n<p class="a">100% "done" — é\\ $HOME</p>\n'
SHORT = ErrorPages((404, 503), "text/plain; charset=utf-8", "{status}: later\n")
CASES = {
    "plain": Rules(),
    "own": Rules(error_pages=ErrorPages((404, 413, 502, 503, 504), body=PAGE)),
    "over": Rules(error_pages=ErrorPages((404, 500), body=PAGE, intercept=True)),
    "short": Rules(error_pages=SHORT),
    "bound": Rules(body=Body(max_bytes=20_000), error_pages=ErrorPages((413,), "application/json", '{"too": "long"}')),
    "small": Rules(body=Body(max_bytes=10)),
    "waits": Rules(body=Body(buffered=True)),
    "quick": Rules(timeouts=Timeouts(response_ms=300)),
    "once": Rules(retries=Retries(after_sending=False)),
}
# What the pools of a route do, by the number of the pool.
SERVES, CLOSED, SILENT, HANGS_UP = 1, 2, 3, 4


def serve(connection: socket.socket) -> None:
    """Answers with the status of the path (`/404`) and the length of the body, again and again."""
    while head := read_until(connection, b"\r\n\r\n"):
        headers, _, body = head.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in headers.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        while len(body) < length:
            body += connection.recv(65536)
        while b"chunked" in headers.lower() and not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65536)
        path = headers.split(b" ")[1].lstrip(b"/") or b"200"
        text = b"server"
        connection.sendall(b"HTTP/1.1 %s Said\r\nContent-Length: %d\r\n\r\n%s" % (path, len(text), text))


class Counter:
    """A server that closes each connection once it got a request, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, connection: socket.socket) -> None:
        if read_until(connection, b"\r\n\r\n"):
            self.count += 1


HANGING_UP = Counter()


@contextmanager
def environment(directory: Path) -> Iterator[RenderedProxy]:
    """`<case>.example/` to a server, `/closed`, `/silent` and `/hangs-up` to those that are so."""
    sets = {name: rule_set(rules) for name, rules in CASES.items()}
    ways = {"/": SERVES, "/closed": CLOSED, "/silent": SILENT, "/hangs-up": HANGS_UP}
    routes = [
        route(
            10 * number + way, hostname=f"{name}.example", path=path, pools=(WeightedPool(f"pool-{way}", 1),),
            rule_set=sets[name].id,
        )
        for number, name in enumerate(sets, 1)
        for path, way in ways.items()
    ]  # fmt: skip
    served = replace(front(*routes), rule_sets=tuple(sets.values()))
    with answering(serve) as one, answering(lambda _: time.sleep(3)) as three, answering(HANGING_UP) as four:
        ports = {SERVES: one, CLOSED: 9, SILENT: three, HANGS_UP: four}
        pools = tuple(
            pool(
                number,
                servers=(server(number, address="127.0.0.1", port=port),),
                server_timeout_ms=1500,
                connect_timeout_ms=200,
            )
            for number, port in ports.items()
        )
        compilation = compile_snapshot(snapshot(served, pools=pools, local_development=True))
        assert compilation.left_out == ()
        with running(compilation.output, directory) as found:
            yield found


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    with environment(tmp_path_factory.mktemp("answers")) as found:
        yield found


def ask(proxy: RenderedProxy, name: str, path: str = "/", method: str = "GET") -> Answer:
    """One request to the route of a case."""
    return proxy.ask("lst-1", f"{name}.example", path, method)


@pytest.mark.slow(reason="a server is silent for a second and a half")
def test_errors_of_the_balancer_itself_have_the_page(proxy: RenderedProxy) -> None:
    answer = ask(proxy, "own", "/closed")
    assert (answer.status, answer.headers["content-type"]) == (503, "text/html")
    assert answer.body.rstrip("\n") == PAGE.replace("{status}", "503").rstrip("\n")
    assert (ask(proxy, "own", "/silent").body[:22], ask(proxy, "own", "/hangs-up").status) == (
        "<h1>Sorry: 504</h1>\n<p"[:22], 502,
    )  # fmt: skip
    assert "x-spillway-type" not in answer.headers


@pytest.mark.slow(reason="a server is silent for a second and a half")
def test_each_route_has_its_own_page_and_media_type_and_others_have_none(proxy: RenderedProxy) -> None:
    short, plain = ask(proxy, "short", "/closed"), ask(proxy, "plain", "/closed")
    assert (short.body.rstrip("\n"), short.headers["content-type"]) == ("503: later", "text/plain; charset=utf-8")
    assert ask(proxy, "short", "/silent").body.startswith("<html><body><h1>504 Gateway Time-out</h1>\n")
    assert plain.body.startswith("<html><body><h1>503 Service Unavailable</h1>\nNo server is available")
    assert (plain.headers["content-type"], plain.headers["cache-control"]) == ("text/html", "no-cache")


def test_answers_of_servers_are_replaced_where_that_is_asked_for(proxy: RenderedProxy) -> None:
    assert ask(proxy, "over", "/404").body == PAGE.replace("{status}", "404")
    assert (ask(proxy, "over", "/503").body, ask(proxy, "over", "/200").body) == ("server", "server")
    assert (ask(proxy, "own", "/404").body, ask(proxy, "plain", "/404").body) == ("server", "server")


def send(proxy: RenderedProxy, name: str, size: int, *, chunked: bool, filler: int = 0) -> tuple[int, str]:
    """A request with a body of that many bytes, all of it sent; the status and the text of the answer."""
    lines = [f"POST / HTTP/1.1\r\nHost: {name}.example\r\nConnection: close"]
    lines += [f"X-Filler-{number}: {'x' * 1000}" for number in range(filler)]
    pieces = [b"x" * min(1000, size - start) for start in range(0, size, 1000)]
    if chunked:
        lines.append("Transfer-Encoding: chunked")
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        lines.append(f"Content-Length: {size}")
        body = b"".join(pieces)
    with socket.create_connection(("127.0.0.1", proxy.ports["lst-1"]), timeout=30) as connection:
        with contextlib.suppress(OSError):  # answered before all of it was sent
            connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        found = read_until(connection, b"never")
    head, _, text = found.decode().partition("\r\n\r\n")
    return int(head.split(" ")[1]), text


@pytest.mark.parametrize(
    ("name", "size", "status"),
    [("bound", 20_000, 200), ("bound", 20_001, 413), ("small", 10, 200), ("small", 11, 413), ("plain", 50_000, 200)],
)
def test_a_body_is_judged_by_its_length(proxy: RenderedProxy, name: str, size: int, status: int) -> None:
    assert send(proxy, name, size, chunked=False)[0] == status


@pytest.mark.parametrize(
    ("name", "size", "filler", "status"),
    [
        ("bound", 5000, 0, 200),
        ("bound", 30_000, 0, 411),
        ("bound", 30_000, 12, 411),
        ("small", 10, 0, 200),
        ("small", 11, 0, 413),
        ("plain", 30_000, 0, 200),
    ],
)
def test_a_body_without_length_is_counted_or_must_say_it(
    proxy: RenderedProxy, name: str, size: int, filler: int, status: int
) -> None:
    assert send(proxy, name, size, chunked=True, filler=filler)[0] == status


def test_what_is_too_long_gets_the_page_for_it(proxy: RenderedProxy) -> None:
    assert send(proxy, "bound", 20_001, chunked=False)[1].rstrip("\n") == '{"too": "long"}'


def test_requests_without_a_body_and_buffered_ones_go_through(proxy: RenderedProxy) -> None:
    assert ask(proxy, "small").status == 200
    assert send(proxy, "waits", 5000, chunked=True)[0] == 200
    assert send(proxy, "waits", 50_000, chunked=False)[0] == 200


@pytest.mark.slow(reason="a server is silent for a second and a half")
def test_a_route_has_its_own_time_for_the_response(proxy: RenderedProxy) -> None:
    begin = time.monotonic()
    assert ask(proxy, "quick", "/silent").status == 504
    quick = time.monotonic() - begin
    assert ask(proxy, "plain", "/silent").status == 504
    assert quick < 1.4 <= time.monotonic() - begin - quick


def test_a_request_is_not_sent_again_where_that_is_forbidden(proxy: RenderedProxy) -> None:
    HANGING_UP.count = 0
    assert ask(proxy, "once", "/hangs-up").status == 502
    assert HANGING_UP.count == 1
    assert ask(proxy, "plain", "/hangs-up").status == 502
    assert HANGING_UP.count > 2
