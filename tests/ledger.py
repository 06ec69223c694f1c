"""A pytest plugin that notes what each test costs, and what a worker costs before its first one.

`--ledger FILE` writes it as JSON: wall and processor seconds of set-up, call and tear-down, and how long the test only
waited for a processor, so that a test can be judged on a machine that does other things as well.
"""

from __future__ import annotations

import functools
import json
import operator
import os
from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime, monotonic  # by name: tests put a clock of their own in their place
from typing import Any

import pytest

NOTED = "ledger"


@dataclass(slots=True)
class Cost:
    """Seconds: on the clock, of this process's processor time, of that of ended children, spent waiting for one."""

    wall: float = 0.0
    cpu: float = 0.0
    children_cpu: float = 0.0
    waited: float = 0.0

    @property
    def own(self) -> float:
        """Seconds on the clock less those in which the test could have gone on, had a processor been free."""
        return self.wall - self.waited

    @property
    def seconds(self) -> tuple[float, float, float, float]:
        """All four; `astuple` copies deeply, which takes longer than many a test."""
        return self.wall, self.cpu, self.children_cpu, self.waited

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(operator.add, self.seconds, other.seconds))

    def __sub__(self, before: Cost) -> Cost:
        return Cost(*map(operator.sub, self.seconds, before.seconds))


def reading() -> Cost:
    """All that this process has spent until now; `wall` counts from a moment of no meaning."""
    times = os.times()
    return Cost(monotonic(), times.user + times.system, times.children_user + times.children_system, _waited())


def _waited() -> float:
    """Seconds that the main thread stood in the run queue (proc(5), schedstat); zero where nobody counts them."""
    try:
        return int(os.pread(_schedstat(), 100, 0).split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


@functools.cache
def _schedstat() -> int:
    return os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC)


@dataclass(slots=True)
class Entry:
    """What one test cost, and why it may be slow."""

    setup: Cost = field(default_factory=Cost)
    call: Cost = field(default_factory=Cost)
    teardown: Cost = field(default_factory=Cost)
    reason: str = ""

    @property
    def total(self) -> Cost:
        """All three phases."""
        return self.setup + self.call + self.teardown


class Meter:
    """Runs in each worker: attaches the cost of a phase to its report."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.last = reading()

    def pytest_collection_finish(self) -> None:
        """What came before the first test: the interpreter, Django, reading all modules."""
        self.last = reading()
        started = asdict(self.last) | {"wall": _age()}
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[NOTED] = started
        else:
            self.config.stash[_STARTS] = [started]

    def pytest_runtest_logstart(self) -> None:
        """What happened between two tests is nobody's."""
        self.last = reading()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """The phase that has just ended."""
        report = yield
        now = reading()
        report.user_properties = [*report.user_properties, (NOTED, [*(now - self.last).seconds, _reason(item)])]
        report.keywords = {}  # nobody reads them, and each would be sent with each of three reports of a test
        self.last = now
        return report


def _reason(item: pytest.Item) -> str:
    """Why the test may be slow: what stands beside it, or that it waits for processes."""
    if slow := item.get_closest_marker("slow"):
        return str(slow.kwargs["reason"])
    return "waits for processes" if "e2e" in item.path.parts else ""


_STARTS = pytest.StashKey[list[dict[str, float]]]()


def _age() -> float:
    """Seconds since this process was started (proc(5), stat: field 22, in ticks since the machine was)."""
    try:
        begun = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return 0.0
    return clock_gettime(CLOCK_BOOTTIME) - begun / os.sysconf("SC_CLK_TCK")


class Ledger:
    """Runs where the results come together: one entry per test, one start per worker."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self.config, self.path = config, path
        self.entries: dict[str, Entry] = {}
        config.stash[_STARTS] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test."""
        noted = dict(report.user_properties).get(NOTED)
        if isinstance(noted, list):
            entry = self.entries.setdefault(report.nodeid, Entry())
            *seconds, entry.reason = noted
            setattr(entry, report.when, Cost(*seconds))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended."""
        if started := getattr(node, "workeroutput", {}).get(NOTED):
            self.config.stash[_STARTS].append(started)

    def pytest_sessionfinish(self) -> None:
        """Write it down."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        tests = {name: asdict(entry) for name, entry in self.entries.items()}
        self.path.write_text(json.dumps({"starts": self.config.stash[_STARTS], "tests": tests}))


def read(path: Path) -> tuple[list[Cost], dict[str, Entry]]:
    """The starts of the workers and the entries by test; nothing where no test ran."""
    if not path.exists():
        return [], {}
    kept = json.loads(path.read_text())
    entries = {
        name: Entry(Cost(**entry["setup"]), Cost(**entry["call"]), Cost(**entry["teardown"]), entry["reason"])
        for name, entry in kept["tests"].items()
    }
    return [Cost(**start) for start in kept["starts"]], entries


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--ledger", type=Path, help="a file that says what each test cost, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Measure in the process that runs tests, write where results are gathered."""
    path = config.getoption("--ledger")
    if path is None:
        return
    of_worker = hasattr(config, "workerinput")
    if of_worker or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Meter(config))
    if not of_worker:
        config.pluginmanager.register(Ledger(config, path))
