"""Runs the suite: `python -m tests.run_suite quick|test|all|attacks|haproxy`; further arguments go to pytest.

`quick` asks what needs neither a process nor a database and is not marked `slow`. `test` asks everything but what is
marked `exhaustive`, on PostgreSQL, and what is marked `both_engines` on SQLite as well. `all` asks everything, on both
engines. What computes shares one pool of workers; what needs processes runs afterwards, file by file. PostgreSQL and
Redis are private instances in a temporary folder. What each test cost is kept in `var/suite/`, and judged at the end
(`tests.suite_report`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.processor import slowness
from tests.servers import postgresql, redis
from tests.suite_report import Machine, Run, report
from tests.tables import make_file, make_tables

ROOT = Path(__file__).resolve().parents[1]
LEDGERS = ROOT / "var" / "suite"
CORES = len(os.sched_getaffinity(0))
WORKERS = os.environ.get("SPILLWAY_TEST_WORKERS") or str(CORES)
# Tests beside processes wait much of their time: two more files than there are cores keep those busy, as long as those
# that drive Chromium are spread (tests/conftest.py).
FILES_AT_ONCE = os.environ.get("SPILLWAY_TEST_WORKERS") or str(CORES + 2)
# In random order: by its number of tests, the file that takes longest, which has one, would begin last.
WHOLE_FILES = ("loadfile", "--no-loadscope-reorder")
PURE = ("tests/pure", "tests/golden", "tests/architecture")
COMPUTING = (*PURE, "tests/apps", "tests/interfaces", "tests/hostile", "tests/permissions")
# What is asked of each release of HAProxy: bundles, reloads, peers, overflow, limits, precedence.
OF_HAPROXY = (
    "tests/conformance/test_golden_bundles.py",
    "tests/conformance/test_proxy_drivers.py",
    *(f"tests/e2e/test_agent_{each}.py" for each in ("reloads", "peers", "overflow", "safety", "drift", "versions")),
    *(f"tests/e2e/test_overflow_{each}.py" for each in ("one_node", "traffic", "outage")),
    "tests/e2e/test_precedence_traffic.py",
)
ATTACKS = ("requests", "poison", "machines")
PROCESSES = ("tests/architecture", "tests/conformance", "tests/e2e")
# Images for containers often say that modules are read anew by each process: here very many are started.
KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
SUCCEEDED, NONE_FOUND = 0, 5


@dataclass(frozen=True, slots=True)
class Phase:
    """One run of pytest: which tests, how many at a time, dealt out how, and on which engine (its environment)."""

    name: str
    folders: Sequence[str]
    marks: str
    workers: str = WORKERS
    dealt: Sequence[str] = ("worksteal",)
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, suite: str, extra: Sequence[str]) -> Run:
        """Run it and say how it ended; that nothing was found counts as success."""
        print(f"== {self.name}", flush=True)
        ledger = LEDGERS / f"{suite}-{self.name.replace(' ', '-')}.json"
        ledger.unlink(missing_ok=True)
        folders = () if any(Path(word.partition("::")[0]).exists() for word in extra) else self.folders
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.ledger", "--ledger", str(ledger)]
        command += ["-n", self.workers, "--dist", *self.dealt, "-m", self.marks, *folders, *extra]
        begun = time.monotonic()
        code = _run(command, os.environ | {**KEEP_BYTECODE, **self.environment})
        code = SUCCEEDED if code == NONE_FOUND else code
        return Run(self.name, code, time.monotonic() - begun, ledger, max(int(self.workers) / CORES, 1.0))


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Its exit code; where this run is ended early, it is asked to end and to clean up as well."""
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
    try:
        return process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise


@dataclass(frozen=True, slots=True)
class Engines:
    """The environments that say which database a phase uses."""

    sqlite: Mapping[str, str]
    postgresql: Mapping[str, str]


def quick() -> list[Phase]:
    """What one runs while typing."""
    return [Phase("quick", PURE, "not processes and not database and not exhaustive and not slow")]


def changed(on: Engines) -> list[Phase]:
    """What each change has to pass."""
    rest = "not processes and not exhaustive"
    return [
        Phase("computing", COMPUTING, rest, environment=on.postgresql),
        Phase("both engines", of_both_engines(), f"both_engines and {rest}", environment=on.sqlite),
        # Whole files: what a module has started is started once.
        Phase("processes", PROCESSES, "processes and not exhaustive", FILES_AT_ONCE, WHOLE_FILES, on.postgresql),
    ]


def of_both_engines() -> list[str]:
    """Files that have such tests: reading all others takes a worker longer than asking these."""
    files = sorted(path for folder in COMPUTING for path in (ROOT / folder).rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if "both_engines" in path.read_text()]


def everything(on: Engines) -> list[Phase]:
    """What a tag has to pass."""
    return [
        Phase("computing", COMPUTING, "not processes", environment=on.postgresql),
        Phase("computing on SQLite", COMPUTING, "database and not processes", environment=on.sqlite),
        Phase("processes", PROCESSES, "processes", "0", environment=on.postgresql),
        Phase("processes on SQLite", PROCESSES, "processes and database", "0", environment=on.sqlite),
        *of_haproxys(on),
    ]


def of_haproxys(on: Engines) -> list[Phase]:
    """The same questions to each release of HAProxy that HAPROXY_BINARIES names: it is first in PATH."""
    programs = map(Path, filter(None, os.environ.get("HAPROXY_BINARIES", "").split(":")))
    search = os.environ.get("PATH", "")
    return [
        Phase(f"HAProxy {path.parent.name}", OF_HAPROXY, "processes", "0", environment={**on.postgresql, **first})
        for path in programs
        for first in [{"PATH": f"{path.parent}:{search}", "HAPROXY_BINARIES": ""}]
    ]


def attacks(on: Engines) -> list[Phase]:
    """What was once done to an installation, done again: one line each, at the end."""
    files = [f"tests/e2e/test_attacks_{each}.py" for each in ATTACKS]
    return [Phase("attacks", files, "processes", "0", environment=on.postgresql)]


SUITES = {"test": changed, "all": everything, "attacks": attacks, "haproxy": of_haproxys}


@contextmanager
def engines() -> Iterator[Engines]:
    """A private Redis, a private PostgreSQL, and for each engine a database that holds every migration."""
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spillway-"))) for _ in range(3)]
        both = {"SPILLWAY_REDIS_URL": stack.enter_context(redis(folders[0]))}
        cluster = stack.enter_context(postgresql(folders[1], small=True))
        file, name = folders[2] / "template.sqlite3", "template_spillway"
        with psycopg.connect(cluster, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        with ThreadPoolExecutor() as pool:
            made = pool.submit(make_file, file)
            make_tables(f"{cluster.rpartition('/')[0]}/{name}", folders[2])
            made.result()
        yield Engines(
            both | {"SPILLWAY_DATABASE_URL": f"sqlite:///{folders[2]}/none", "SPILLWAY_TEST_TEMPLATE": str(file)},
            both | {"SPILLWAY_DATABASE_URL": cluster, "SPILLWAY_TEST_TEMPLATE": name},
        )


def main() -> int:
    """Run the phases of a suite one after the other, the later ones also when an earlier one failed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and so would all below
    if not sys.argv[1:] or sys.argv[1] not in ("quick", *SUITES):
        raise SystemExit(f"usage: python -m tests.run_suite quick|{'|'.join(SUITES)} [what pytest takes ...]")
    suite, *extra = sys.argv[1:]
    slow = slowness(CORES)
    begun, busy = time.monotonic(), _busy_beside_us()
    with ExitStack() as stack:
        phases = quick() if suite == "quick" else SUITES[suite](stack.enter_context(engines()))
        runs = [phase.run(suite, extra) for phase in phases]
    seconds = time.monotonic() - begun
    others = (_busy_beside_us() - busy) / (seconds * (os.cpu_count() or 1))
    return report(suite, runs, seconds, Machine(max(others, 0.0), slow))


def _busy_beside_us() -> float:
    """Processor seconds since the start of the machine that went neither to idling nor to our ended children.

    proc(5), stat: user, nice, system, idle, iowait, irq, softirq, steal; other guests of the same host count as well.
    """
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    ours = os.times()
    return busy - sum(ours[:4])


if __name__ == "__main__":
    sys.exit(main())
