"""Connections that go to pools by what their clients send first, through a real HAProxy."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import ClientProtocol, ListenerTls, ProtocolRoute, SniRoute
from apps.compiler.model.shared import Certificate, Protocol
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, running
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, server, snapshot

pytestmark = pytest.mark.e2e

NAMES = ("tls", "ssh", "rdp", "socks5", "websocket", "http", "silent", "acme-tls/1", "a.example", "the rest")
POOLS = {name: f"pool-{number}" for number, name in enumerate(NAMES, 1)}
ROUTES = tuple(ProtocolRoute(POOLS[each], each) for each in ClientProtocol)
CHALLENGES = ProtocolRoute(POOLS["acme-tls/1"], alpn="acme-tls/1")
NAMED = (SniRoute("a.example", POOLS["a.example"]),)
INSIDE = tuple(each for each in ROUTES if each.protocol is not ClientProtocol.TLS)
AGREED = ProtocolRoute(POOLS["acme-tls/1"], alpn="mqtt")
HOUSE = Certificate("crt-1", "house", "acme", certificate_pem("a.example"), ("a.example",))
ENDED = {"ends_tls": True, "certificate_ids": ("crt-1",), "default_certificate_id": "crt-1"}
LISTENERS = (
    listener(
        1,
        protocol=Protocol.TCP,
        protocol_routes=(*ROUTES, CHALLENGES),
        sni_routes=NAMED,
        default_pool_id=POOLS["the rest"],
    ),
    listener(2, protocol=Protocol.TCP, protocol_routes=(ProtocolRoute(POOLS["ssh"], ClientProtocol.SSH),)),
    listener(
        3,
        protocol=Protocol.TCP,
        protocol_routes=(*INSIDE, AGREED),
        tls=ListenerTls(alpn=("mqtt",)),
        default_pool_id=POOLS["the rest"],
        **ENDED,
    ),
)
SSH, HTTP, ODD = (
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n",
    b"\x00\x01\x02\x03\x04\x05\x06\x07",
)

UPGRADE = HTTP[:-2] + b"connection: keep-alive, Upgrade\r\nupgrade: WebSocket\r\n\r\n"


class Greeting(socketserver.BaseRequestHandler):
    """Says its server's name at once, and stays until the client goes."""

    def handle(self) -> None:
        self.request.sendall(self.server.said)  # type: ignore[attr-defined]
        self.request.shutdown(socket.SHUT_WR)
        self.request.recv(4096)


@contextmanager
def speaks_first(name: str) -> Iterator[int]:
    """A server that says its name."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greeting) as server:
        server.daemon_threads, server.said = True, name.encode()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    directory = tmp_path_factory.mktemp("proxy")
    with ExitStack() as stack:
        ports = [stack.enter_context(speaks_first(name)) for name in NAMES]
        pools = tuple(
            pool(number, protocol=Protocol.TCP, servers=(server(number, address="127.0.0.1", port=port),))
            for number, port in enumerate(ports, 1)
        )
        whole = snapshot(front(listeners=LISTENERS), pools=pools, certificates=(HOUSE,), local_development=True)
        compiled = compile_snapshot(whole)
        assert not compiled.left_out
        yield stack.enter_context(running(compiled.output, directory))


def trusting(alpn: tuple[str, ...]) -> ssl.SSLContext:
    """TLS of a client that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


def hello(name: str | None, alpn: tuple[str, ...] = ()) -> bytes:
    """The first bytes of a client that speaks TLS."""
    sent = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        trusting(alpn).wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    return sent.read()


def reached(client: socket.socket, sent: bytes) -> str:
    """Who answers a client that begins so; empty where the connection is closed."""
    try:
        client.sendall(sent)
        return client.recv(64).decode()
    except ConnectionError:
        return ""


def plain(proxy: RenderedProxy, number: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.ports[f"lst-{number}"]), timeout=PATIENCE_S)


def inside(proxy: RenderedProxy, *alpn: str) -> ssl.SSLSocket:
    return trusting(alpn).wrap_socket(plain(proxy, 3), server_hostname="a.example")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (SSH, "ssh"),
        (HTTP, "http"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http"),
        (UPGRADE, "websocket"),
        (b"\x05\x01\x00", "socks5"),
        (b"\x03\x00\x00\x13\x0e\xe0", "rdp"),
        (ODD, "the rest"),
        (hello("b.example"), "tls"),
        (hello(None), "tls"),
        (hello("a.example"), "a.example"),
        (hello("a.example", ("acme-tls/1",)), "acme-tls/1"),
        (hello("a.example", ("h2", "acme-tls/1")), "acme-tls/1"),
        (hello("b.example", ("h2", "xacme-tls/1")), "tls"),
    ],
)
def test_what_a_client_sends_first_chooses_its_pool(proxy: RenderedProxy, sent: bytes, expected: str) -> None:
    with plain(proxy, 1) as client:
        assert reached(client, sent) == expected


@pytest.mark.parametrize(("sent", "expected"), [(SSH, "ssh"), (HTTP, ""), (ODD, ""), (hello("a.example"), "")])
def test_what_no_route_asks_for_is_closed_without_a_default(proxy: RenderedProxy, sent: bytes, expected: str) -> None:
    with plain(proxy, 2) as client:
        assert reached(client, sent) == expected


@pytest.mark.parametrize(
    ("alpn", "sent", "expected"),
    [
        ((), SSH, "ssh"),
        ((), HTTP, "http"),
        ((), ODD, "the rest"),
        (("mqtt",), HTTP, "acme-tls/1"),
        (("mqtts",), HTTP, "http"),
    ],
)
def test_where_tls_ends_what_is_inside_chooses(
    proxy: RenderedProxy, alpn: tuple[str, ...], sent: bytes, expected: str
) -> None:
    with inside(proxy, *alpn) as client:
        assert reached(client, sent) == expected


def test_clients_that_send_nothing_are_waited_for_and_have_a_pool_too(proxy: RenderedProxy) -> None:
    with plain(proxy, 1) as passed_on, plain(proxy, 2) as closed, inside(proxy) as ended:
        assert [reached(each, b"") for each in (passed_on, closed, ended)] == ["silent", "", "silent"]
