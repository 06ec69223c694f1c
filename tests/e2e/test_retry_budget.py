"""A budget of retries in a real HAProxy: how often servers that fail are asked, with it and without it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.servers import Retries, RetryOn
from apps.compiler.model.shared import WeightedPool
from tests.e2e.rendered_proxy import RenderedProxy, running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

REQUESTS = 60
ATTEMPTS = 2
ON = (RetryOn.CONNECT, RetryOn.S503)


class Overloaded(ThreadingHTTPServer):
    """Answers 503 to everything but `/well`, and counts by path what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Refusal)


class _Refusal(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Overloaded)
        server.asked.append(self.path)
        self.send_response(200 if self.path == "/well" else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Keep quiet."""


@contextmanager
def overloaded() -> Iterator[Overloaded]:
    """One such server."""
    found = Overloaded()
    threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield found
    finally:
        found.shutdown()
        found.server_close()


@contextmanager
def served(directory: Path, port: int) -> Iterator[RenderedProxy]:
    """`open.example` without a budget, `bound.example` with one of 20 percent, both with the same server."""
    pools = tuple(
        pool(number, servers=(server(number, address="127.0.0.1", port=port),), retries=Retries(ATTEMPTS, ON, percent))
        for number, percent in ((1, None), (2, 20))
    )
    routes = (
        route(1, hostname="open.example"),
        route(2, hostname="bound.example", pools=(WeightedPool("pool-2", 1),)),
    )
    compilation = compile_snapshot(snapshot(front(*routes), pools=pools, local_development=True))
    assert compilation.left_out == ()
    with running(compilation.output, directory) as proxy:
        yield proxy


def test_a_budget_bounds_how_often_servers_that_fail_are_asked(tmp_path: Path) -> None:
    with overloaded() as busy, served(tmp_path, busy.server_address[1]) as proxy:
        found = {}
        for host in ("open.example", "bound.example"):
            statuses = {proxy.ask("lst-1", host, f"/{host}").status for _ in range(REQUESTS)}
            assert statuses == {503}
            found[host] = busy.asked.count(f"/{host}")
    assert found["open.example"] == REQUESTS * (1 + ATTEMPTS)  # what a budget is against
    # Ten retries in a window of ten seconds, or a fifth of its requests; two windows may have met these requests.
    assert REQUESTS + 10 <= found["bound.example"] <= REQUESTS + 2 * (REQUESTS // 5 + 2 * ATTEMPTS)


def test_requests_that_succeed_earn_their_pool_retries(tmp_path: Path) -> None:
    with overloaded() as busy, served(tmp_path, busy.server_address[1]) as proxy:
        for _ in range(30):  # spends the budget
            proxy.ask("lst-1", "bound.example", "/ill")
        before = busy.asked.count("/ill")
        for _ in range(100):
            assert proxy.ask("lst-1", "bound.example", "/well").status == 200
        proxy.ask("lst-1", "bound.example", "/ill")
        assert busy.asked.count("/ill") == before + 1 + ATTEMPTS
