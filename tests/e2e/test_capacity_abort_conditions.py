"""Abort conditions with real processes: a worker, its generator, a server that notes each request, what goes wrong."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from apps.accounts.actors import Actor
from apps.capacity import services
from apps.capacity.models import Run
from apps.core.clock import now
from apps.drivers.load.contract import LEASE_S
from apps.observe.collect.deltas import Counts
from tests.apps.capacity_env import Watched, a_test, make, watched
from tests.database_url import database_url
from tests.ports import spare_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,  # each abort condition by itself is in tests/apps, the generator's end in tests/conformance
    pytest.mark.django_db(transaction=True),
]
ROOT = Path(__file__).resolve().parents[2]
HOLD = {"kind": "constant", "rate": 20, "duration_s": 25, "arrivals": "constant"}
GUARDS = {"max_rate": 50, "max_connections": 50, "max_duration_s": 30}
# Of the abort condition's own second, the stopping, and a machine that has other things to do.
ZERO_WITHIN_S = 2.0
PATIENCE_S = 180.0  # of a busy machine
# The generator of the worker need not find out what it can: so little is always there.
KNOWN = (
    "import time; from apps.drivers.load import contract, maximum; "
    "maximum.remember(contract.Maximum(30_000.0, 1, time.time(), 2, 0.0))"
)
CALM = Counts(seconds=10.0, requests=50, status_2xx=50, latency={50: 50})
SLOW = Counts(seconds=10.0, requests=50, status_2xx=50, latency={1000: 50})


@dataclass
class Backend:
    """A server that notes when it was asked, and fails when told to."""

    port: int
    asked: list[float] = field(default_factory=list)
    failing: bool = False

    def serve(self) -> ThreadingHTTPServer:
        """In threads, until `shutdown`."""
        backend = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                backend.asked.append(time.monotonic())
                self.send_response(500 if backend.failing else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    super().handle()

        server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


@dataclass
class Env:
    """Everything that a cause may touch."""

    actor: Actor
    nodes: Watched
    backend: Backend
    worker: subprocess.Popen[bytes]
    run: Run

    def generators(self) -> list[int]:
        """Process ids of the worker's generator."""
        found = subprocess.run(["pgrep", "-P", str(self.worker.pid)], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]


@pytest.fixture
def env(transactional_db: None, live_redis: str) -> Iterator[Env]:
    """A run that has begun: requests arrive."""
    backend = Backend(spare_port())
    server = backend.serve()
    actor = make(secrets.token_hex(4), server=backend.port)
    environment = os.environ | {
        "SPILLWAY_DATABASE_URL": database_url(),
        "SPILLWAY_REDIS_URL": live_redis,
    }
    with watched() as nodes:
        nodes.rows["backend", "pool-77"] = CALM
        nodes.read()
        run = services.request_run(actor=actor, test_id=a_test(actor, load=HOLD, guards=GUARDS).pk)
        code = f"{KNOWN}; from apps.capacity.run.running import carry_out; carry_out({run.pk})"
        worker = subprocess.Popen([sys.executable, "manage.py", "shell", "-c", code], cwd=ROOT, env=environment)
        try:
            _until(lambda: len(backend.asked) > 40)
            yield Env(actor, nodes, backend, worker, run)
        finally:
            worker.kill()
            worker.wait()
            server.shutdown()


def _until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert what()


def fails(env: Env) -> None:
    """Every answer is 500 from now on."""
    env.backend.failing = True


def slows(env: Env) -> None:
    """Another tenant's p95 goes from 50 ms to a second."""
    env.nodes.rows["backend", "pool-77"] = SLOW


def stops(env: Env) -> None:
    """Somebody presses the button."""
    services.stop_run(actor=env.actor, run_id=env.run.pk)


def loses_sight(env: Env) -> None:
    """No node is read any more."""
    env.nodes.silent = True


def loses_the_worker(env: Env) -> None:
    """kill -9 of the control plane's process."""
    env.worker.kill()


def loses_the_generator(env: Env) -> None:
    """kill -9 of the generator."""
    pids = env.generators()
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def freezes_the_worker(env: Env) -> None:
    """The control plane hangs: nothing is closed, nothing is renewed."""
    env.worker.send_signal(signal.SIGSTOP)


def nothing(env: Env) -> None:
    """The control: all is well."""


@pytest.mark.parametrize(
    ("cause", "after_s", "state"),
    [
        (fails, 6 + ZERO_WITHIN_S, Run.State.STOPPED),
        (slows, ZERO_WITHIN_S, Run.State.STOPPED),
        (stops, ZERO_WITHIN_S, Run.State.STOPPED),
        (loses_sight, 7 + ZERO_WITHIN_S, Run.State.STOPPED),
        (loses_the_worker, LEASE_S, Run.State.FAILED),
        (freezes_the_worker, LEASE_S + 1, Run.State.FAILED),
        (loses_the_generator, ZERO_WITHIN_S, Run.State.FAILED),
        (nothing, None, Run.State.DONE),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_load_is_at_zero_in_time(
    env: Env, cause: Callable[[Env], None], after_s: float | None, state: Run.State
) -> None:
    cause(env)
    began = time.monotonic()
    if after_s is None:
        _until(lambda: env.backend.asked[-1] > began + 10)
        env.worker.wait()
    else:
        _until(lambda: time.monotonic() - env.backend.asked[-1] > 3)
        lasted = env.backend.asked[-1] - began
        print(f"{cause.__name__}: the last request {lasted:.2f} s after the cause")
        assert lasted <= after_s
    if state == Run.State.FAILED and cause is not loses_the_generator:
        Run.objects.update(lease_until=now())
        services.sweep()
    _until(lambda: Run.objects.get().state == state)
    assert Run.objects.get().bypass_digest == ""
