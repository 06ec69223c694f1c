"""The other processes: a program that outlives the agent, found again by its pid and its command line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from apps.agent.errors import Unavailable
from apps.agent.process.proxy import LARGEST_LOG, alive

STOP_SECONDS = 3.0


class Daemon:
    """One program of its own session; `marker` is a word of its command line that no other program has."""

    def __init__(self, name: str, run_dir: Path, log: Path, marker: str) -> None:
        self.name = name
        self.log = log
        self._pid_file = run_dir / f"{name}.pid"
        self._marker = marker.encode()
        self._child: subprocess.Popen[bytes] | None = None

    def pid(self) -> int:
        """Its process id; 0 when it does not live."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        try:
            pid = int(self._pid_file.read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return 0
        return pid if self._marker in words and alive(pid) else 0

    def start(self, command: list[str], cwd: Path) -> None:
        """Start it; what it says goes into its log. Raises Unavailable."""
        too_long = self.log.exists() and self.log.stat().st_size > LARGEST_LOG
        with self.log.open("wb" if too_long else "ab") as log:
            try:
                self._child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")},
                    cwd=str(cwd),
                    start_new_session=True,
                )
            except OSError as error:
                raise Unavailable(f"{self.name} could not be started: {error}.", "switch") from error
        self._pid_file.write_text(f"{self._child.pid}\n")

    def tell(self, number: int) -> None:
        """Send it a signal, if it lives."""
        pid = self.pid()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self) -> None:
        """Ask it to end, wait, and end its whole session when it does not."""
        pid = self.pid()
        if not pid:
            return
        self.tell(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and self.pid():
            time.sleep(0.02)
        if self.pid():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        self._pid_file.unlink(missing_ok=True)
