"""People who follow docs/operate/install.md reach a first route that answers, and leave nothing behind when they go."""

from __future__ import annotations

import pytest

from tests.e2e import ways_compose
from tests.e2e.booted import SUITES
from tests.e2e.ways_in import debian

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("release", SUITES)
def test_packages_install_serve_upgrade_and_leave_nothing_on_debian(release: str) -> None:
    assert list(debian(release).steps)[-1] == "purge both"


@pytest.mark.skipif(bool(ways_compose.missing()), reason=ways_compose.missing() or "-")
def test_compose_starts_a_console_and_a_node_that_serves() -> None:
    assert list(ways_compose.compose().steps)[-1] == "a first route answers"
