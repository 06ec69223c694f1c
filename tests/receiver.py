"""A receiver of webhooks: a real HTTP server on loopback that keeps what it hears and answers as told."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.serving import answering


@dataclass(slots=True)
class Heard:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Receiver:
    """`answers` are given one after the other, the last one for ever: (status, headers, body), `delay_s` later."""

    port: int = 0
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=lambda: [(204, {}, b"")])
    heard: list[Heard] = field(default_factory=list)
    delay_s: float = 0.0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/hook"

    def answer(self, *statuses: int) -> None:
        """Answer with these statuses from now on, the last one for ever."""
        self.answers[:] = [(status, {}, b"") for status in statuses]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that runs."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            receiver.heard.append(Heard(self.path, dict(self.headers.items()), body))
            time.sleep(receiver.delay_s)
            status, headers, text = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
            """Quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Callers that went away are nothing to report."""

    with Server(("127.0.0.1", 0), Handler) as server, answering(server):
        receiver.port = server.server_port
        yield receiver
