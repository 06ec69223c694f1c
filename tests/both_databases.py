"""CHECK, the whole suite: every test on SQLite, then those that touch the database again on a private PostgreSQL.

Started by `make test` as `python -m tests.both_databases`; arguments go to pytest. Both PostgreSQL and Redis are
instances of our own in a temporary directory, on Unix sockets or free ports, and end with the run.

Tests beside real processes mostly wait, so they run at the same time as those that compute, which give way to them;
those whose clocks are real go first of all (`tests.database_plugin` says which).
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.database_plugin import BESIDE_PROCESSES
from tests.ports import spare_port

ROOT = Path(__file__).resolve().parents[1]
WORKERS = os.environ.get("SPILLWAY_TEST_WORKERS", "2")
_under_way: list[subprocess.Popen[bytes]] = []
_ended = threading.Event()


def as_user() -> tuple[list[str], str]:
    """How to run PostgreSQL, which refuses root: a command prefix and the user's name."""
    if os.geteuid() != 0:
        return [], pwd.getpwuid(os.geteuid()).pw_name
    return ["runuser", "-u", "postgres", "--"], "postgres"


def postgresql_bin() -> Path:
    """The newest PostgreSQL of the machine."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not versions:
        raise SystemExit("PostgreSQL is missing: apt install postgresql")
    return versions[-1].parent


@contextmanager
def postgresql(directory: Path, *, durable: bool = False) -> Iterator[str]:
    """A private cluster on a Unix socket in `directory`; yields its database URL. `durable` syncs every commit."""
    prefix, user = as_user()
    shutil.chown(directory, user)
    tools, data = postgresql_bin(), directory / "data"
    initdb = [*prefix, str(tools / "initdb"), "-D", str(data), "-U", "spillway", "-A", "trust", "-E", "UTF8"]
    subprocess.run([*initdb, "--no-sync", "--locale=C.UTF-8"], check=True, stdout=subprocess.DEVNULL, cwd=directory)
    options = f"-c listen_addresses= -c unix_socket_directories={directory} -c max_connections=200"
    if not durable:  # it is not what is tested, and costs minutes on a slow disk
        options += " -c fsync=off -c full_page_writes=off -c synchronous_commit=off"
    control = [*prefix, str(tools / "pg_ctl"), "-D", str(data), "-l", str(directory / "log"), "-w"]
    subprocess.run([*control, "-o", options, "start"], check=True, stdout=subprocess.DEVNULL, cwd=directory)
    try:
        yield f"postgresql://spillway@{str(directory).replace('/', '%2F')}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, stdout=subprocess.DEVNULL, cwd=directory)


@contextmanager
def redis(directory: Path) -> Iterator[str]:
    """A private Redis on a free port; yields its URL."""
    port = spare_port()
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory), "--save", ""]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for_port(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(10)


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"Redis does not answer on port {port}.")


@dataclass(frozen=True, slots=True)
class Part:
    """One run of pytest: what it is about, its own arguments and environment, and what it is started through."""

    title: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    through: tuple[str, ...] = ()

    def run(self, out: IO[str] | None = None) -> int:
        """Exit code of pytest; 5 (nothing collected) counts as success. Without `out` it prints as it goes."""
        if _ended.is_set():
            return 1
        print(f"== {self.title}", file=out, flush=True)
        pytest = (sys.executable, "-m", "pytest", "-q", "--dist", "loadscope", "-p", "tests.database_plugin")
        command = [*self.through, *pytest, *self.arguments, *sys.argv[1:]]
        environment = os.environ | self.environment
        begun = time.monotonic()
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
        _under_way.append(process)
        code = process.wait()
        print(f"== {self.title}: {time.monotonic() - begun:.0f} s", file=out, flush=True)
        return 0 if code == 5 else code


def run_all(parts: Iterable[Part], out: IO[str] | None = None) -> int:
    """One after the other, the later ones also when an earlier one failed; the greatest exit code."""
    return max([part.run(out) for part in parts])


def _end_all() -> None:
    """End what is still running when this run is ended early: what comes after a part is not begun."""
    _ended.set()
    for process in _under_way:
        if process.poll() is None:
            process.terminate()


def _folders(*, beside_processes: bool) -> list[str]:
    """What a part reads, so that no worker reads what is not its own; where paths were asked for, those are enough."""
    if any(Path(word.partition("::")[0]).exists() for word in sys.argv[1:]):
        return []
    folders = sorted(path.parent for path in (ROOT / "tests").glob("*/__init__.py"))
    return [f"tests/{folder.name}" for folder in folders if (folder.name in BESIDE_PROCESSES) == beside_processes]


def giving_way(niceness: int) -> tuple[str, ...]:
    """Words before a command that is to give way to others, also where it runs as root: Chromium would raise itself."""
    may_not_raise = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice") if os.geteuid() == 0 else ()
    return (*may_not_raise, "nice", "-n", str(niceness)) if niceness else ()


@dataclass(frozen=True, slots=True)
class Lane:
    """A part of the suite that runs beside the others: how many tests at a time, and how far it gives way."""

    part: str
    title: str
    workers: str
    niceness: int
    options: tuple[str, ...] = ()

    def parts(self, sqlite: Mapping[str, str], postgresql: Mapping[str, str]) -> list[Part]:
        """All of it on SQLite, then what touches the database on PostgreSQL."""
        folders = _folders(beside_processes=self.part != "computing")
        arguments = ("--part", self.part, "-n", self.workers, *self.options, *folders)
        through = giving_way(self.niceness)
        return [
            Part(f"{self.title}, on SQLite", arguments, sqlite, through),
            Part(
                f"{self.title} and touches the database, on PostgreSQL",
                ("--database-only", *arguments),
                postgresql,
                through,
            ),
        ]


# Who gives way to all others needs longer, and nobody waits for it.
COMPUTING = Lane("computing", "what computes", WORKERS, 19, ("--timeout", "1800"))
BESIDE = (Lane("patient", "what waits for processes", WORKERS, 15), Lane("prompt", "what watches the clock", "1", 0))


def main() -> int:
    """All lanes at the same time, in each SQLite first, PostgreSQL second; the first is shown as it goes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and so would all below
    started = time.monotonic()
    with ExitStack() as stack:
        directories = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spillway-"))) for _ in range(2)]
        both = {"SPILLWAY_REDIS_URL": stack.enter_context(redis(directories[0]))}
        engines = both, both | {"SPILLWAY_DATABASE_URL": stack.enter_context(postgresql(directories[1]))}
        pool = stack.enter_context(ThreadPoolExecutor(len(BESIDE)))
        shown_later = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in BESIDE]
        beside = [
            pool.submit(run_all, lane.parts(*engines), out) for lane, out in zip(BESIDE, shown_later, strict=True)
        ]
        stack.callback(_end_all)
        codes = [run_all(COMPUTING.parts(*engines)), *(lane.result() for lane in beside)]
        for out in shown_later:
            out.seek(0)
            shutil.copyfileobj(out, sys.stdout)
    print(f"== {time.monotonic() - started:.0f} s in total", flush=True)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
