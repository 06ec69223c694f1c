"""Connections of TLS that are passed on by the name that the client asks for, through a real HAProxy."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import SniRoute
from apps.compiler.model.shared import Protocol
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, running
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, server, snapshot

pytestmark = pytest.mark.e2e

ROUTES = (SniRoute("a.example", "pool-1"), SniRoute("*.a.example", "pool-2"))


@contextmanager
def greeter(name: bytes, directory: Path) -> Iterator[int]:
    """A server that says its name: to who speaks TLS behind the handshake, to others as it is."""
    pem = directory / f"{name.decode()}.pem"
    pem.write_text(certificate_pem("a.example"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    first = client.recv(1, socket.MSG_PEEK)
                    try:
                        talk = context.wrap_socket(client, server_side=True) if first == b"\x16" else client
                        talk.sendall(name)
                        talk.close()
                    except OSError:
                        continue

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    directory = tmp_path_factory.mktemp("proxy")
    with ExitStack() as stack:
        ports = [stack.enter_context(greeter(name, directory)) for name in (b"exact", b"below", b"default")]
        pools = tuple(
            pool(number, protocol=Protocol.TCP, servers=(server(number, address="127.0.0.1", port=port),))
            for number, port in enumerate(ports, 1)
        )
        listeners = (
            listener(1, protocol=Protocol.TCP, sni_routes=ROUTES, default_pool_id="pool-3"),
            listener(2, protocol=Protocol.TCP, sni_routes=ROUTES),
        )
        compiled = compile_snapshot(snapshot(front(listeners=listeners), pools=pools, local_development=True))
        assert not compiled.left_out
        yield stack.enter_context(running(compiled.output, directory))


def reached(proxy: RenderedProxy, number: int, name: str | None) -> str:
    """Which server a client finds that asks for this name; empty where the connection is closed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", proxy.ports[f"lst-{number}"]), timeout=PATIENCE_S) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=name) as client:
                return client.recv(64).decode()
        except (ssl.SSLError, ConnectionError):
            return ""


@pytest.mark.parametrize(
    ("name", "with_default", "without"),
    [
        ("a.example", "exact", "exact"),
        ("A.Example", "exact", "exact"),
        ("x.a.example", "below", "below"),
        ("y.x.a.example", "default", ""),
        ("b.example", "default", ""),
        (None, "default", ""),
    ],
)
def test_a_name_leads_to_its_pool_and_the_rest_to_the_default(
    proxy: RenderedProxy, name: str | None, with_default: str, without: str
) -> None:
    assert reached(proxy, 1, name) == with_default
    assert reached(proxy, 2, name) == without


def test_what_is_no_tls_goes_to_the_default_pool(proxy: RenderedProxy) -> None:
    for number, expected in ((1, b"default"), (2, b"")):
        where = ("127.0.0.1", proxy.ports[f"lst-{number}"])
        with socket.create_connection(where, timeout=PATIENCE_S) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            try:
                assert client.recv(64) == expected
            except ConnectionResetError:
                assert expected == b""


def test_names_are_changed_without_a_reload(proxy: RenderedProxy) -> None:
    assert reached(proxy, 1, "new.example") == "default"
    proxy.command("add map maps/lst-1-sni.map new.example pool-1")
    try:
        assert reached(proxy, 1, "new.example") == "exact"
    finally:
        proxy.command("del map maps/lst-1-sni.map new.example")
