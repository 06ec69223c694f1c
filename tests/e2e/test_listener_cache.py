"""The cache of a listener in a real HAProxy: what is kept, for whom, and what is never given to another."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.access import Access, NetworkList
from apps.compiler.model.listener_options import Cache, Compression
from apps.compiler.model.policy import ResponseHeaders, Rewrite, Rules
from apps.compiler.model.servers import Persistence
from apps.compiler.model.shared import LoadBalancer, Route, ValueCondition, ValueMatch, WeightedPool
from apps.compiler.policies import rule_set
from apps.compiler.targets.haproxy.listeners import cache
from tests.e2e.rendered_proxy import RenderedProxy, running
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

NUMBERS = count(1)
INSIDE = rule_set(Rules(rewrite=Rewrite(host="inside.example.com")))
LISTED = rule_set(Rules(access=Access(allow=("net-1",))))
TAGGED = rule_set(Rules(response_headers=ResponseHeaders(set=(("X-Tag", "a"),))))
CANARY = (ValueCondition("X-Canary", ValueMatch.EQUALS, "yes"),)
EVERYBODY = NetworkList("net-1", "all", ("0.0.0.0/0",))


class _Numbered(BaseHTTPRequestHandler):
    """Every answer has another number; what the path names becomes a header."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """A number, and how long it may be kept."""
        self.send_response(200)
        self.send_header("Cache-Control", "private" if "private" in self.path else "public, max-age=60")
        if "cookie" in self.path:
            self.send_header("Set-Cookie", "session=1")
        if "varies" in self.path:
            self.send_header("Vary", "X-Language")
        body = f"{next(NUMBERS)} at {self.connection.getsockname()[1]}".encode() + b"." * (
            9000 if "long" in self.path else 0
        )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Keep quiet."""


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[int, int]]:
    started = [ThreadingHTTPServer(("127.0.0.1", 0), _Numbered) for _ in range(2)]
    for each in started:
        each.daemon_threads = True
        threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield started[0].server_address[1], started[1].server_address[1]
    for each in started:
        each.shutdown()
        each.server_close()


def _routes() -> tuple[Route, ...]:
    other = (WeightedPool("pool-2", 100),)
    return (
        route(1, "a.example", "/"),
        route(2, "a.example", "/", headers=CANARY, pools=other),
        route(3, "b.example", "/", pools=other),
        route(4, "one.example", "/", rule_set=INSIDE.id),
        route(5, "two.example", "/", rule_set=INSIDE.id, pools=other),
        route(6, "x.example", "/left", prefix_rewrite="/same"),
        route(7, "x.example", "/right", prefix_rewrite="/same", pools=other),
        route(8, "listed.example", "/", rule_set=LISTED.id),
        route(9, "tagged.example", "/", rule_set=TAGGED.id),
        route(10, "split.example", "/", pools=(WeightedPool("pool-1", 50), WeightedPool("pool-2", 50))),
        route(11, "sticky.example", "/", pools=(WeightedPool("pool-3", 100),)),
    )


def _front() -> LoadBalancer:
    kept = Cache(4, 4096, 60)
    listeners = (listener(1, cache=kept, compression=Compression()), listener(2), listener(3, cache=kept))
    found = front(*_routes(), listeners=listeners)
    return replace(found, rule_sets=(INSIDE, LISTED, TAGGED), network_lists=(EVERYBODY,))


def _started(servers: tuple[int, int], folder: Path) -> Iterator[RenderedProxy]:
    loop = {"address": "127.0.0.1"}
    sticky = Persistence()
    pools = (
        pool(1, servers=(server(1, port=servers[0], **loop),)),
        pool(2, servers=(server(2, port=servers[1], **loop),)),
        pool(3, servers=(server(3, port=servers[0], **loop),), persistence=sticky),
    )
    compilation = compile_snapshot(snapshot(_front(), pools=pools, local_development=True))
    assert compilation.left_out == ()
    with running(compilation.output, folder) as found:
        yield found


@pytest.fixture(scope="module")
def proxy(servers: tuple[int, int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    yield from _started(servers, tmp_path_factory.mktemp("cache"))


def said(proxy: RenderedProxy, host: str, path: str, at: str = "lst-1", **headers: str) -> str:
    """What is answered; `x_canary="yes"` is the header X-Canary."""
    sent: Mapping[str, str] = {name.replace("_", "-"): value for name, value in headers.items()}
    return proxy.ask(at, host, path, headers=sent).body


def test_what_is_for_everybody_is_answered_from_memory(proxy: RenderedProxy) -> None:
    first = said(proxy, "a.example", "/kept")
    assert said(proxy, "a.example", "/kept") == first
    assert "age" in proxy.ask("lst-1", "a.example", "/kept").headers
    assert said(proxy, "a.example", "/kept?page=2") != first


@pytest.mark.parametrize("path", ["/private", "/cookie", "/varies", "/long"])
def test_what_a_server_keeps_for_one_client_is_not_kept(proxy: RenderedProxy, path: str) -> None:
    assert said(proxy, "a.example", path) != said(proxy, "a.example", path)


@pytest.mark.parametrize("sent", [{"Cookie": "session=1"}, {"Authorization": "Bearer abc"}])
def test_who_says_who_he_is_neither_gets_nor_leaves_anything(proxy: RenderedProxy, sent: dict[str, str]) -> None:
    path = "/told-" + "-".join(sent.values()).replace(" ", "-").replace("=", "-")
    own = said(proxy, "b.example", path, **sent)
    kept = said(proxy, "b.example", path)
    assert kept != own
    assert said(proxy, "b.example", path) == kept
    assert said(proxy, "b.example", path, **sent) != kept


def test_no_route_is_answered_with_what_another_got(proxy: RenderedProxy, servers: tuple[int, int]) -> None:
    left, right = (f"at {port}" for port in servers)
    assert left in said(proxy, "a.example", "/both")
    assert right in said(proxy, "a.example", "/both", X_Canary="yes")
    assert right in said(proxy, "b.example", "/both")
    assert left in said(proxy, "x.example", "/left/page")
    assert right in said(proxy, "x.example", "/right/page")
    assert left in said(proxy, "one.example", "/page")
    assert right in said(proxy, "two.example", "/page")


@pytest.mark.parametrize("host", ["listed.example", "one.example", "split.example"])
def test_routes_that_look_at_the_client_keep_nothing(proxy: RenderedProxy, host: str) -> None:
    assert said(proxy, host, "/looked-at") != said(proxy, host, "/looked-at")


def test_headers_of_policies_stand_in_kept_answers_and_cookies_of_pools_do_not(proxy: RenderedProxy) -> None:
    answers = [proxy.ask("lst-1", "tagged.example", "/t") for _ in range(2)]
    assert answers[0].body == answers[1].body
    assert [each.headers["x-tag"] for each in answers] == ["a", "a"]
    first, second = (proxy.ask("lst-1", "sticky.example", "/s") for _ in range(2))
    assert "set-cookie" in first.headers
    assert (second.body, "set-cookie" in second.headers) == (first.body, False)


def test_each_listener_keeps_for_itself_and_one_without_a_cache_nothing(proxy: RenderedProxy) -> None:
    kept = {at: said(proxy, "a.example", "/apart", at) for at in ("lst-1", "lst-3")}
    assert kept["lst-1"] != kept["lst-3"]
    assert said(proxy, "a.example", "/apart", "lst-2") != said(proxy, "a.example", "/apart", "lst-2")


def test_a_url_of_another_host_poisons_nothing(proxy: RenderedProxy) -> None:
    asked = proxy.ask("lst-1", "a.example", "http://b.example/poison")
    assert asked.status == 400 or asked.body != said(proxy, "b.example", "/poison")


def test_without_the_map_routes_would_get_what_others_got(
    servers: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_answers_everybody", lambda *_: True)
    for proxy in _started(servers, tmp_path):
        said(proxy, "a.example", "/both")
        assert f"at {servers[0]}" in said(proxy, "a.example", "/both", X_Canary="yes")
