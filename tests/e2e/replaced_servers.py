"""Servers that can be replaced by another build at the same address, and clients that notice every failure."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.ports import fleet_ports

HOST = "www.example.org"
BAD = "bad"


class _Answer(BaseHTTPRequestHandler):
    """Its build, or 500 of a bad one."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """One answer."""
        build = getattr(self.server, "build", "").encode()
        self.send_response(500 if build == BAD.encode() else 200)
        self.send_header("content-length", str(len(build)))
        self.end_headers()
        self.wfile.write(build)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        """Quiet."""


class _Listening(ThreadingHTTPServer):
    """Cuts its connections when it ends, as a process that ends does."""

    daemon_threads = True
    allow_reuse_address = True
    build = ""

    def __init__(self, port: int, build: str) -> None:
        super().__init__(("127.0.0.1", port), _Answer)
        self.build, self.open = build, set[socket.socket]()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note the connection."""
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection."""
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet: a connection that was cut is none."""

    def end(self) -> None:
        """No port and no connection is left."""
        self.shutdown()
        self.server_close()
        for each in list(self.open):
            with suppress(OSError):  # the other side was quicker
                each.shutdown(socket.SHUT_RDWR)  # a thread that reads from it keeps what is only closed


class Machine:
    """One server: an address that stays, and the build that answers there now."""

    def __init__(self, build: str) -> None:
        self._running = _Listening(0, build)
        self.port: int = self._running.server_port

    @property
    def build(self) -> str:
        """What runs."""
        return self._running.build

    def replace(self, build: str) -> None:
        """End what runs, with every connection, and start another build."""
        self._running.end()
        self._running = _Listening(self.port, build)

    def end(self) -> None:
        """Nothing answers any more."""
        self._running.end()


class Load:
    """Requests of several clients without a pause, over connections that stay; how each ended is counted."""

    def __init__(self, ports: tuple[int, ...], clients: int, pause_s: float) -> None:
        self.outcomes: Counter[str] = Counter()
        self._ended = threading.Event()
        self._pause_s = pause_s
        self._threads = [
            threading.Thread(target=self._ask, args=(ports[each % len(ports)],), daemon=True) for each in range(clients)
        ]
        for thread in self._threads:
            thread.start()

    def _ask(self, port: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not self._ended.is_set():
            try:
                connection.request("GET", "/", headers={"host": HOST})
                response = connection.getresponse()
                body = response.read().decode()
                self.outcomes[body if response.status == 200 else str(response.status)] += 1
            except (OSError, http.client.HTTPException) as error:
                self.outcomes[type(error).__name__] += 1
                connection.close()
            time.sleep(self._pause_s)

    def end(self) -> None:
        """No client asks any more."""
        self._ended.set()
        for thread in self._threads:
            thread.join(30)

    def failed(self, *builds: str) -> dict[str, int]:
        """What was answered beside these builds."""
        return {outcome: count for outcome, count in self.outcomes.items() if outcome not in builds}


@contextmanager
def machines(count: int, build: str) -> Iterator[list[Machine]]:
    """So many of one build."""
    found = [Machine(build) for _ in range(count)]
    try:
        yield found
    finally:
        for each in found:
            each.end()


@contextmanager
def load(*ports: int, clients: int = 4, pause_s: float = 0.005) -> Iterator[Load]:
    """Clients at these ports of nodes."""
    found = Load(ports, clients, pause_s)
    try:
        yield found
    finally:
        found.end()


def document(region: str, nodes: dict[str, tuple[str, int]], port: int, servers: list[Machine]) -> list[dict[str, Any]]:
    """A region with these nodes (URL, port offset), and one pool of the servers, checked ten times a second."""
    ports = fleet_ports(offset for _, offset in nodes.values())
    listed = [{"name": f"s{number}", "address": "127.0.0.1", "port": each.port} for number, each in enumerate(servers)]
    check = {"path": "/", "interval_ms": 100, "timeout_ms": 500, "rise": 1, "fall": 2}
    pool = {"protocol": "http", "health_check": check, "backends": [{"region": region, "servers": listed}]}
    route = {"load_balancer": "front", "hostname": HOST, "path": "/", "path_kind": "prefix"}
    listener = {"name": "http", "protocol": "http", "port": port}
    return [
        {"kind": "Region", "name": region, "spec": {"title": region}},
        {"kind": "Fleet", "name": region, "spec": {"region": region, "local_development": True, **ports}},
        *(
            {"kind": "Node", "name": name, "spec": {"fleet": region, "url": url, "port_offset": offset}}
            for name, (url, offset) in nodes.items()
        ),
        {"kind": "Pool", "name": "shop", "spec": pool},
        {"kind": "LoadBalancer", "name": "front", "spec": {"fleets": [region], "listeners": [listener]}},
        {"kind": "Route", "name": "home", "spec": route | {"action": {"pools": [{"pool": "shop", "weight": 100}]}}},
    ]
