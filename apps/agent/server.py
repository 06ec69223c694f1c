"""The agent's server: HTTP with JSON over a Unix socket or mutual TLS."""

from __future__ import annotations

import json
import os
import re
import socket
import socketserver
import ssl
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Callable
from urllib.parse import parse_qs, urlsplit

from apps.agent.bodies import read_certificate, read_runtime, read_tickets
from apps.agent.errors import Malformed, Missing, Refusal, Superseded, Unavailable, unavailable
from apps.agent.identity.store import Identity
from apps.agent.process import bans
from apps.agent.push import Push

LARGEST_BODY = 256 * 1024 * 1024
STREAM_TICK = 5.0
SEGMENTS = "/v1/log/segments"
LONGEST_WAIT = 5.0
WAIT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3})?")


class Handler(BaseHTTPRequestHandler):
    """One request. What it may ask of the node hangs on the server object."""

    protocol_version = "HTTP/1.1"
    server_version = "spillway-agent"
    sys_version = ""
    timeout = 120
    server: HTTPServer

    def setup(self) -> None:
        """Finish the TLS handshake in this connection's own thread, so that a slow one holds up nobody."""
        self.request.settimeout(10)
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()

    def address_string(self) -> str:
        """Unix sockets have no address."""
        return "local" if isinstance(self.client_address, (str, bytes)) else str(self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the name is the base class's
        """Access lines are noise at one read per second."""

    def do_GET(self) -> None:
        """State, samples, both as far as they changed, bans, events."""
        path = urlsplit(self.path).path
        if path == "/v1/state":
            self._answer(self.server.push.node.state)
        elif path == "/v1/samples":
            self._answer(self.server.push.node.samples)
        elif path == "/v1/reading":
            self._answer(lambda: self.server.push.node.reading(self._query("since")))
        elif path == "/v1/bans":
            self._answer(lambda: bans.read(self.server.push.node.proxy))
        elif path == "/v1/events":
            self._stream()
        elif path == SEGMENTS:
            self._answer(lambda: self.server.push.node.log.segments.waiting(self._wait()))
        elif path.startswith(f"{SEGMENTS}/"):
            self._send_segment(path[len(SEGMENTS) + 1 :])
        else:
            self._send(404, {"error": "unknown", "message": "There is no such page."})

    def do_DELETE(self) -> None:
        """A segment is stored and may go, or a ban is lifted."""
        if urlsplit(self.path).path == "/v1/bans":
            self._answer(lambda: bans.lift(self.server.push.node.proxy, self._query("table"), self._query("key")))
            return
        name = self.path[len(SEGMENTS) + 1 :]
        if self.path.startswith(f"{SEGMENTS}/") and self.server.push.node.log.segments.acknowledge(name):
            self._send(200, {})
        else:
            self._send(404, {"error": "unknown", "message": "There is no such segment."})

    def _wait(self) -> float:
        text = self._query("wait")
        return min(float(text), LONGEST_WAIT) if WAIT.fullmatch(text) else 0.0

    def _query(self, name: str) -> str:
        return parse_qs(urlsplit(self.path).query).get(name, [""])[0]

    def _send_segment(self, name: str) -> None:
        content = self.server.push.node.log.segments.read(name)
        if content is None:
            self._send(404, {"error": "unknown", "message": "There is no such segment."})
        else:
            self._send_bytes(200, "application/zlib", content)

    def do_PUT(self) -> None:
        """A whole bundle, the secrets of session tickets, or the certificate that was asked for."""
        if self.path not in ("/v1/bundle", "/v1/tickets", "/v1/certificate"):
            self._refuse_path()
            return
        body = self._body()
        if body is None:
            return
        if self.path == "/v1/tickets":
            self._answer(lambda: self.server.push.take_tickets(read_tickets(body)))
        elif self.path == "/v1/certificate":
            self._answer(lambda: {"sha256": self._identity().take(*read_certificate(body))})
        else:
            self._answer(lambda: self._take(body))

    def _identity(self) -> Identity:
        if self.server.identity is None:
            raise Malformed("This agent was given its certificate by flags; only an enrolled one renews it.")
        return self.server.identity

    def _take(self, body: bytes) -> dict[str, Any]:
        push = self.server.push
        bundle = push.read(body)
        return push.check(bundle) if bundle.only_check else push.push(bundle)

    def do_POST(self) -> None:
        """Runtime operations, or the request for the next certificate."""
        if self.path not in ("/v1/runtime", "/v1/certificate/request"):
            self._refuse_path()
            return
        body = self._body()
        if body is None:
            return
        if self.path == "/v1/runtime":
            self._answer(lambda: self.server.push.operate(read_runtime(body)))
        else:
            self._answer(lambda: {"request": self._identity().request(self.server.push.node.settings.name)})

    def _refuse_path(self) -> None:
        self.close_connection = True
        self._send(404, {"error": "unknown", "message": "There is no such page."})

    def _body(self) -> bytes | None:
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            self.close_connection = True
            self._send(413, {"error": "malformed", "message": f"A body has a length of at most {LARGEST_BODY} bytes."})
            return None
        return self.rfile.read(int(length))

    def _answer(self, act: Callable[[], dict[str, Any]]) -> None:
        try:
            status, answer = 200, act()
        except (Refusal, Unavailable, Superseded, Malformed, Missing) as error:
            status, answer = error.status, error.body()
        except OSError as error:
            self.server.push.node.events.add("error", f"{self.command} {self.path}: {error}")
            status, answer = Unavailable.status, unavailable(error, "").body()
        self._send(status, answer)

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        self._send_bytes(status, "application/json", json.dumps(answer).encode())

    def _send_bytes(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        if not self.server.is_current(self.request):
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _stream(self) -> None:
        """JSON lines, chunked; `?since=<id>` goes on after an entry, `?follow=0` ends after what is there."""
        query = parse_qs(urlsplit(self.path).query)
        since, follow = query.get("since", ["0"])[0], query.get("follow", ["1"])[0] != "0"
        number = int(since) if since.isdigit() else 0
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while True:
            found = self.server.push.node.events.since(number, STREAM_TICK if follow else 0)
            number = found[-1]["id"] if found else number
            self._chunk(b"".join(json.dumps(each).encode() + b"\n" for each in found) or b"\n")
            if not follow:
                self._chunk(b"")
                return

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")


class HTTPServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Listens; each connection has its thread."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64
    push: Push
    identity: Identity | None = None

    def is_current(self, _connection: socket.socket) -> bool:
        """Whether a connection may be kept after its answer."""
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A broken connection or a refused handshake is the other side's business."""


class UnixHTTPServer(HTTPServer):
    """The same on a Unix socket that only its owner may use."""

    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        """Bind under a temporary name with the right mode, then take the place."""
        path = Path(str(self.server_address))
        draft = path.with_name(path.name + ".new")
        draft.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            self.socket.bind(str(draft))
        finally:
            os.umask(before)
        draft.replace(path)


def listen_unix(path: Path, push: Push) -> HTTPServer:
    """Listen on a Unix socket."""
    server = UnixHTTPServer(str(path), Handler)  # type: ignore[arg-type]  # typeshed knows internet addresses only
    server.push = push
    return server


class TLSHTTPServer(HTTPServer):
    """The same with mutual TLS; which certificate is shown is asked anew for each connection."""

    context: Callable[[], ssl.SSLContext]  # set on the object, so it is called without it

    def is_current(self, connection: socket.socket) -> bool:
        """Not when another certificate has come into force since it began: the next question shall see that one."""
        try:
            return isinstance(connection, ssl.SSLSocket) and connection.context is self.context()
        except OSError:
            return False

    def get_request(self) -> tuple[socket.socket, Any]:
        """A connection whose handshake is still to come."""
        plain, address = super().get_request()
        try:
            return self.context().wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address
        except OSError:
            plain.close()
            raise


def listen_tls(
    address: tuple[str, int], push: Push, context: Callable[[], ssl.SSLContext], identity: Identity | None = None
) -> HTTPServer:
    """Listen with mutual TLS: a peer needs a client certificate of our authority. Raises OSError without a context."""
    context()
    server = TLSHTTPServer(address, Handler)
    server.context = context
    server.push = push
    server.identity = identity
    return server
