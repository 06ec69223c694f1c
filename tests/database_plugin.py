"""CHECK, a small pytest plugin that cuts the suite into the parts that tests.both_databases runs, and deals them out.

`--part prompt` keeps tests beside real processes whose clocks are real, such as traffic, brakes, addresses that move;
`--part patient` those beside real processes that may wait as long as it takes; `--part computing` all others.
`--database-only` keeps those that touch the database, for the second engine; tests marked `any_database` ask what no
engine can change, such as who may call which URL, and are left out there.
"""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

FIXTURES = frozenset({"db", "transactional_db", "django_db_setup", "live_server"})
# Folders of tests that start processes and wait for them.
BESIDE_PROCESSES = frozenset({"e2e", "conformance"})
# Modules there that no slow machine harms, and those that it may; in both what takes longest begins.
PATIENT = (
    "test_stack_aws",
    "test_browser_pages",
    "test_stack_killed",
    "test_stack_machine",
    "test_api_fuzz",
    "test_first_customer",
    "test_sign_in_passkeys",
    "test_same_answers",
    "test_stack_beside_fleets",
    "test_command_line",
    "test_sign_in_openid",
    "test_infra_drivers",
    "test_infra_synthesis",
    "test_stack_without_provider",
    "test_adopting_aws",
    "test_cloud_readers",
    "test_google_adopting",
    "test_google_reader",
    "test_dns_drivers",
    "test_dns_zones",
)
LONGEST = ("test_closed_loop", "test_demo_up", "test_rollout_live", "test_capacity_brakes", "test_capacity_looks")
PARTS = ("computing", "patient", "prompt")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--part", choices=PARTS, help="only this part of the suite")
    parser.addoption("--failures-to", help="a file that lists the tests that failed, one id per line")
    parser.addoption("--database-only", action="store_true", help="only tests that touch Django's database")


class Dealing(LoadScopeScheduling):
    """A module beside processes stays in one worker, where what it starts is started once; others go one by one."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return nodeid if part_of(PurePath(module)) == "computing" else module


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Dealing:
    """How tests come to workers."""
    config.option.loadscopereorder = False  # many tests are not long tests
    return Dealing(config, log)


def part_of(module: PurePath) -> str:
    """The part that a module of tests belongs to; its path begins at the project or above."""
    if BESIDE_PROCESSES.isdisjoint(module.parts):
        return "computing"
    return "patient" if module.stem in PATIENT else "prompt"


def _touches_the_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("any_database") is not None:
        return False
    if item.get_closest_marker("django_db") is not None:
        return True
    return not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _belongs(item: pytest.Item) -> bool:
    part = item.config.getoption("--part")
    if part is not None and part_of(item.path.relative_to(item.config.rootpath)) != part:
        return False
    return not item.config.getoption("--database-only") or _touches_the_database(item)


def _turn(item: pytest.Item) -> int:
    order = PATIENT if item.path.stem in PATIENT else LONGEST
    return order.index(item.path.stem) if item.path.stem in order else len(order)


class Telling:
    """What failed is told at once, not only at the end of a long run, and noted in a file if one was named."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._failed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The test, and the last line of what it says."""
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed:
            self._note(report.nodeid)
        if report.failed and terminal is not None:
            said = report.longreprtext.strip().splitlines() or [""]
            why = next((line for line in said if line.startswith("E ")), said[-1])
            terminal.write_line(f"FAILED {report.nodeid} ({report.when}): {why[:300]}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be read has failed as a whole."""
        if report.failed:
            self._note(report.nodeid)

    def _note(self, nodeid: str) -> None:
        self._failed[nodeid] = None
        if named := self.config.getoption("--failures-to"):
            Path(named).write_text("".join(f"{each}\n" for each in self._failed))


def pytest_configure(config: pytest.Config) -> None:
    """Tell failures where the run is shown."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Telling(config))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs elsewhere; else the order stays as it is, at random."""
    kept = sorted((item for item in items if _belongs(item)), key=_turn)
    if left_out := [item for item in items if not _belongs(item)]:
        config.hook.pytest_deselected(items=left_out)
    items[:] = kept
