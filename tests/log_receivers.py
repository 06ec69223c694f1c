"""Log systems of a test: one that takes syslog over TLS as RFC 5425 frames it, one that takes OTLP over HTTPS."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.authorities import Authority
from tests.serving import answering


@dataclass
class Receiver:
    """What it takes, and how it behaves: `status` and `answer` for OTLP, `breaks` resets every connection unread."""

    ca: str
    port: int = 0
    status: int = 200
    answer: bytes = b"{}"
    breaks: bool = False
    messages: list[bytes] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)


def context_and_ca() -> tuple[ssl.SSLContext, str]:
    """A server's context with a certificate for localhost, and the authority that signed it."""
    authority = Authority()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        path = Path(folder, "both.pem")
        path.write_text(authority.signed("localhost"))
        serving.load_cert_chain(path)
    return serving, authority.pem


@contextmanager
def syslog_receiver() -> Iterator[Receiver]:
    """Reads octet-counted messages until the sender's end, then closes."""
    serving, ca = context_and_ca()
    found = Receiver(ca)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found.port = listening.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    raw, _ = listening.accept()
                    with suppress(OSError, ValueError):
                        _take(serving, raw, found)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield found
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def _take(serving: ssl.SSLContext, raw: socket.socket, found: Receiver) -> None:
    raw.settimeout(5)
    if found.breaks:
        with serving.wrap_socket(raw, server_side=True) as stream:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            time.sleep(0.3)  # by now the sender has written everything
            return
    with serving.wrap_socket(raw, server_side=True) as stream:
        data = b""
        while piece := stream.recv(65536):
            data += piece
        while data:
            length, _, rest = data.partition(b" ")
            found.messages.append(rest[: int(length)])
            data = rest[int(length) :]
        with suppress(OSError):
            stream.unwrap()


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """Takes POST of JSON in gzip."""
    serving, ca = context_and_ca()
    found = Receiver(ca)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            found.requests.append((self.path, headers, json.loads(gzip.decompress(body))))
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(found.answer)))
            self.end_headers()
            self.wfile.write(found.answer)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = serving.wrap_socket(server.socket, server_side=True)
        found.port = server.server_address[1]
        with answering(server):
            yield found
