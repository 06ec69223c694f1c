"""CHECK, a small pytest plugin that cuts the suite into the parts that tests.both_databases runs.

`--part waiting` keeps the tests beside real processes, which spend their time waiting, `--part computing` all others.
`--database-only` keeps those that touch the database, for the second engine; tests marked `any_database` ask what no
engine can change, such as who may call which URL, and are left out there.
"""

from __future__ import annotations

import pytest

FIXTURES = frozenset({"db", "transactional_db", "django_db_setup", "live_server"})
# Folders of tests that start processes and wait for them.
WAITING = frozenset({"e2e", "conformance"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--part", choices=("waiting", "computing"), help="only this part of the suite")
    parser.addoption("--database-only", action="store_true", help="only tests that touch Django's database")


def _is_waiting(item: pytest.Item) -> bool:
    return not WAITING.isdisjoint(item.path.relative_to(item.config.rootpath).parts)


def _touches_the_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("any_database") is not None:
        return False
    if item.get_closest_marker("django_db") is not None:
        return True
    return not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _belongs(item: pytest.Item) -> bool:
    part = item.config.getoption("--part")
    if part is not None and _is_waiting(item) != (part == "waiting"):
        return False
    return not item.config.getoption("--database-only") or _touches_the_database(item)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs elsewhere; what a module of waiting tests starts is started in one worker only."""
    for item in items:
        if _is_waiting(item) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    kept = [item for item in items if _belongs(item)]
    if left_out := [item for item in items if not _belongs(item)]:
        config.hook.pytest_deselected(items=left_out)
    items[:] = kept
