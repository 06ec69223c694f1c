"""The servers behind the cases: each says its name and what it got; some are slow, fail a few times, or speak TLS."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.authorities import Authority
from tests.conformance.gateway_api.documents import CA, OTHER_CA, Environment

try:
    grpc: Any = import_module("grpc")
except ImportError:  # it comes with the packages for Google; without it these servers are not asked
    grpc = None

PLAIN = ("infra-backend-v1", "infra-backend-v2", "infra-backend-v3", "web-backend", "app-backend-v1")
ENCRYPTED = ("tls-backend", "tls-backend-2")
NAMES = ("abc.example.com", "other.example.com")
BY_GRPC = ("grpc-infra-backend-v1", "grpc-infra-backend-v2", "grpc-infra-backend-v3")
BY_GRPC_AND_TLS = "grpc-tls-backend"
RESETTING = "resetting-backend"
# By this header a request says which headers its answer has.
ANSWER_HEADERS = "X-Answer-Headers"
_WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class _Answers(BaseHTTPRequestHandler):
    """Answers with what arrived, as the query wants it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets
    server: _Server

    def do_GET(self) -> None:
        """Wait, fail or echo."""
        if self.headers.get("Upgrade") == "websocket":
            self._upgraded()
            return
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = dict(parse_qsl(urlsplit(self.path).query))
        failures = int(asked.get("fail", 0))
        self.server.seen[asked.get("id", "")] += 1
        failed = self.server.seen[asked.get("id", "")] <= failures
        time.sleep(int(asked.get("fail_ms" if failed else "delay_ms", 0)) / 1000)
        self._answer(int(asked.get("with", 500)) if failed else 200)

    def _answer(self, status: int) -> None:
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            headers[name.lower()] = f"{headers[name.lower()]},{value}" if name.lower() in headers else value
        sni = getattr(self.connection, "asked_name", "")
        echo = {"backend": self.server.name, "path": self.path, "headers": headers, "sni": sni}
        body = json.dumps(echo).encode()
        self.send_response(status)
        for name, value in json.loads(self.headers.get(ANSWER_HEADERS) or "{}").items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _upgraded(self) -> None:
        """Every frame comes back as it is, without its mask."""
        key = (self.headers.get("Sec-WebSocket-Key") or "").encode()
        accept = base64.b64encode(hashlib.sha1(key + _WEBSOCKET_GUID).digest()).decode()  # noqa: S324  # RFC 6455
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)):
            self.send_header(name, value)
        self.end_headers()
        while len(head := self.rfile.read(2)) == 2:
            mask, data = self.rfile.read(4), self.rfile.read(head[1] & 127)
            plain = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
            self.wfile.write(struct.pack("!BB", head[0], len(plain)) + plain)
        self.close_connection = True

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815  # the base class's spelling

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Keep quiet."""


class _Server(ThreadingHTTPServer):
    """A server with a name, which counts how often it was asked with the same id."""

    daemon_threads = True

    def __init__(self, name: str, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.name = name
        self.seen: Counter[str] = Counter()
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: object, client_address: object) -> None:
        """A proxy that closes a connection is no error of this server."""


class _Grpc:
    """Any method of gRPC: answers with the name of the server and the metadata that it got."""

    def __init__(self, name: str) -> None:
        self.name = name

    def service(self, call: Any) -> Any:
        """One request, one answer."""
        metadata = [(key, value) for key, value in call.invocation_metadata if isinstance(value, str)]
        headers: dict[str, str] = {}
        for key, value in metadata:
            headers[key] = f"{headers[key]},{value}" if key in headers else value
        answer = json.dumps({"backend": self.name, "path": call.method, "headers": headers}).encode()
        return grpc.unary_unary_rpc_method_handler(lambda *_: answer)


@contextmanager
def running_backends(directory: Path) -> Iterator[Environment]:
    """All of them, on ports of 127.0.0.1."""
    authority = Authority()
    ports: dict[str, int] = {}
    with ExitStack() as stack:
        for name in PLAIN:
            ports[name] = stack.enter_context(_serving(_Server(name)))
        for name in ENCRYPTED:
            ports[name] = stack.enter_context(_serving(_Server(name, _context(authority, directory))))
        ports[RESETTING] = stack.enter_context(_resetting())
        for name in (*BY_GRPC, BY_GRPC_AND_TLS):
            ports[name] = stack.enter_context(_by_grpc(name, authority)) if grpc else ports[RESETTING]
        yield Environment(ports, {CA: authority.pem, OTHER_CA: Authority().pem})


@contextmanager
def _serving(server: _Server) -> Iterator[int]:
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def _context(authority: Authority, directory: Path) -> ssl.SSLContext:
    """Shows the certificate of the name that is asked for, and remembers that name."""
    contexts = {}
    for name in NAMES:
        path = directory / f"{name}.pem"
        path.write_text(authority.signed(name))
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[name].load_cert_chain(path)

    def choose(connection: Any, asked: str | None, _: ssl.SSLContext) -> None:
        connection.asked_name = asked or ""
        connection.context = contexts.get(asked or "", contexts[NAMES[0]])

    contexts[NAMES[0]].sni_callback = choose
    return contexts[NAMES[0]]


@contextmanager
def _resetting() -> Iterator[int]:
    """A server that resets each connection once it was asked something."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                    with connection:
                        connection.recv(1)
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                except OSError:
                    if listening.fileno() < 0:
                        return

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def _by_grpc(name: str, authority: Authority) -> Iterator[int]:
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((_Grpc(name),))
    if name == BY_GRPC_AND_TLS:
        pem = authority.signed(NAMES[0])
        key, chain = (re.search(f"-----BEGIN {kind}-----.*?-----END {kind}-----", pem, re.DOTALL) for kind in _PEM)
        shown = grpc.ssl_server_credentials([(key[0].encode(), chain[0].encode())])  # type: ignore[index]
        port = server.add_secure_port("127.0.0.1:0", shown)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None)


_PEM = ("PRIVATE KEY", "CERTIFICATE")
