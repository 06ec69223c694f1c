"""CHECK, a small pytest plugin: `--database-only` keeps the tests that touch the database, for the second engine.

Those marked `any_database` ask what no engine can change, such as who may call which URL, and are left out.
"""

from __future__ import annotations

import pytest

FIXTURES = frozenset({"db", "transactional_db", "django_db_setup", "live_server"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--database-only", action="store_true", help="only tests that touch Django's database")


def _touches_the_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("any_database") is not None:
        return False
    if item.get_closest_marker("django_db") is not None:
        return True
    return not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not."""
    if not config.getoption("--database-only"):
        return
    kept = [item for item in items if _touches_the_database(item)]
    if left_out := [item for item in items if not _touches_the_database(item)]:
        config.hook.pytest_deselected(items=left_out)
    items[:] = kept
