"""The process: starts, reloads, adopts and ends the one HAProxy of this node."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from apps.agent.check.sandbox import failure_from
from apps.agent.errors import Unavailable
from apps.agent.log.pipe import Pipe
from apps.agent.process.sockets import ask
from apps.agent.release.releases import stamp_of
from apps.agent.settings import Settings

PROCESS = re.compile(r"^(\d+)\s+(master|worker)\s+(\d+)(?:\s+\[failed: (\d+)\])?")
TLS_LIBRARY = re.compile(r"^Running on (?:OpenSSL|SSL library) version : (.+)$", re.MULTILINE)
MASTER_SECONDS = 5.0
MASTER_ANSWERS_S = (0.5, 0.5, 0.1, 0.1, 0.1)  # at each look at the processes
LOOK_AGAIN_S = 0.02
STOP_SECONDS = 3.0
LARGEST_LOG = 8 * 1024 * 1024
OLDEST_HTTP3 = (2, 8)  # before, HAProxy called QUIC an experiment


@dataclass(frozen=True)
class Processes:
    """What the master says about itself: its pid, current workers, workers that are leaving, failed reloads."""

    master: int
    current: tuple[int, ...]
    old: tuple[int, ...]
    failed: int


@dataclass(frozen=True)
class Build:
    """What the binary says of itself: `2.6.12`, whether it speaks HTTP/3, its features (`QUIC`) and its library."""

    version: str = ""
    http3: bool = False
    features: tuple[str, ...] = ()
    tls_library: str = ""


class Proxy:
    """haproxy in master-worker mode; found again by its master socket when the agent was away."""

    def __init__(self, settings: Settings, live: Path) -> None:
        self._settings = settings
        self._live = live
        self._child: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._build = Build()
        self._stamp: tuple[int, int, int] | None = None
        self._lock = threading.Lock()
        self.log_path = settings.state_dir / "haproxy.log"
        self.pipe = Pipe(settings.run_dir / "requests")
        self.between = Pipe(settings.run_dir / "requests.taken")

    @property
    def master_socket(self) -> Path:
        """Socket of the master's command line."""
        return self._settings.run_dir / "master.sock"

    @property
    def _marker(self) -> str:
        """The word of the command line by which a haproxy of this state directory is known."""
        return f"{self.master_socket},mode,600"

    @property
    def worker_socket(self) -> Path:
        """Runtime API of the current worker."""
        return self._settings.run_dir / "worker.sock"

    def build(self) -> Build:
        """What the binary says that lies there now; without a version when it cannot be started."""
        try:
            stamp = stamp_of(Path(self._settings.haproxy))
            if stamp != self._stamp:
                self._build, self._stamp = _build_of(self._settings.haproxy), stamp
        except (OSError, subprocess.TimeoutExpired):
            self._stamp = None
        return self._build

    def processes(self, timeout: float = 3.0) -> Processes | None:
        """The living processes, or None when no master answers."""
        self._reap()
        try:
            text = ask(self.master_socket, "show proc", timeout, half_close=True)
        except OSError:
            return None
        return read_processes(text)

    def processes_now(self) -> Processes | None:
        """The living processes, without waiting for a master that loads. Who sees none looks again: one worker may just
        have followed another, and a master that begins anew has no command line for a moment.
        """
        found = None
        for timeout in MASTER_ANSWERS_S:
            found = self.processes(timeout) or self.living()
            if found and found.current:
                break
            time.sleep(LOOK_AGAIN_S)
        return found

    def living(self) -> Processes | None:
        """As the kernel knows them: a master that reads its configuration answers nobody, and its workers serve."""
        pids = self._pids()
        masters = [pid for pid in pids if _leads_session(pid)]
        workers = tuple(pid for pid in pids if pid not in masters)
        return Processes(masters[0], workers, (), 0) if masters else None

    def worker(self, command: str, timeout: float = 3.0, *, most: int = 0) -> str:
        """Ask the current worker's Runtime API; raises OSError. `most` bytes or some more are read of long answers."""
        return ask(self.worker_socket, command, timeout, most=most)

    def leaving_worker(self, pid: int, command: str) -> str:
        """Ask a worker that is leaving, by way of the master; raises OSError, ProcessLookupError where it has left."""
        asked = ";".join(f"@!{pid} {each}" for each in command.split(";"))
        answer = ask(self.master_socket, asked, 3.0, half_close=True)
        if answer.startswith("Can't find"):
            raise ProcessLookupError(answer.strip())
        return answer

    def worker_env(self, name: str) -> str:
        """One environment variable of the current worker; empty when nobody answers."""
        try:
            text = self.worker(f"show env {name}")
        except OSError:
            return ""
        return text.strip().partition("=")[2]

    def start(self) -> None:
        """Start haproxy from the live path; it outlives this agent. Raises Unavailable, also while one lives."""
        if found := self.masters():
            message = f"HAProxy {found[0]} of this state directory runs but does not answer. Use --stop to end it."
            raise Unavailable(message, "switch")
        self.trim_log()
        log = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        lines, taken = self.pipe.open(), self.between.open()
        command = [self._settings.haproxy, "-W", "-S", self._marker]
        for name in ("node.cfg", "haproxy.cfg"):
            command += ["-f", str(self._live / name)]
        try:
            self._child = subprocess.Popen(
                command,
                stdin=taken,  # never read: what is in it outlives the agent
                stdout=lines,
                stderr=log,
                env={"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")},
                cwd=str(self._settings.state_dir),
                start_new_session=True,
            )
            self._ended = False
        except OSError as error:
            raise Unavailable(f"haproxy could not be started: {error}.", "switch") from error
        finally:
            for descriptor in (log, lines, taken):
                os.close(descriptor)

    def reload_or_start(self, release: Path, seconds: float) -> None:
        """Let the master read the live path again, within so many seconds, or start one when none lives.

        Since 2.7 it answers when it has loaded; before, at once and with nothing. Raises Refusal, Unavailable.
        """
        self.trim_log()
        deadline = time.monotonic() + seconds
        while True:
            try:
                answer = ask(self.master_socket, "reload", max(0.1, deadline - time.monotonic()), half_close=True)
            except OSError as error:
                # A master that is just reading its configuration does not answer; a second one must not be started.
                if not self.masters():
                    self.start()
                    return
                if time.monotonic() >= deadline:
                    raise Unavailable(
                        f"HAProxy did not load within {seconds:.0f} seconds ({error}).", "confirm"
                    ) from error
                time.sleep(0.02)
                continue
            if answer.startswith("Success=0"):
                raise failure_from(answer, "confirm", release)
            return

    def masters(self) -> list[int]:
        """Every living master of this state directory, also one that does not answer or that another agent started."""
        return [pid for pid in self._pids() if _leads_session(pid)]

    def _pids(self) -> list[int]:
        """Every process that was started with this state directory's master socket."""
        marker = self._marker.encode()
        found = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
        return [pid for pid in found if marker in _words_of(pid)]

    def end_others(self, master: int) -> list[int]:
        """End every master of this state directory but the one that answers: each takes its part of the connections."""
        others = [pid for pid in self.masters() if pid != master]
        for pid in others:
            _signal(pid, signal.SIGTERM)
        return others

    def stop(self) -> None:
        """End every haproxy of this state directory and wait until it is gone; connections are cut."""
        pids = self._pids()
        for pid in self.masters():
            _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and any(map(alive, pids)):
            self._reap()
            time.sleep(0.02)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and (left := self._pids()):
            for pid in left:
                _signal(pid, signal.SIGKILL)
            self._reap()
            time.sleep(0.02)
        self._reap()

    def processes_soon(self) -> Processes | None:
        """The processes; waits a little for a master that lives and is just reading its configuration."""
        deadline = time.monotonic() + MASTER_SECONDS
        found = self.processes()
        while found is None and time.monotonic() < deadline and self.masters():
            time.sleep(0.05)
            found = self.processes()
        return found

    def running(self) -> bool:
        """Cheap where the master was started here; one that was adopted is asked, and looked for when it is silent."""
        self._reap()
        return self._child is not None or self.processes() is not None or bool(self.masters())

    def ended(self) -> bool:
        """True when the master that was started here last has ended; one that was adopted is no child of ours."""
        self._reap()
        return self._ended

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


def _build_of(binary: str) -> Build:
    text = subprocess.run([binary, "-vv"], capture_output=True, text=True, timeout=5, check=False).stdout
    found = re.search(r"version ((\d+)\.(\d+)[\w.]*)", text)
    if found is None:
        return Build()
    listed = text.partition("Feature list :")[2].partition("\n")[0].split()
    features = tuple(sorted(each[1:] for each in listed if each.startswith("+")))
    http3 = "QUIC" in features and (int(found[2]), int(found[3])) >= OLDEST_HTTP3
    library = TLS_LIBRARY.search(text)
    return Build(found[1], http3, features, library[1] if library else "")


def _words_of(pid: int) -> list[bytes]:
    """The command line of a process; empty when it is gone, or a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _leads_session(pid: int) -> bool:
    """True for what was started by an agent itself: its workers belong to its session."""
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False


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
