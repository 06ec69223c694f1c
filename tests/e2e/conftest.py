"""Real processes that a whole session shares: whoever asks first starts them, each test puts right what it needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from pytest_django import DjangoDbBlocker

from apps.compiler.model.shared import WhenFull
from tests.conformance.real_agent import RealAgent, running_agent
from tests.e2e import verdicts
from tests.e2e.overflow_env import OverflowEnv, RegionSetup, rate, regions


def pytest_addoption(parser: pytest.Parser) -> None:
    """For how long what is watched for a time is watched; known where a file of this folder is named."""
    parser.addoption("--names", type=int, default=60, help="that get certificates at once")
    parser.addoption("--minutes", type=float, default=1, help="of tests that watch something for a time")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each attack and fault that was tried."""
    for line in verdicts.LINES:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def agents() -> Iterator[tuple[RealAgent, RealAgent]]:
    """Two agents; they take what they run for good at once, and look for drift seldom, since all others pay for it."""
    flags = ("unix", "--soak", "0.1", "--drift-every", "1")
    with running_agent(*flags) as first, running_agent(*flags) as second:
        yield first, second


@pytest.fixture
def both(agents: tuple[RealAgent, RealAgent]) -> tuple[RealAgent, RealAgent]:
    """The two, and both answer, whomever the last test has stopped; what they run is what it has left."""
    for each in agents:
        if not each.answers():
            each.start()
    return agents


@pytest.fixture
def agent(both: tuple[RealAgent, RealAgent]) -> RealAgent:
    """One of them."""
    return both[0]


@pytest.fixture(scope="session")
def three() -> Iterator[OverflowEnv]:
    """Three regions that refuse when all are full: the first two take 15 requests in ten seconds, the third 30."""
    with regions(
        RegionSetup(rate(10), nodes=2), RegionSetup(rate(10)), RegionSetup(rate(20)), when_full=WhenFull.REFUSE
    ) as env:
        yield env


@pytest.fixture
def fresh(three: OverflowEnv) -> OverflowEnv:
    """The three regions as they were started."""
    three.put_back()
    return three


@pytest.fixture(scope="module")
def lasting_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database for a whole module, whose processes look into it all the time; emptied when they have ended.

    A module that wants it makes it its `db`: by this name pytest-django knows that there has to be one.
    """
    with django_db_blocker.unblock():
        yield
        call_command("flush", verbosity=0, interactive=False)
