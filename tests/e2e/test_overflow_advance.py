"""A busy node with much room counts many requests at once: what its peers hear, and that the limit stays exact."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apps.compiler.model.shared import WhenFull
from apps.compiler.targets.haproxy.overflow.advance import BUSY, COUNTS, MUCH
from tests.e2e.overflow_env import POOL, OverflowEnv, RegionSetup, rate, regions, served, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]  # nodes learn from each other for some ten seconds first

FEW, _, MANY = COUNTS
FROM = BUSY * FEW
# Two nodes have much room when they begin to count sixteen at once.
MOST = 2 * MUCH * FEW + FROM + 200
HOME, DRAINED = f"{MOST}|1000000||backend", "0|0|0|backend"
# A node that is as busy as that, and much room for 256 at once.
BUSIER = BUSY * MANY
WIDE = f"{BUSIER + 2 * MUCH * MANY + 1000}|1000000||backend"
SETUP = RegionSetup(rate(1000), nodes=2)


@pytest.fixture(scope="module")
def shared() -> Iterator[OverflowEnv]:
    """Two nodes with one limit, and no region next door: what is over is refused.

    In the first seconds peers teach each other everything, and what a node counts meanwhile may get lost (ADR 0011).
    """
    with regions(SETUP, when_full=WhenFull.REFUSE) as env:
        env.wait_learned()
        yield env


@pytest.fixture
def pair(shared: OverflowEnv) -> OverflowEnv:
    """The shared environment as after its start."""
    shared.put_back()
    shared.set_limit(1, HOME, where=[0])
    return shared


def counted(env: OverflowEnv, number: int, seen_by: int) -> int:
    """What a node of the first region believes that another, or it itself, has admitted; both from 1."""
    return env.nodes[0][seen_by - 1].admitted().get(f"{POOL}/node-{number}", 0)


def count(env: OverflowEnv, number: int, admitted: int) -> None:
    """As if that node had just admitted so many; the other one knows."""
    env.nodes[0][number - 1].command(f"set table st_limits key {POOL}/node-{number} data.gpc0_rate {admitted}")
    for each in (1, 2):
        wait_until(lambda each=each: counted(env, number, seen_by=each) == admitted, f"node {each} knows")


def test_a_busy_node_with_much_room_counts_sixteen_requests_at_once(pair: OverflowEnv) -> None:
    first, _ = pair.nodes[0]
    served(first, FROM + 1, 10_000)
    wait_until(lambda: counted(pair, 1, seen_by=2) == FROM + FEW, "the peer was told of all sixteen")
    served(first, FEW - 1, 10_000)
    assert counted(pair, 1, seen_by=1) == FROM + FEW
    served(first, 1, 10_000)
    assert counted(pair, 1, seen_by=1) == FROM + 2 * FEW


def test_what_was_counted_in_advance_is_used_and_the_limit_is_exact(pair: OverflowEnv) -> None:
    first, second = pair.nodes[0]
    assert served(first, FROM + 4, 10_000) == {"rgn-1": FROM + 4}
    wait_until(lambda: counted(pair, 1, seen_by=2) == FROM + FEW, "the peer was told of twelve that are still to come")
    count(pair, 2, MOST - FROM - FEW - 100)
    assert served(second, 120, 10_000) == {"rgn-1": 100, "status 503": 20}
    wait_until(lambda: counted(pair, 2, seen_by=1) == MOST - FROM - FEW, "the peer was told")
    assert served(first, 20, 10_000) == {"rgn-1": 12, "status 503": 8}


def test_near_its_limit_a_node_counts_each_request_by_itself(pair: OverflowEnv) -> None:
    count(pair, 1, MOST - 100)
    assert served(pair.nodes[0][0], 120, 10_000) == {"rgn-1": 100, "status 503": 20}


def test_who_does_not_end_what_was_counted_in_advance_admits_too_many() -> None:
    with regions(SETUP, when_full=WhenFull.REFUSE, without="http-request sc-set-gpt0(2) sc_get_gpt0(2)") as env:
        env.set_limit(1, HOME, where=[0])
        served(env.nodes[0][0], FROM + 4, 10_000)
        env.set_limit(1, f"{FROM}|1000000||backend", where=[0])
        assert served(env.nodes[0][0], 20, 10_000) == {"rgn-1": 20}


def test_a_busier_node_with_more_room_counts_256_requests_at_once(pair: OverflowEnv) -> None:
    first, _ = pair.nodes[0]
    pair.set_limit(1, WIDE, where=[0])
    count(pair, 1, BUSIER)
    served(first, MANY, 10_000)
    assert counted(pair, 1, seen_by=1) == BUSIER + MANY
    served(first, 1, 10_000)
    assert counted(pair, 1, seen_by=1) == BUSIER + 2 * MANY


def test_a_drained_region_and_one_without_servers_keep_nothing_that_was_counted(pair: OverflowEnv) -> None:
    first, _ = pair.nodes[0]
    served(first, FROM + 4, 10_000)
    pair.set_limit(1, DRAINED, where=[0])
    assert served(first, 3, 10_000) == {"status 503": 3}
    pair.set_limit(1, HOME, where=[0])
    first.command(f"set server {POOL}/srv-1 state maint")
    assert served(first, 3, 10_000) == {"status 503": 3}
    first.command(f"set server {POOL}/srv-1 state ready")
    assert served(first, 3, 10_000) == {"rgn-1": 3}
    assert counted(pair, 1, seen_by=1) == FROM + FEW


def test_who_does_not_ask_whether_the_region_is_drained_keeps_what_was_counted() -> None:
    with regions(SETUP, when_full=WhenFull.REFUSE, without=" ! { var(txn.limit_1) -m beg 0|0|0| }\n") as env:
        first, _ = env.nodes[0]
        env.set_limit(1, HOME, where=[0])
        served(first, FROM + 4, 10_000)
        env.set_limit(1, DRAINED, where=[0])
        assert served(first, 3, 10_000) == {"rgn-1": 3}
