"""CHECK, the whole suite: every test on SQLite, then those that touch the database again on a private PostgreSQL.

Started by `make test` as `python -m tests.both_databases`; arguments go to pytest. Both PostgreSQL and Redis are
instances of our own in a temporary directory, on Unix sockets or free ports, and end with the run.

Tests beside real processes mostly wait, so they run at the same time as those that compute, which give way to them;
those whose clocks are real go first of all (`tests.database_plugin` says which). In such company a test may fail that
is only slow, so what failed is asked once more when nothing else runs, and that answer counts.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO

from tests.database_plugin import BESIDE_PROCESSES
from tests.servers import postgresql, redis

ROOT = Path(__file__).resolve().parents[1]
WORKERS = os.environ.get("SPILLWAY_TEST_WORKERS", "2")
# So many tests may have been slow; where more failed something is broken, and nothing is asked again.
MAY_BE_SLOW = 12
# Images for containers often say that modules are read anew by each process: here very many are started.
KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
SOME_FAILED, NONE_FOUND = 1, 5
_under_way: list[subprocess.Popen[bytes]] = []
_ended = threading.Event()


@dataclass(frozen=True, slots=True)
class Part:
    """One run of pytest: what it is about, its words and environment, where failures are noted, how far it gives way.

    Niceness is that of its processes, and of its session as a whole.
    """

    title: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    failures: Path
    niceness: int = 0

    def run(self, out: IO[str] | None = None) -> int:
        """Exit code of pytest; that nothing was collected counts as success. Without `out` it prints as it goes."""
        if _ended.is_set():
            return SOME_FAILED
        print(f"== {self.title}", file=out, flush=True)
        pytest = (sys.executable, "-m", "pytest", "-q", "--dist", "loadscope", "-p", "tests.database_plugin")
        command = [*giving_way(self.niceness), *pytest, "--failures-to", str(self.failures), *self.arguments]
        begun = time.monotonic()
        code = _wait_for(command, os.environ | {**KEEP_BYTECODE, **self.environment}, self.niceness, out)
        print(f"== {self.title}: {time.monotonic() - begun:.0f} s", file=out, flush=True)
        return 0 if code == NONE_FOUND else code

    def failed(self) -> list[str]:
        """The ids of the tests that failed in the run."""
        return self.failures.read_text().split("\n")[:-1] if self.failures.exists() else []

    def alone(self) -> Part:
        """The same for the tests that failed, one at a time."""
        failures = self.failures.with_suffix(".again")
        title = f"{self.title}: {len(self.failed())} failed beside others and are asked again alone"
        return replace(self, title=title, arguments=("-n", "0", *self.failed()), failures=failures, niceness=0)


def _wait_for(command: Sequence[str], environment: Mapping[str, str], niceness: int, out: IO[str] | None) -> int:
    """Run it in a session of its own: a kernel that groups processes by session weighs the groups before all else."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
    )
    _under_way.append(process)
    with suppress(OSError):  # no such groups here, or no right to say it
        Path(f"/proc/{process.pid}/autogroup").write_text(str(niceness))
    return process.wait()


def run_all(parts: Iterable[Part], out: IO[str] | None = None) -> list[int]:
    """One after the other, the later ones also when an earlier one failed; their exit codes."""
    return [part.run(out) for part in parts]


def answer(part: Part, code: int) -> int:
    """The exit code that counts for a part that ran beside others: what failed may only have been slow."""
    if code != SOME_FAILED or not 0 < len(part.failed()) <= MAY_BE_SLOW:
        return code
    return part.alone().run()


def _end_all() -> None:
    """End what is still running when this run is ended early: what comes after a part is not begun."""
    _ended.set()
    for process in _under_way:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)


def _folders(*, beside_processes: bool) -> list[str]:
    """What a part reads, so that no worker reads what is not its own; where paths were asked for, those are enough."""
    if any(Path(word.partition("::")[0]).exists() for word in sys.argv[1:]):
        return []
    folders = sorted(path.parent for path in (ROOT / "tests").glob("*/__init__.py"))
    return [f"tests/{folder.name}" for folder in folders if (folder.name in BESIDE_PROCESSES) == beside_processes]


def giving_way(niceness: int) -> tuple[str, ...]:
    """Words before a command that is to give way to others, also where it runs as root: Chromium would raise itself."""
    may_not_raise = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice") if os.geteuid() == 0 else ()
    return (*may_not_raise, "nice", "-n", str(niceness)) if niceness > 0 else ()


@dataclass(frozen=True, slots=True)
class Lane:
    """A part of the suite that runs beside the others: how many tests at a time, and how far it gives way."""

    part: str
    title: str
    workers: str
    niceness: int
    options: tuple[str, ...] = ()

    def parts(self, folder: Path, sqlite: Mapping[str, str], postgresql: Mapping[str, str]) -> list[Part]:
        """All of it on SQLite, then what touches the database on PostgreSQL; failures are noted in `folder`."""
        folders = _folders(beside_processes=self.part != "computing")
        arguments = ("--part", self.part, "-n", self.workers, *self.options, *folders, *sys.argv[1:])
        return [
            Part(f"{self.title}, on SQLite", arguments, sqlite, folder / f"{self.part}-sqlite", self.niceness),
            Part(
                f"{self.title} and touches the database, on PostgreSQL",
                ("--database-only", *arguments),
                postgresql,
                folder / f"{self.part}-postgresql",
                self.niceness,
            ),
        ]


# Each step weighs about ten times the one before: more would starve what computes until its own waits run out.
COMPUTING = Lane("computing", "what computes", WORKERS, 12, ("--timeout", "1800"))
BESIDE = (Lane("patient", "what waits for processes", WORKERS, 5), Lane("prompt", "what watches the clock", "1", -5))


def main() -> int:
    """All lanes at the same time, in each SQLite first, PostgreSQL second; the first is shown as it goes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and so would all below
    started = time.monotonic()
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spillway-"))) for _ in range(3)]
        both = {"SPILLWAY_REDIS_URL": stack.enter_context(redis(folders[0]))}
        engines = both, both | {"SPILLWAY_DATABASE_URL": stack.enter_context(postgresql(folders[1]))}
        pool = stack.enter_context(ThreadPoolExecutor(len(BESIDE)))
        shown_later = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in BESIDE]
        computing, *others = (lane.parts(folders[2], *engines) for lane in (COMPUTING, *BESIDE))
        beside = [pool.submit(run_all, parts, out) for parts, out in zip(others, shown_later, strict=True)]
        stack.callback(_end_all)
        codes = run_all(computing) + [code for lane in beside for code in lane.result()]
        for out in shown_later:
            out.seek(0)
            shutil.copyfileobj(out, sys.stdout)
        codes = [answer(part, code) for part, code in zip((*computing, *chain(*others)), codes, strict=True)]
    print(f"== {time.monotonic() - started:.0f} s in total", flush=True)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
