"""CHECK, a small pytest plugin that cuts the suite into the parts that tests.both_databases runs, and deals them out.

`--part waiting` keeps the tests beside real processes, which spend their time waiting, `--part computing` all others.
`--database-only` keeps those that touch the database, for the second engine; tests marked `any_database` ask what no
engine can change, such as who may call which URL, and are left out there.
"""

from __future__ import annotations

from pathlib import PurePath

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

FIXTURES = frozenset({"db", "transactional_db", "django_db_setup", "live_server"})
# Folders of tests that start processes and wait for them, and those of their modules that take longest, which begin.
WAITING = frozenset({"e2e", "conformance"})
LONGEST = (
    "test_closed_loop",
    "test_browser_pages",
    "test_demo_up",
    "test_first_customer",
    "test_sign_in_passkeys",
    "test_rollout_live",
    "test_capacity_brakes",
    "test_capacity_looks",
    "test_api_fuzz",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--part", choices=("waiting", "computing"), help="only this part of the suite")
    parser.addoption("--database-only", action="store_true", help="only tests that touch Django's database")


class Dealing(LoadScopeScheduling):
    """A module of waiting tests stays in one worker, where what it starts is started once; others go one by one."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return module if _is_waiting(PurePath(module)) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Dealing:
    """How tests come to workers."""
    config.option.loadscopereorder = False  # many tests are not long tests
    return Dealing(config, log)


def _is_waiting(module: PurePath) -> bool:
    return not WAITING.isdisjoint(module.parts)


def _touches_the_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("any_database") is not None:
        return False
    if item.get_closest_marker("django_db") is not None:
        return True
    return not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _belongs(item: pytest.Item) -> bool:
    part = item.config.getoption("--part")
    if part is not None and _is_waiting(item.path.relative_to(item.config.rootpath)) != (part == "waiting"):
        return False
    return not item.config.getoption("--database-only") or _touches_the_database(item)


def _turn(item: pytest.Item) -> int:
    return LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs elsewhere; else the order stays as it is, at random."""
    kept = sorted((item for item in items if _belongs(item)), key=_turn)
    if left_out := [item for item in items if not _belongs(item)]:
        config.hook.pytest_deselected(items=left_out)
    items[:] = kept
