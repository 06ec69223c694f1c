"""Servers that speak TLS, with certificates of an authority that the tests make."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.authorities import Authority
from tests.e2e.rendered_proxy import EchoServers


def context_of(
    authority: Authority, name: str, directory: Path, *, asks_clients: bool = False, alpn: tuple[str, ...] = ()
) -> ssl.SSLContext:
    """What a server of that name shows, and whether it wants a certificate of the same authority from clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    path = directory / f"{name}.pem"
    path.write_text(authority.signed(name))
    context.load_cert_chain(path)
    if asks_clients:
        context.load_verify_locations(cadata=authority.pem)
        context.verify_mode = ssl.CERT_REQUIRED
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


@contextmanager
def tls_server(context: ssl.SSLContext) -> Iterator[int]:
    """An echo server behind TLS on 127.0.0.1; yields its port."""
    server = EchoServers(("127.0.0.1", 0))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
