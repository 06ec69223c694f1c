"""The real parts around a database: Redis, a worker, the sweep, four agents with HAProxy, pools."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import kombu.pools
from celery import current_app

from apps.agent.check.trial_run import end_left_over
from apps.agent.settings import Settings
from apps.drivers.proxy.contract import NodeState, NodeTarget, ProxyError
from apps.drivers.proxy.registry import open_driver
from tests.ports import fleet_ports, spare_port

ROOT = Path(__file__).resolve().parents[2]
FLEETS = {"us": ("us-1", "us-2"), "eu": ("eu-1", "eu-2")}
NODES = tuple(node for nodes in FLEETS.values() for node in nodes)
OFFSETS = {node: 100 * number for number, node in enumerate(NODES)}
HOST = "www.example.org"
PATIENCE = 240.0  # of a busy machine; what is promised in a time says its own


def wait_until(true: Callable[[], bool], what: str, patience: float = PATIENCE) -> float:
    """Wait for a condition and return the seconds that it took; fails with `what` when it does not come."""
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < patience, f"waited {patience:.0f} s in vain until {what}"
        time.sleep(0.02)
    return time.monotonic() - begin


class _Answer(BaseHTTPRequestHandler):
    """Answers with the name of the pool."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else its second small packet waits 40 ms, and a bench measures that

    def do_GET(self) -> None:
        """The pool's name."""
        body = getattr(self.server, "pool_name", "").encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        """Quiet."""


class _Server(ThreadingHTTPServer):
    """Connections that a HAProxy cut while it ended are nothing to report."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet."""


class Installation:
    """Everything that runs; each process can be killed and started again by name."""

    def __init__(self, folder: Path, database_url: str, reload_gap: float) -> None:
        self.folder = folder
        self.reload_gap = reload_gap
        self.redis_port = spare_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.base_port = spare_port(OFFSETS.values())
        self.overflow_ports = fleet_ports(OFFSETS.values())
        self.ports = {node: self.base_port + offset for node, offset in OFFSETS.items()}
        self.servers: dict[str, ThreadingHTTPServer] = {}
        self.environment = os.environ | {
            "SPILLWAY_DATABASE_URL": database_url,
            "SPILLWAY_REDIS_URL": self.redis_url,
            "CELERY_BROKER_URL": self.redis_url,
            "PYTHONPATH": str(ROOT),
        }

    @property
    def redis_url(self) -> str:
        """Where this installation's Redis is."""
        return f"redis://127.0.0.1:{self.redis_port}/0"

    def target(self, node: str) -> NodeTarget:
        """How to reach a node's agent."""
        return NodeTarget(node, f"unix://{self.folder}/{node}.sock")

    def state(self, node: str) -> NodeState:
        """What a node says; raises ProxyError."""
        return open_driver(self.target(node)).read_state()

    def digest(self, node: str) -> str:
        """The digest that a node runs, empty when it does not answer."""
        try:
            return self.state(node).digest
        except ProxyError:
            return ""

    def start(self, name: str) -> None:
        """Start a process by name: redis, worker, schedule, collect, collect_logs or a node's agent."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                self._command(name), cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )

    def _command(self, name: str) -> list[str]:
        if name == "redis":
            where = ["--bind", "127.0.0.1", "--port", str(self.redis_port), "--dir", str(self.folder)]
            return ["redis-server", *where, "--save", ""]
        if name == "worker":
            celery = [sys.executable, "-m", "celery", "-A", "controlplane.celery", "worker", "--pool", "threads"]
            return [*celery, "--concurrency", "4", "-Q", "default,push,webhooks,verifications,dns", "--without-mingle"]
        if name == "schedule":
            return [sys.executable, "manage.py", "schedule", "--every", "1"]
        if name in ("collect", "collect_logs"):
            return [sys.executable, "manage.py", name]
        return [*self._agent(name), "--unix", f"{self.folder}/{name}.sock", "--reload-gap", str(self.reload_gap)]

    def _agent(self, node: str) -> list[str]:
        command = [sys.executable, "-m", "apps.agent", "--name", node, "--state-dir", str(self.folder / node)]
        return [*command, "--port-offset", str(OFFSETS[node])]

    def kill(self, name: str) -> None:
        """kill -9."""
        process = self.processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait(10)

    def lives(self, name: str) -> bool:
        """Whether the process was started and has not ended."""
        return name in self.processes and self.processes[name].poll() is None

    def stop(self) -> None:
        """End everything that this installation started: agents end their haproxy, the rest has nothing to do."""
        for server in self.servers.values():
            server.shutdown()
            server.server_close()
        for name, process in self.processes.items():
            process.send_signal(signal.SIGTERM if name in NODES else signal.SIGKILL)
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        for node in NODES:
            if node in self.processes and self.processes[node].returncode != 0:  # its haproxy may have outlived it
                subprocess.run([*self._agent(node), "--stop"], cwd=ROOT, check=False)
            end_left_over(Settings(node, self.folder / node))  # an agent that ends in the middle of a push leaves it

    def logs(self) -> str:
        """The end of what every process said, for a test that fails."""
        return "\n".join(f"{path.name}\n{path.read_text()[-4000:]}" for path in sorted(self.folder.glob("*.log")))

    def serve(self, pool: str) -> int:
        """Start a server that answers with the pool's name; returns its port."""
        server = _Server(("127.0.0.1", 0), _Answer)
        server.pool_name = pool  # type: ignore[attr-defined]  # read by the handler above
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.servers[pool] = server
        return server.server_port

    def document(self) -> list[dict[str, Any]]:
        """Two regions with two nodes each, pools blue and green, a load balancer and a route to blue."""
        found: list[dict[str, Any]] = []
        for fleet, nodes in FLEETS.items():
            found.append({"kind": "Region", "name": fleet, "spec": {"title": fleet}})
            spec = {"region": fleet, "local_development": True, **self.overflow_ports}
            found.append({"kind": "Fleet", "name": fleet, "spec": spec})
            for node in nodes:
                spec = {"fleet": fleet, "url": self.target(node).url, "port_offset": OFFSETS[node]}
                found.append({"kind": "Node", "name": node, "spec": spec})
        found += [
            {"kind": "Pool", "name": name, "spec": self.pool_spec(self.serve(name))} for name in ("blue", "green")
        ]
        listener = {"name": "http", "protocol": "http", "port": self.base_port}
        spec = {"fleets": list(FLEETS), "listeners": [listener]}
        found.append({"kind": "LoadBalancer", "name": "front", "spec": spec})
        found.append({"kind": "Route", "name": "home", "spec": route("/", "blue")})
        return found

    def pool_spec(self, port: int, balance: str = "leastconn") -> dict[str, Any]:
        """A pool with one server on this machine in each region."""
        servers = [{"name": "s1", "address": "127.0.0.1", "port": port}]
        return {
            "protocol": "http",
            "balance": balance,
            "backends": [{"region": region, "servers": servers} for region in FLEETS],
        }

    def get(self, node: str, path: str) -> tuple[int, str]:
        """One request through a node: status and body; status 0 when nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[node], timeout=PATIENCE / 4)
        try:
            connection.request("GET", path, headers={"host": HOST})
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()


def route(path: str, pool: str) -> dict[str, Any]:
    """A route to one pool."""
    action = {"pools": [{"pool": pool, "weight": 100}]}
    return {"load_balancer": "front", "hostname": HOST, "path": path, "path_kind": "prefix", "action": action}


@contextmanager
def built(database_url: str, *names: str, reload_gap: float = 2.0) -> Iterator[Installation]:
    """An installation whose processes of these names are starting; all of it is ended and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="sw-"))
    installation = Installation(folder, database_url, reload_gap)
    try:
        for name in names:
            installation.start(name)
        yield installation
    finally:
        installation.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def broker(url: str) -> Iterator[None]:
    """Wake-ups of this process go to the installation's own Redis and not to the one that all tests share."""
    before = os.environ.get("CELERY_BROKER_URL")
    os.environ["CELERY_BROKER_URL"] = url
    _forget_connections()
    try:
        yield
    finally:
        os.environ.pop("CELERY_BROKER_URL") if before is None else os.environ.update(CELERY_BROKER_URL=before)
        _forget_connections()


def _forget_connections() -> None:
    kombu.pools.reset()
    setattr(current_app.amqp, "_producer_pool", None)  # noqa: B010 - Celery has no public way to forget its pools
    setattr(current_app, "_pool", None)  # noqa: B010
