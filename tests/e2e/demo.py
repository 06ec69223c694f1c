"""A demo of our own for tests: `python -m deploy.demo up` on free ports in a directory that goes away."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploy.demo.config import ROOT, DemoConfig
from deploy.demo.ready import call
from deploy.demo.supervision import CannotStart, check_ports, processes, stop
from deploy.demo.topology import DemoTopology

PATIENCE_S = 180  # of a busy machine


def free_config(var: Path) -> DemoConfig:
    """A configuration whose ports are all free, below the range that the kernel gives to clients."""
    while True:
        base = random.randrange(10_000, 29_000, 10)
        config = DemoConfig(var, base, base + 1, base + 400, base + 2, base + 4, base + 5, base + 6)
        try:
            check_ports(DemoTopology(config))
        except CannotStart:
            continue
        return config


def until(done: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
    """Whether `done` became true in time; asked five times a second: tokens have a rate."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


class RunningDemo:
    """A demo with its environment, its keys, and hands to change, watch and kill parts of it."""

    def __init__(self, config: DemoConfig, settings: dict[str, str] | None = None) -> None:
        self.config = config
        self.settings = settings or {}
        self.topology = DemoTopology(config)
        self.process: subprocess.Popen[str] | None = None

    def environment(self) -> dict[str, str]:
        """What `deploy.demo` reads."""
        config = self.config
        ports = {
            "SPILLWAY_PORT": config.console_port,
            "SPILLWAY_HTTP_PORT": config.http_port,
            "SPILLWAY_BACKEND_PORT": config.backend_port,
            "SPILLWAY_AGENT_PORT": config.agent_port,
            "SPILLWAY_REDIS_PORT": config.redis_port,
            "SPILLWAY_CLIENT_PORT": config.client_port,
            "SPILLWAY_OVERFLOW_PORT": config.overflow_port,
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        own = {"SPILLWAY_VAR": str(config.var)} | {name: str(port) for name, port in ports.items()}
        return kept | own | self.settings

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `python -m deploy.demo …`; output is captured."""
        line = [sys.executable, "-m", "deploy.demo", *arguments]
        return subprocess.Popen(
            line, cwd=ROOT, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def start(self) -> None:
        """Bring it up in the foreground and wait for its var/dev.json. Fails with its output and logs."""
        self.process = self.command("up")
        ready = until(lambda: self.config.dev_json.exists() or self._ended(), 2 * PATIENCE_S)
        if not ready or self._ended():
            stop(self.config)
            raise AssertionError(f"The demo did not come up:\n{self.process.communicate()[0]}\n{self.logs()}")

    def _ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def logs(self) -> str:
        """The last lines of every log, for a failed test."""
        files = sorted((self.config.demo / "logs").glob("*.log"))
        return "\n".join(f"--- {path.name}\n" + "\n".join(path.read_text().splitlines()[-15:]) for path in files)

    @property
    def keys(self) -> dict[str, Any]:
        """var/dev.json."""
        found: dict[str, Any] = json.loads(self.config.dev_json.read_text())
        return found

    def node_urls(self) -> dict[str, str]:
        """Listener URL per node."""
        return {node.name: self.topology.urls_of(node)[0] for node in self.topology.nodes()}

    def put_answer(self, text: str) -> None:
        """One API call: the route `probe` answers with `text`."""
        action = {"fixed_response": {"status": 200, "body": text}}
        spec = {"load_balancer": "front", "hostname": "probe.globex.example", "path": "/", "action": action}
        body = json.dumps({"objects": [{"kind": "Route", "name": "probe", "account": "globex", "spec": spec}]})
        headers = {"Authorization": f"Bearer {self.keys['operator_token']}", "Content-Type": "application/json"}
        status, answer = call(f"{self.config.console_url}/api/v1/apply", "PUT", headers=headers, body=body)
        assert status in {200, 202}, f"{status} {answer}"

    def answers(self, node: str, text: str) -> bool:
        """Whether the node answers the probe route with `text`."""
        return call(self.node_urls()[node], headers={"Host": "probe.globex.example"}) == (200, text)

    def everywhere(self, text: str, seconds: float = PATIENCE_S) -> list[str]:
        """Nodes that do not answer with `text` in time: none when all is well."""
        deadline = time.monotonic() + seconds

        def never(name: str) -> bool:
            return not until(lambda: self.answers(name, text), deadline - time.monotonic())

        return [name for name in self.node_urls() if never(name)]

    def pids(self, *words: str) -> list[int]:
        """Processes of this demo whose command line has all the words, oldest first."""
        return [pid for pid in sorted(processes(self.config)) if all(word in command_line(pid) for word in words)]

    def kill(self, *words: str) -> list[int]:
        """SIGKILL to every process of this demo whose command line has all the words."""
        found = self.pids(*words)
        assert found, f"no process has {words}"
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return found

    @contextmanager
    def watched_traffic(self, *nodes: str) -> Iterator[list[str]]:
        """Requests to each named node, one per 20 ms; the list fills with those that failed."""
        failed: list[str] = []
        done = threading.Event()

        def watch(name: str, url: str) -> None:
            while not done.wait(0.02):
                status, text = call(f"{url}/robots.txt", headers={"Host": "api.globex.example"})
                if status != 200:
                    failed.append(f"{name}: {status} {text[:100]}")

        threads = [threading.Thread(target=watch, args=(name, self.node_urls()[name])) for name in nodes]
        for thread in threads:
            thread.start()
        try:
            yield failed
        finally:
            done.set()
            for thread in threads:
                thread.join()


def command_line(pid: int) -> str:
    """The arguments of a process, blanks between them; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@contextmanager
def running_demo(**settings: str) -> Iterator[RunningDemo]:
    """A demo that is up, with these settings of the product; ended with all its processes afterwards."""
    with tempfile.TemporaryDirectory(prefix="spillway-") as directory:
        demo = RunningDemo(free_config(Path(directory)), settings)
        try:
            demo.start()
            yield demo
        finally:
            stop(demo.config)
            if demo.process is not None:
                demo.process.communicate(timeout=PATIENCE_S)
