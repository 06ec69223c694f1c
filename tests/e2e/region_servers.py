"""Servers of a region: some answer at once, some late or when a gate opens; those can be cut off in an answer."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.e2e.rendered_proxy import PATIENCE_S, takes_connections
from tests.ports import spare_port

HOST = "shop.example"
HELD_S = 120.0  # against a gate that nobody opens


class Gate:
    """Holds answers back: servers that are `held` wait in front of it while it is closed."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self.waiting = 0

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Nobody is answered within the block."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def open(self) -> None:
        """Whoever waits is answered, and nobody waits any more."""
        self._open.set()

    def pass_through(self) -> None:
        """Wait until it is open."""
        with self._lock:
            self.waiting += 1
        self._open.wait(HELD_S)
        with self._lock:
            self.waiting -= 1


class SlowServer(ThreadingHTTPServer):
    """Answers when `wait` returns; a health check at once."""

    daemon_threads = True
    # With five, as is usual, some of a crowd are not let in while the machine is busy: HAProxy calls the server dead.
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], region: str, wait: Callable[[], None]) -> None:
        super().__init__(address, _Slow)
        self.region, self.wait = region, wait
        self._connections: set[socket.socket] = set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A check that hangs up is no error."""

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def cut(self) -> None:
        """Break every connection, as a machine that dies."""
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Slow(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SlowServer

    def do_GET(self) -> None:
        """Wait, then say the region."""
        if self.headers.get("host", "").endswith(HOST):
            self.server.wait()
        self.send_response(200)
        self.send_header("x-region", self.server.region)
        self.send_header("content-length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 - the name that the base class asks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        """Quiet."""


def stop(servers: list[SlowServer]) -> None:
    """Nobody listens any more, and what was being answered breaks off."""
    for server in servers:
        server.shutdown()
        server.server_close()
        server.cut()


def slow_server(stack: ExitStack, region: str, wait: Callable[[], None]) -> SlowServer:
    """A slow server that is asked from now on until the stack is closed."""
    server = SlowServer(("127.0.0.1", spare_port()), region, wait)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return server


def instant_servers(stack: ExitStack, root: Path, servers: Mapping[int, tuple[str, int]], *bound: str) -> None:
    """One HAProxy that answers at once on each port, `bound` with words, says its region, and sends so many bytes."""
    if not servers:
        return
    lines = ["defaults", " mode http", " timeout client 60s", " timeout http-keep-alive 60s"]
    for port, (region, size) in servers.items():
        marks = f"hdr x-region {region} hdr x-marks %[req.hdr_names]"
        lines += [f"frontend f{port}", " ".join((f" bind 127.0.0.1:{port}", *bound))]
        lines.append(f" http-request return status 425 {marks} if {{ path /early }}")
        (root / f"body{port}").write_bytes(b"x" * size)
        body = f"content-type text/plain file {root}/body{port}" if size else ""
        lines.append(f" http-request return status 200 {body} {marks}")
    (root / "servers.cfg").write_text("\n".join(lines) + "\n")
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    process = subprocess.Popen([program, "-db", "-f", str(root / "servers.cfg")], stdout=subprocess.DEVNULL)
    stack.callback(process.wait, 10)
    stack.callback(process.kill)


def wait_for(ports: Iterable[int]) -> None:
    """Until each takes connections: a node that is told that a server is up, and it is not yet, answers 503."""
    until = time.monotonic() + PATIENCE_S
    for port in ports:
        while not takes_connections(port):
            assert time.monotonic() < until, f"waited in vain for a server at {port}"
            time.sleep(0.01)
