"""The demo's supervisor: starts supervisord, finds what runs, and ends all of it, grandchildren included."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.demo.config import PYTHON, ROOT, DemoConfig
from deploy.demo.topology import DemoTopology

# Inherited by every process that the demo starts, whoever started it in between: how they are found again.
MARK = "SPILLWAY_DEMO"
STOP_SECONDS = 40


class CannotStart(Exception):
    """A sentence that says why, and what to do."""


def processes(config: DemoConfig) -> list[int]:
    """Ids of the live processes of this demo: the mark in their environment, or a HAProxy that runs from its files."""
    mark, files = f"{MARK}={config.demo}".encode(), f"{config.run}/".encode()
    return [pid for pid in _own_pids() if mark in _environment(pid) or _is_haproxy_of(pid, files)]


def haproxies_of(config: DemoConfig, node: str) -> list[int]:
    """Ids of one node's HAProxy processes, of this copy alone."""
    return [pid for pid in _own_pids() if _is_haproxy_of(pid, f"{config.run / node}/".encode())]


def _is_haproxy_of(pid: int, files: bytes) -> bool:
    """Agents give HAProxy an environment without anything of theirs, so it is known by its arguments."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return arguments[0].endswith(b"haproxy") and any(word.startswith(files) for word in arguments)


def _own_pids() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            yield int(entry.name)


def _environment(pid: int) -> list[bytes]:
    try:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return []
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it ended meanwhile, or belongs to somebody else


def supervisor_pid(config: DemoConfig) -> int | None:
    """Process id of the supervisord of this demo, None when it does not run."""
    try:
        pid = int(config.supervisor_pid.read_text())
    except (OSError, ValueError):
        return None
    return pid if f"{MARK}={config.demo}".encode() in _environment(pid) else None


@contextmanager
def only_one(config: DemoConfig) -> Iterator[None]:
    """Hold the lock of this var directory; raises CannotStart when the demo runs or is being started."""
    with (config.demo / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(f"Spillway already runs in {config.var}. Stop it with Ctrl-C where it runs.") from None
        if (pid := supervisor_pid(config)) is not None:
            raise CannotStart(f"Spillway already runs at {config.console_url} (process {pid}). `make down` stops it.")
        if left := processes(config):
            raise CannotStart(f"An earlier start left processes behind ({left}). `make down` ends them.")
        yield


def check_tools() -> None:
    """Raise CannotStart unless the two programs that are not Python are there."""
    for tool, package in (("haproxy", "haproxy"), ("redis-server", "redis-server")):
        if shutil.which(tool) is None:
            raise CannotStart(f"{tool} is missing. `make packages` installs it, or: apt install {package}")


def check_ports(topology: DemoTopology) -> None:
    """Raise CannotStart naming every port that is taken, and for what it was wanted."""
    taken = [f"{port} ({what})" for port, what in sorted(topology.ports().items()) if not _is_free(port)]
    if taken:
        raise CannotStart(
            f"These ports of 127.0.0.1 are in use: {', '.join(taken)}. Choose others by SPILLWAY_PORT, "
            "SPILLWAY_HTTP_PORT, SPILLWAY_BACKEND_PORT, SPILLWAY_AGENT_PORT, SPILLWAY_REDIS_PORT, "
            "SPILLWAY_CLIENT_PORT, SPILLWAY_OVERFLOW_PORT."
        )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def start(config: DemoConfig) -> subprocess.Popen[bytes]:
    """Run supervisord in a session of its own, so that Ctrl-C reaches it through us alone, once."""
    command = [str(Path(PYTHON).parent / "supervisord"), "-c", str(config.supervisor_conf)]
    environment = os.environ | {MARK: str(config.demo), "PYTHONUNBUFFERED": "1"}
    with (config.demo / "logs" / "supervisord.out").open("wb") as output:
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip


def stop(config: DemoConfig) -> bool:
    """End the demo: politely through supervisord, then whatever is left. True when something ran."""
    pid = supervisor_pid(config)
    found = pid is not None
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        _wait_until_gone(config, STOP_SECONDS, only=pid)
    for sign, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        for left in processes(config):
            found = True
            _signal(left, sign)
        _wait_until_gone(config, seconds)
    return found


def _signal(pid: int, sign: signal.Signals) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return


def _wait_until_gone(config: DemoConfig, seconds: float, only: int | None = None) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        alive = processes(config)
        if not alive or (only is not None and only not in alive):
            return
        time.sleep(0.1)
