"""The console's own front tells the application who asks, and takes nobody's word for it but a trusted proxy's."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.conformance.real_agent import short_folder
from tests.e2e.installation import ROOT, wait_until
from tests.ports import spare_port

pytestmark = pytest.mark.e2e
FORWARDED = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was told about the client."""

    def do_GET(self) -> None:
        told = [self.headers.get(name) for name in FORWARDED]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(repr(told).encode())

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None: ...


class UnixServer(HTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "unix", 0


@contextmanager
def front(**settings: str) -> Iterator[str]:
    """Its URL; the application behind it tells what it was told."""
    run, port = short_folder(), spare_port()
    application = UnixServer(str(run / "web.sock"), Echo)  # type: ignore[arg-type]
    threading.Thread(target=application.serve_forever, daemon=True).start()
    ours = {"SPILLWAY_RUN": str(run), "SPILLWAY_BIND": f"127.0.0.1:{port}", **settings}
    command = ["haproxy", "-db", "-f", str(ROOT / "deploy/console/haproxy.cfg")]
    process = subprocess.Popen(command, env=os.environ | ours, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(port), "the front listens")
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()
        application.shutdown()
        application.server_close()
        shutil.rmtree(run)


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def told(url: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=FORWARDED), timeout=5) as answer:  # noqa: S310
        return str(answer.read().decode())


def test_the_word_of_a_stranger_about_himself_is_not_taken() -> None:
    with front() as url:
        assert told(url) == "['127.0.0.1', 'http', None]"


def test_the_word_of_a_trusted_proxy_is_taken() -> None:
    with front(SPILLWAY_TRUSTED_PROXIES="192.0.2.0/24 127.0.0.0/8") as url:
        assert told(url) == "['203.0.113.7', 'https', None]"
