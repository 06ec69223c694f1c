"""The front of several consoles: who asks comes to one that is ready, and where none is, one of them says why."""

from __future__ import annotations

import os
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.e2e.installation import ROOT, wait_until
from tests.ports import spare_port

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]


class Answer(BaseHTTPRequestHandler):
    """Says which console it is, and from whom it heard of the client; `/readyz` says whether it is ready."""

    def do_GET(self) -> None:
        console = self.server
        assert isinstance(console, Console)
        ready = 200 if console.ready or self.path != "/readyz" else 503
        self.send_response(ready if self.headers.get("Host") else 400)  # as Django does
        self.end_headers()
        told = [self.headers.get(name) for name in ("X-Forwarded-For", "X-Forwarded-Proto")]
        self.wfile.write(f"{console.name} {told}".encode())

    def log_message(self, *_: object) -> None: ...


class Console(ThreadingHTTPServer):
    """One of them."""

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.name, self.ready = name, True
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.server_port}"

    def end(self) -> None:
        """It is gone."""
        self.shutdown()
        self.server_close()


@contextmanager
def front(first: Console, second: Console) -> Iterator[str]:
    """Its URL."""
    port = spare_port()
    addresses = {"SPILLWAY_CONSOLE_A": first.address, "SPILLWAY_CONSOLE_B": second.address}
    command = ["haproxy", "-db", "-f", str(ROOT / "deploy/console/several.cfg")]
    told = os.environ | addresses | {"SPILLWAY_BIND": f"127.0.0.1:{port}"}
    process = subprocess.Popen(command, env=told, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: _answers(f"http://127.0.0.1:{port}/"), "the front answers")
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return bool(who(url))
    except OSError:
        return False


def who(url: str) -> str:
    """Which console answers; raises HTTPError for anything but 200."""
    asked = urllib.request.Request(url, headers={"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"})  # noqa: S310
    with urllib.request.urlopen(asked, timeout=5) as answer:  # noqa: S310
        return str(answer.read().decode())


def test_who_asks_comes_to_a_console_that_is_ready() -> None:
    a, b = Console("a"), Console("b")
    with front(a, b) as url:
        heard = " ['127.0.0.1', 'http']"
        assert {who(url) for _ in range(8)} == {f"a{heard}", f"b{heard}"}, "the word of a stranger is not taken"
        a.ready = False
        wait_until(lambda: {who(url) for _ in range(8)} == {f"b{heard}"}, "nobody comes to a any more")
        a.ready = True
        wait_until(lambda: who(url).startswith("a"), "a is asked again")
        a.end()
        assert {who(url) for _ in range(8)} == {f"b{heard}"}, "not one request fails, though a is still believed"
        b.ready = False
        time.sleep(2.5)  # two looks
        assert who(url) == f"b{heard}", "it says itself what is wrong"
        b.end()
        with pytest.raises(urllib.error.HTTPError):
            who(url)
