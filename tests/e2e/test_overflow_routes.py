"""Routes that say where their overflow may go, in real HAProxy: what is closed to a route gets nothing of it."""

from __future__ import annotations

import pytest

from apps.compiler.model.policy import Overflow, Rules
from apps.compiler.policies import rule_set
from apps.compiler.targets.haproxy.overflow.limits import ORDER_MAP, SPREAD_MAP
from tests.e2e.overflow_env import POOL, RegionSetup, rate, regions, served

pytestmark = pytest.mark.e2e

LAST = Rules(overflow=Overflow("listed", ("rgn-3",)))
KEY = f"{POOL}/{rule_set(LAST).id}"


def test_overflow_goes_only_where_a_route_says_and_nowhere_where_it_forbids_it() -> None:
    """The first region has room for fifteen at once; its route lets overflow go to the third region alone."""
    with regions(RegionSetup(rate(10)), RegionSetup(rate(1000)), RegionSetup(rate(1000)), rules=LAST) as env:
        home = env.nodes[0][0]
        assert served(home, 40, 10_000) == {"rgn-1": 15, "rgn-3": 25}
        env.forget()
        home.command(f"del map {ORDER_MAP} {KEY}")  # the safeguard: without it the pool's own order holds
        assert served(home, 40, 10_000) == {"rgn-1": 15, "rgn-2": 25}
        env.forget()
        home.command(f"add map {ORDER_MAP} {KEY} spread|")
        home.command(f"set map {SPREAD_MAP} {KEY} 1000|rgn-1")
        assert served(home, 40, 10_000) == {"rgn-1": 40}
        state = home.command(f"show servers state {POOL}").splitlines()
        [server] = [row.split()[3] for row in state if "127.0.0.1" in row]
        home.command(f"set server {POOL}/{server} state maint")
        assert served(home, 5, 10_000) == {"status 503": 5}  # down, and still nobody else is asked
        home.command(f"del map {ORDER_MAP} {KEY}")
        home.command(f"del map {SPREAD_MAP} {KEY}")
        assert set(served(home, 5, 10_000)) <= {"rgn-2", "rgn-3"}
