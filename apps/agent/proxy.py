"""PUSH, the process: starts, reloads, adopts and ends the one HAProxy of this node."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from apps.agent.errors import Refusal
from apps.agent.settings import Settings
from apps.agent.sockets import ask

PROCESS = re.compile(r"^(\d+)\s+(master|worker)\s+(\d+)(?:\s+\[failed: (\d+)\])?")
MASTER_SECONDS = 5.0
LARGEST_LOG = 8 * 1024 * 1024


@dataclass(frozen=True)
class Processes:
    """What the master says about itself: its pid, current workers, workers that are leaving, failed reloads."""

    master: int
    current: tuple[int, ...]
    old: tuple[int, ...]
    failed: int


class Proxy:
    """haproxy in master-worker mode; found again by its master socket when the agent was away."""

    def __init__(self, settings: Settings, live: Path) -> None:
        self._settings = settings
        self._live = live
        self._child: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._lock = threading.Lock()
        self.log_path = settings.state_dir / "haproxy.log"

    @property
    def master_socket(self) -> Path:
        """Socket of the master's command line."""
        return self._settings.run_dir / "master.sock"

    @property
    def worker_socket(self) -> Path:
        """Runtime API of the current worker."""
        return self._settings.run_dir / "worker.sock"

    def version(self) -> str:
        """`2.6.12`, as the binary says; empty when it cannot be started."""
        try:
            text = subprocess.run(
                [self._settings.haproxy, "-v"], capture_output=True, text=True, timeout=5, check=False
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            return ""
        found = re.search(r"version (\d+\.\d+[\w.]*)", text)
        return found.group(1) if found else ""

    def processes(self) -> Processes | None:
        """The living processes, or None when no master answers."""
        self._reap()
        try:
            text = ask(self.master_socket, "show proc", half_close=True)
        except OSError:
            return None
        return read_processes(text)

    def worker(self, command: str, timeout: float = 3.0) -> str:
        """Ask the current worker's Runtime API; raises OSError."""
        return ask(self.worker_socket, command, timeout)

    def worker_env(self, name: str) -> str:
        """One environment variable of the current worker; empty when nobody answers."""
        try:
            text = self.worker(f"show env {name}")
        except OSError:
            return ""
        return text.strip().partition("=")[2]

    def start(self) -> None:
        """Start haproxy from the live path; it outlives this agent."""
        self.trim_log()
        log = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        command = [self._settings.haproxy, "-W", "-S", f"{self.master_socket},mode,600"]
        for name in ("node.cfg", "haproxy.cfg"):
            command += ["-f", str(self._live / name)]
        try:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")},
                cwd=str(self._settings.state_dir),
                start_new_session=True,
            )
            self._ended = False
        except OSError as error:
            raise Refusal(f"haproxy could not be started: {error}.", "switch") from error
        finally:
            os.close(log)

    def reload_or_start(self) -> None:
        """Ask the master to read the live path again, or start one when none lives."""
        self.trim_log()
        deadline = time.monotonic() + MASTER_SECONDS
        while True:
            try:
                ask(self.master_socket, "reload", half_close=True)
            except OSError:
                # A master that is just reading its configuration does not answer yet; a second one must not be started.
                if self._lives() and time.monotonic() < deadline:
                    time.sleep(0.02)
                    continue
                self.start()
            return

    def stop(self) -> None:
        """End haproxy and wait until it is gone; connections are cut."""
        found = self._processes_in_the_end()
        if found is None:
            if self._child is not None:  # it never answered: all that it started is in its own session
                os.killpg(self._child.pid, signal.SIGKILL)
                self._child.wait()
            return
        pids = [found.master, *found.current, *found.old]
        _signal(found.master, signal.SIGTERM)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and any(map(alive, pids)):
            self._reap()
            time.sleep(0.02)
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        self._reap()

    def _processes_in_the_end(self) -> Processes | None:
        """The processes; waits for a master of ours that is just reading its configuration and does not answer yet."""
        deadline = time.monotonic() + MASTER_SECONDS
        found = self.processes()
        while found is None and self._lives() and time.monotonic() < deadline:
            time.sleep(0.02)
            found = self.processes()
        return found

    def running(self) -> bool:
        """Cheap: the master that was started here still lives; asks the socket when it was adopted."""
        self._reap()
        return self._child is not None or self.processes() is not None

    def ended(self) -> bool:
        """True when the master that was started here last has ended; one that was adopted is no child of ours."""
        self._reap()
        return self._ended

    def _lives(self) -> bool:
        self._reap()
        return self._child is not None

    def log_end(self) -> int:
        """Size of haproxy's own log now."""
        return self.log_path.stat().st_size if self.log_path.exists() else 0

    def log_since(self, offset: int) -> str:
        """haproxy's own words since `offset`."""
        try:
            with self.log_path.open("rb") as stream:
                stream.seek(offset)
                return stream.read(65536).decode("utf-8", "replace")
        except OSError:
            return ""

    def trim_log(self) -> None:
        """Empty a log that has grown too large; haproxy appends, so it goes on at the beginning."""
        if self.log_end() > LARGEST_LOG:
            os.truncate(self.log_path, 0)

    def _reap(self) -> None:
        with self._lock:
            if self._child is not None and self._child.poll() is not None:
                self._child, self._ended = None, True


def read_processes(text: str) -> Processes | None:
    """Read the answer to `show proc`."""
    master, failed = 0, 0
    current: list[int] = []
    old: list[int] = []
    into = current
    for line in text.splitlines():
        if line.startswith("# old workers"):
            into = old
        elif line.startswith("# workers"):
            into = current
        found = PROCESS.match(line)
        if found and found.group(2) == "master":
            master, failed = int(found.group(1)), int(found.group(4) or 0)
        elif found:
            into.append(int(found.group(1)))
    return Processes(master, tuple(current), tuple(old), failed) if master else None


def alive(pid: int) -> bool:
    """True while the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
