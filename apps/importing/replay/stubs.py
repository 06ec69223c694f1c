"""Stub servers: each answers every request with what it received, and with its name; others hear its name alone."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MARK = "X-Replay-Pool"


# Words with which requests begin; a client of anything else, or of nothing for so long, hears the name.
_METHODS = (b"GET ", b"POST", b"PUT ", b"DELE", b"PATC", b"OPTI", b"HEAD")
_SILENCE_S = 1.0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        """Requests as long as there are any."""
        self.connection.settimeout(_SILENCE_S)
        try:
            first = self.connection.recv(4, socket.MSG_PEEK)
        except TimeoutError:
            first = b""
        self.connection.settimeout(None)
        if first in _METHODS:
            super().handle()
        elif isinstance(self.server, _Stub):
            self.wfile.write(f"{MARK}: {self.server.pool}\r\n".encode())

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        server = self.server
        seen = {name.lower(): value for name, value in self.headers.items()}
        body = json.dumps({"path": self.path, "headers": seen}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header(MARK, server.pool if isinstance(server, _Stub) else "")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = _answer  # noqa: N815 - names of the base class

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing."""


class _Stub(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, pool: str) -> None:
        self.pool = pool
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections that HAProxy closes when it ends."""


@contextmanager
def stub_servers(pools: Sequence[str]) -> Iterator[dict[str, int]]:
    """A server for each pool; its port by the name."""
    servers = [_Stub(pool) for pool in pools]
    for server in servers:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield {server.pool: server.server_address[1] for server in servers}
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
