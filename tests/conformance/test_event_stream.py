"""The event stream beside real processes: Redis goes and comes back, and the server that ends while pages listen."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import pytest
from pytest_django.fixtures import Settings

from apps.observe.live.stream import EventStream
from tests.database_url import database_url
from tests.interfaces.streaming import COOKIE, Listening, listening, operator_session, serving, wait_for
from tests.servers import redis

__all__ = ["operator_session"]
pytestmark = pytest.mark.slow(reason="Redis, or a server of its own, is started and ended")
ROOT = Path(__file__).resolve().parents[2]


def test_streams_outlive_redis_and_are_woken_when_it_is_back(
    operator_session: str, settings: Settings, tmp_path: Path
) -> None:
    with contextlib.ExitStack() as stack:
        settings.REDIS_URL = stack.enter_context(redis(tmp_path))
        port = settings.REDIS_URL.rpartition(":")[2].partition("/")[0]
        stream = EventStream(beat=0.3)
        url = stack.enter_context(serving(stream))
        page = stack.enter_context(listening(url, operator_session))
        wait_for(stream.hub)
        subprocess.run(["redis-cli", "-p", port, "shutdown", "nosave"], check=False, capture_output=True)
        page.until(": beat")
        command = ["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", str(tmp_path)]
        again = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        stack.callback(again.wait)
        stack.callback(again.terminate)
        assert [page.event() for _ in range(8)] == [
            (t, {}) for t in ("samples", "nodes", "rollouts", "runs", "stacks", "zones", "definitions", "lines")
        ]


def accepts(path: str) -> bool:
    """The socket is there before the program listens at it."""
    with socket.socket(socket.AF_UNIX) as caller:
        return caller.connect_ex(path) == 0


def test_the_process_ends_at_once_while_pages_listen(operator_session: str, live_redis: str) -> None:
    with tempfile.TemporaryDirectory(prefix="spw-") as directory:
        path = f"{directory}/e.sock"
        environment = os.environ | {"SPILLWAY_DATABASE_URL": database_url(), "SPILLWAY_REDIS_URL": live_redis}
        command = [sys.executable, "-m", "uvicorn", "controlplane.events:app", "--uds", path, "--no-access-log"]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            transport = httpx.HTTPTransport(uds=path, retries=0)
            deadline = time.monotonic() + 30
            while not accepts(path):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            with (
                httpx.Client(transport=transport, timeout=20, cookies={COOKIE: operator_session}) as client,
                client.stream("GET", "http://spillway/events") as response,
            ):
                page = Listening(response)
                page.until(": Spillway")
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
                # The stream ends in an orderly way: no exception, no cut.
                with pytest.raises(StopIteration):
                    page.until("never said")
                process.wait(10)
                assert time.monotonic() - began < 5
        finally:
            process.kill()
            _, said = process.communicate()
    assert "Traceback" not in said
