"""How fast bodies go: as fast as is said by each HAProxy that can limit it, and unlimited by 2.6."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.capabilities import BANDWIDTH, NodeBuild
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.policy import Bandwidth, Rules
from apps.compiler.policies import rule_set
from tests.conformance.slow_haproxy import BINARIES, REAL, version_of
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, running
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

BYTES = 300_000
SPEED = 150_000
SECONDS = BYTES / SPEED
ROUTES = {
    "/all": None,
    "/each": Bandwidth(SPEED, SPEED, "request"),
    "/client": Bandwidth(SPEED, SPEED),
    "/faster": Bandwidth(2 * SPEED),
}


NONE = pytest.param("", marks=pytest.mark.skip(reason="HAPROXY_BINARIES names no HAProxy of 2.7 or later"))
LATER = [each for each in BINARIES if version_of(each) >= BANDWIDTH.since]
every_later = pytest.mark.parametrize("binary", LATER or [NONE])


class _Bodies(BaseHTTPRequestHandler):
    """Sends and takes long bodies."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """A long one."""
        self._answer(b"x" * BYTES)

    def do_POST(self) -> None:
        """Take one, answer with its length."""
        length = len(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(str(length).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Keep quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A proxy that closes an idle connection is no error of this server."""


def topology(port: int) -> Snapshot:
    """A route for each limit."""
    sets = {path: rule_set(Rules(bandwidth=said)) for path, said in ROUTES.items() if said}
    routes = [
        route(number, "a.example", path, rule_set=sets[path].id if path in sets else "")
        for number, path in enumerate(ROUTES, 1)
    ]
    whole = replace(front(*routes, listeners=(listener(1),)), rule_sets=tuple(sets.values()))
    pools = (pool(1, servers=(server(1, address="127.0.0.1", port=port),)),)
    return snapshot(whole, pools=pools, local_development=True, builds=(NodeBuild("us-1", (3, 2)),))


@contextmanager
def proxy_of(binary: str, directory: Path) -> Iterator[RenderedProxy]:
    """That HAProxy, with a server of long bodies."""
    found = _Server(("127.0.0.1", 0), _Bodies)
    threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        compiled = compile_snapshot(topology(found.server_address[1]))
        assert not (*compiled.left_out, *(each for each in compiled.warnings if each.code == "bandwidth"))
        with running(compiled.output, directory, program=binary) as proxy:
            yield proxy
    finally:
        found.shutdown()
        found.server_close()


def seconds(proxy: RenderedProxy, path: str, method: str = "GET", source: str = "127.0.0.1") -> float:
    """How long a whole body takes, one way."""
    connection = HTTPConnection("127.0.0.1", proxy.ports["lst-1"], timeout=PATIENCE_S, source_address=(source, 0))
    body = b"x" * BYTES if method == "POST" else None
    began = time.monotonic()
    connection.request(method, path, body, {"Host": "a.example"})
    response = connection.getresponse()
    got = response.read()
    assert response.status == 200
    assert (len(got) if method == "GET" else int(got)) == BYTES
    connection.close()
    return time.monotonic() - began


def at_once(proxy: RenderedProxy, path: str, sources: list[str]) -> list[float]:
    """The same from several places at a time."""
    with ThreadPoolExecutor(len(sources)) as pool:
        return list(pool.map(lambda source: seconds(proxy, path, source=source), sources))


def takes(found: float, wanted: float) -> bool:
    """Never faster; a busy machine may need longer. HAProxy lets the first second's bytes go a little early."""
    return wanted * 0.9 <= found <= wanted * 1.5 + 0.5


@every_later
def test_bodies_take_as_long_as_is_said_in_both_directions(binary: str, tmp_path: Path) -> None:
    with proxy_of(binary, tmp_path) as proxy:
        for method in ("GET", "POST"):
            assert seconds(proxy, "/all", method) < SECONDS / 2, "the control"
            for path in ("/each", "/client"):
                assert takes(seconds(proxy, path, method), SECONDS), (path, method)
        assert takes(seconds(proxy, "/faster"), SECONDS / 2)
        assert seconds(proxy, "/faster", "POST") < SECONDS / 2, "of uploads nothing is said"


@every_later
def test_a_client_shares_its_limit_among_its_requests_and_with_nobody_else(binary: str, tmp_path: Path) -> None:
    with proxy_of(binary, tmp_path) as proxy:
        one, other = at_once(proxy, "/client", ["127.0.0.1", "127.0.0.1"])
        assert takes(max(one, other), 2 * SECONDS)
        assert all(takes(each, SECONDS) for each in at_once(proxy, "/client", ["127.0.0.2", "127.0.0.3"]))
        assert all(takes(each, SECONDS) for each in at_once(proxy, "/each", ["127.0.0.1", "127.0.0.1"]))


def test_an_older_haproxy_leaves_the_limits_out_and_serves(tmp_path: Path) -> None:
    with proxy_of(REAL, tmp_path) as proxy:
        assert [path for path in ROUTES if seconds(proxy, path) > SECONDS / 2] == []
