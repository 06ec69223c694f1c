"""WebSocket from end to end through real HAProxy: by HTTP/1.1 and HTTP/2, with and without TLS on either side."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.policy import Body, HeaderChanges, Rules, Timeouts
from apps.compiler.model.servers import HttpVersion, ServerTls, Verify
from apps.compiler.model.shared import Certificate, Protocol, WeightedPool
from apps.compiler.policies import rule_set
from tests.authorities import Authority
from tests.e2e.rendered_proxy import RenderedProxy, running
from tests.e2e.tls_servers import context_of
from tests.e2e.websockets import CONNECT_PROTOCOL, Http2, Plain, Refused, connected, hear, say, websocket_server
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e
INNER = "chat.internal.example"
IDLE_MS = 500
WAYS = [(client, http2, name) for client in ("plain", "tls") for http2 in (False, True) for name in ("plain", "tls")]
BRIEF, LONG = (rule_set(Rules(timeouts=Timeouts(tunnel_ms=each))) for each in (IDLE_MS, 60_000))
BUSY = rule_set(
    Rules(
        body=Body(max_bytes=10, buffered=True), request_headers=HeaderChanges(set=(("X-Client", "{client_address}"),))
    )
)
# Hostname → pool, rules.
ROUTES: dict[str, tuple[int, str]] = {
    "plain": (1, ""),
    "tls": (2, ""),
    "idle": (3, ""),
    "idle-long": (3, LONG.id),
    "brief": (1, BRIEF.id),
    "busy": (1, BUSY.id),
}
Side = Plain | Http2
Way = tuple[str, bool, bool]


@dataclass(frozen=True, slots=True)
class WebSockets:
    """Servers behind a running proxy, and clients for it."""

    proxy: RenderedProxy
    authority: Authority
    asked: list[bytes]

    def client(
        self, name: str, path: str = "/chat", *, tls: bool = False, http2: bool = False
    ) -> AbstractContextManager[Side]:
        """A WebSocket to the host of that name."""
        context = ssl.create_default_context(cadata=self.authority.pem) if tls else None
        if context:
            context.set_alpn_protocols(["h2"] if http2 else ["http/1.1"])
        port = self.proxy.ports["lst-2" if tls else "lst-1"]
        return connected(port, f"{name}.example", path, http2=http2, context=context)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebSockets]:
    authority, asked = Authority(), list[bytes]()
    directory = tmp_path_factory.mktemp("proxy")
    certificates = tuple(
        Certificate(f"crt-{number}", name, "acme", authority.signed(f"{name}.example"), (f"{name}.example",))
        for number, name in enumerate(ROUTES, 1)
    )
    listeners = (
        listener(1),
        listener(2, protocol=Protocol.HTTPS, certificate_ids=tuple(each.id for each in certificates)),
    )
    routes = [
        route(number, f"{name}.example", pools=(WeightedPool(f"pool-{of}", 1),), rule_set=rules)
        for number, (name, (of, rules)) in enumerate(ROUTES.items(), 1)
    ]
    with ExitStack() as stack:
        plain = stack.enter_context(websocket_server(asked))
        # What speaks HTTP/2 as well is asked by HTTP/1.1 for a WebSocket.
        tls = stack.enter_context(websocket_server(asked, context_of(authority, INNER, directory, alpn=("http/1.1",))))
        trusted: dict[str, Any] = {
            "server_tls": ServerTls(Verify.CA, authority.pem, INNER),
            "http_version": HttpVersion.HTTP2,
        }
        at = {1: (plain, {}), 2: (tls, trusted), 3: (plain, {"tunnel_timeout_ms": IDLE_MS})}
        pools = tuple(
            pool(number, servers=(server(number, address="127.0.0.1", port=port),), **fields)
            for number, (port, fields) in at.items()
        )
        served = replace(front(*routes, listeners=listeners), rule_sets=(BRIEF, LONG, BUSY))
        compilation = compile_snapshot(snapshot(served, pools=pools, certificates=certificates, local_development=True))
        assert compilation.left_out == ()
        yield WebSockets(stack.enter_context(running(compilation.output, directory)), authority, asked)


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{'2' if way[1] else '1.1'}-to-{way[2]}")
def way(request: pytest.FixtureRequest) -> Way:
    """The name of the servers, and how a client comes."""
    client, http2, name = request.param
    return name, client == "tls", http2


def test_messages_go_both_ways(env: WebSockets, way: Way) -> None:
    name, tls, http2 = way
    with env.client(name, "/chat?room=1", tls=tls, http2=http2) as side:
        for text in (b"hello", b"", b"x" * 40_000, b"bye"):
            say(side, text)
            assert hear(side) == text
        if isinstance(side, Http2):
            assert side.settings[CONNECT_PROTOCOL] == 1
    request = env.asked[-1].lower()
    assert request.startswith(b"get /chat?room=1 http/1.1\r\n")
    assert f"host: {name}.example\r\n".encode() in request
    assert b"x-forwarded-for: 127.0.0.1\r\n" in request
    assert f"x-forwarded-proto: {'https' if tls else 'http'}\r\n".encode() in request


def test_what_the_server_refuses_is_refused(env: WebSockets, way: Way) -> None:
    name, tls, http2 = way
    with pytest.raises(Refused), env.client(name, "/no", tls=tls, http2=http2):
        pass


def test_a_conversation_goes_on_over_a_reload(env: WebSockets, way: Way) -> None:
    name, tls, http2 = way
    with env.client(name, tls=tls, http2=http2) as side:
        say(side, b"before")
        assert hear(side) == b"before"
        env.proxy.reload()
        say(side, b"after")
        assert hear(side) == b"after"


def test_policies_do_not_stand_in_the_way(env: WebSockets) -> None:
    with env.client("busy") as side:
        say(side, b"longer than ten bytes")
        assert hear(side) == b"longer than ten bytes"
    assert b"x-client: 127.0.0.1\r\n" in env.asked[-1].lower()


@pytest.mark.parametrize("http2", [False, True])
def test_silence_ends_it_after_the_time_of_its_route_or_else_of_its_pool(env: WebSockets, http2: bool) -> None:
    """Twice that time is waited for, or for the end."""
    ended: set[str] = set()

    def listen(name: str, side: Side) -> None:
        try:
            hear(side)
        except OSError:
            ended.add(name)

    with ExitStack() as open_ones:
        waiting = {}
        for name in ("idle", "idle-long", "brief", "plain"):
            side = open_ones.enter_context(env.client(name, http2=http2))
            waiting[name] = threading.Thread(target=listen, args=(name, side), daemon=True)
            waiting[name].start()
        for name, at_most in {"idle": 20.0, "brief": 20.0, "idle-long": IDLE_MS / 500, "plain": IDLE_MS / 500}.items():
            waiting[name].join(at_most)
        assert ended == {"idle", "brief"}


def test_who_talks_stays_longer_than_that(env: WebSockets) -> None:
    with env.client("idle") as side:
        for _ in range(14):
            say(side, b"still here")
            assert hear(side) == b"still here"
            time.sleep(IDLE_MS / 8000)
