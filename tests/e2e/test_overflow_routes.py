"""Routes that say where their overflow may go, in real HAProxy: what is closed to a route gets nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apps.compiler.model.policy import Overflow, Rules
from apps.compiler.policies import rule_set
from apps.compiler.targets.haproxy.overflow.limits import ORDER_MAP, SPREAD_MAP
from tests.e2e.overflow_env import POOL, OverflowEnv, RegionSetup, rate, regions, served

pytestmark = pytest.mark.e2e

LAST = Rules(overflow=Overflow("listed", ("rgn-3",)))
KEY = f"{POOL}/{rule_set(LAST).id}"


@pytest.fixture(scope="module")
def three_listed() -> Iterator[OverflowEnv]:
    """The first region has room for fifteen at once; its route lets overflow go to the third region alone."""
    with regions(RegionSetup(rate(10)), RegionSetup(rate(1000)), RegionSetup(rate(1000)), rules=LAST) as env:
        yield env


@pytest.fixture
def listed(three_listed: OverflowEnv) -> OverflowEnv:
    """The same as it was started."""
    three_listed.put_back()
    return three_listed


def test_overflow_of_a_route_goes_only_where_the_route_says(listed: OverflowEnv) -> None:
    home = listed.nodes[0][0]
    assert served(home, 40, 10_000) == {"rgn-1": 15, "rgn-3": 25}
    listed.forget()
    home.command(f"del map {ORDER_MAP} {KEY}")  # the safeguard: without it the pool's own order holds
    assert served(home, 40, 10_000) == {"rgn-1": 15, "rgn-2": 25}
    home.command(f"add map {ORDER_MAP} {KEY} spread|rgn-3|")


def test_a_route_whose_overflow_is_forbidden_never_leaves_its_region(listed: OverflowEnv) -> None:
    home = listed.nodes[0][0]
    home.command(f"set map {ORDER_MAP} {KEY} spread|")
    home.command(f"set map {SPREAD_MAP} {KEY} 1000|rgn-1")
    assert served(home, 40, 10_000) == {"rgn-1": 40}
    [server] = [row.split()[3] for row in home.command(f"show servers state {POOL}").splitlines() if "127.0.0.1" in row]
    home.command(f"set server {POOL}/{server} state maint")
    assert served(home, 5, 10_000) == {"status 503": 5}  # down, and still nobody else is asked
    home.command(f"del map {ORDER_MAP} {KEY}")
    home.command(f"del map {SPREAD_MAP} {KEY}")
    assert set(served(home, 5, 10_000)) <= {"rgn-2", "rgn-3"}
