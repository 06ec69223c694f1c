"""Connections of HTTP/2 that break the protocol again and again, through each HAProxy that can close them."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.capabilities import GLITCHES
from apps.compiler.targets.haproxy.settings import MOST_GLITCHES
from tests.conformance.slow_haproxy import BINARIES, version_of
from tests.e2e.rendered_proxy import PATIENCE_S, running
from tests.e2e.websockets import frame
from tests.pure.compiler_fixtures import front, pool, snapshot

pytestmark = pytest.mark.e2e

OPENING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# GET / of a.example, by the static table of HPACK (RFC 7541).
REQUEST = b"\x82\x86\x84\x41\x09a.example"
HEADERS, RST_STREAM, SETTINGS, PING = 1, 3, 4, 6
CANCEL, MARK = 8, b"the ping"
WHOLE = 5  # END_HEADERS and END_STREAM
COUNTS_CANCELLED = (3, 2)


def is_closed_after(port: int, cancelled: int) -> bool:
    """Whether a client that begins and cancels so many requests is closed before it gets the answer of a last ping."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        client.sendall(OPENING + frame(SETTINGS, 0, 0, b""))
        try:
            for stream in range(1, 2 * cancelled, 2):
                cancel = frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL))
                client.sendall(frame(HEADERS, WHOLE, stream, REQUEST) + cancel)
            client.sendall(frame(PING, 0, 0, MARK))
            read = b""
            while MARK not in read:
                more = client.recv(65_536)
                if not more:
                    return True
                read = read[-len(MARK) :] + more
        except ConnectionError:
            return True
        return False


@pytest.mark.parametrize("binary", BINARIES)
def test_a_client_that_begins_and_cancels_requests_is_closed_where_haproxy_counts_that(
    binary: str, tmp_path: Path
) -> None:
    compilation = compile_snapshot(snapshot(front(), pools=(pool(1),), local_development=True))
    config = compilation.output.files["haproxy.cfg"].decode()
    assert f".if {GLITCHES.condition}\n    tune.h2.fe.glitches-threshold {MOST_GLITCHES}\n" in config
    with running(compilation.output, tmp_path, program=binary) as proxy:
        port = proxy.ports["lst-1"]
        assert not is_closed_after(port, MOST_GLITCHES // 2)
        assert is_closed_after(port, 2 * MOST_GLITCHES) is (version_of(binary) >= COUNTS_CANCELLED)
        assert proxy.ask("lst-1", "a.example", "/").status == 404
