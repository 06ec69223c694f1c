"""A real agent process with real haproxy, in a short directory of its own."""

from __future__ import annotations

import datetime as dt
import http.client
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.agent.process.proxy import Processes, read_processes
from apps.agent.process.sockets import ask
from apps.drivers.proxy.contract import NodeState, NodeTarget, ProxyDriver, Unreachable
from apps.drivers.proxy.registry import open_driver
from apps.fleet import pki
from tests.ports import spare_port

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 120.0  # of a busy machine


def wait_until(true: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait for a condition; fails with `what` when it does not come."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


def short_folder() -> Path:
    """A directory with a short path that the haproxy user may pass, as a node's has to be."""
    folder = Path(tempfile.mkdtemp(prefix="sw-"))
    folder.chmod(0o711)
    return folder


class RealAgent:
    """An agent's command line, its process and the driver that speaks to it."""

    def __init__(self, folder: Path, scheme: str, *flags: str, program: list[str] | None = None) -> None:
        self.folder = folder
        self.state_dir = folder / "n"
        self.port = spare_port()
        self.program = program or [sys.executable, "-m", "apps.agent"]
        self._flags = ["--reload-gap", "0", "--drift-every", "0.3", *flags]
        self.process: subprocess.Popen[bytes] | None = None
        self.target = self._unix() if scheme == "unix" else self._https()
        self.driver: ProxyDriver = open_driver(self.target)

    def _unix(self) -> NodeTarget:
        self._flags += ["--unix", str(self.folder / "a.sock")]
        return NodeTarget("us-1", f"unix://{self.folder}/a.sock")

    def _https(self) -> NodeTarget:
        now = dt.datetime.now(dt.UTC)
        authority = pki.make_authority(now)
        pairs = {"ca": authority, "us-1": pki.issue(authority, "us-1", client=False, now=now)}
        pairs["client"] = pki.issue(authority, "control-plane", client=True, now=now)
        for name, pair in pairs.items():
            (self.folder / f"{name}.pem").write_bytes(pair.certificate)
            (self.folder / f"{name}-key.pem").write_bytes(pair.key)
        port = spare_port()
        self._flags += ["--listen", f"127.0.0.1:{port}", "--ca", str(self.folder / "ca.pem")]
        self._flags += ["--certificate", f"{self.folder}/us-1.pem", "--key", f"{self.folder}/us-1-key.pem"]
        paths = (str(self.folder / name) for name in ("ca.pem", "client.pem", "client-key.pem"))
        return NodeTarget("us-1", f"https://127.0.0.1:{port}", *paths)

    def command(self, *more: str) -> list[str]:
        """The agent's command line."""
        return [*self.program, "--name", "us-1", "--state-dir", str(self.state_dir), *more]

    def start(self) -> None:
        """Start the agent and wait until it answers."""
        with (self.folder / "agent.log").open("ab") as log:
            self.process = subprocess.Popen(self.command(*self._flags), cwd=ROOT, stdout=log, stderr=log)
        wait_until(self.answers, f"the agent answers: {(self.folder / 'agent.log').read_text()}")

    def answers(self) -> bool:
        """True when the agent's state can be read."""
        try:
            self.driver.read_state()
        except Unreachable:
            return False
        return True

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """End agent and haproxy, in whatever state they are."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.process is None or self.process.returncode != 0:  # else it has ended its haproxy itself
            subprocess.run(self.command("--stop"), cwd=ROOT, check=False)

    def get(self, host: str = "a.example", path: str = "/") -> tuple[int, str]:
        """One request through the node: status and body; status 0 when nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE / 4)
        try:
            connection.request("GET", path, headers={"host": host})
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def processes(self) -> Processes | None:
        """HAProxy's master and workers; None when no master answers."""
        try:
            return read_processes(ask(self.state_dir / "run" / "master.sock", "show proc", half_close=True))
        except OSError:
            return None

    def state(self) -> NodeState:
        """What the agent says."""
        return self.driver.read_state()


@contextmanager
def running_agent(scheme: str = "unix", *flags: str, program: list[str] | None = None) -> Iterator[RealAgent]:
    """A started agent (`program` instead of the module); everything is ended and removed afterwards."""
    folder = short_folder()
    agent = RealAgent(folder, scheme, *flags, program=program)
    try:
        agent.start()
        yield agent
    finally:
        agent.stop()
        shutil.rmtree(folder, ignore_errors=True)
