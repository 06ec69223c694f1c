"""Nodes that share limits: lost peers and sums that differ are said, once they last."""

from __future__ import annotations

from apps.observe.evaluate.conditions import Reason
from apps.observe.evaluate.counting import TICKS, CountFacts, Counting
from apps.observe.evaluate.limit_use import LimitFacts, evaluate_limits

NAMES = {1: "us-1", 2: "us-2"}
POOLS = {1: "acme/shop"}


def reasons(counting: Counting, *facts: CountFacts) -> dict[int, Reason]:
    """One tick."""
    by_node = {fact.node_id: fact for fact in facts}
    return {verdict.object_id: verdict.reason for verdict in counting.evaluate(by_node, NAMES, POOLS)}


def facts(node: int, admitted: int, *, heard: bool = True) -> CountFacts:
    """What one of two nodes says of node 1."""
    return CountFacts(node, {f"node-{3 - node}": heard}, {"pool-1/node-1": admitted})


def test_nodes_that_agree_are_well() -> None:
    assert reasons(Counting(), facts(1, 100), facts(2, 95)) == {1: Reason.PEERS_AGREE, 2: Reason.PEERS_AGREE}


def test_a_lost_peer_is_said_once_it_lasts() -> None:
    counting = Counting()
    for _ in range(TICKS - 1):
        assert reasons(counting, facts(1, 100, heard=False))[1] is Reason.PEERS_AGREE
    assert reasons(counting, facts(1, 100, heard=False))[1] is Reason.PEER_LOST
    assert reasons(counting, facts(1, 100))[1] is Reason.PEERS_AGREE


def test_a_node_that_believes_something_else_of_another_is_said() -> None:
    counting = Counting()
    for _ in range(TICKS):
        found = reasons(counting, facts(1, 100), facts(2, 40))
    assert found == {1: Reason.PEERS_AGREE, 2: Reason.SUMS_DIFFER}


def test_a_node_without_peers_has_nothing_to_agree_about() -> None:
    assert reasons(Counting(), CountFacts(1, {}, {})) == {}


def limit(last_hour: list[float], last_day: list[float]) -> Reason:
    """The verdict on a limit of 10."""
    return evaluate_limits(1, [LimitFacts("us", 10.0, last_hour, last_day)]).reason


def test_a_limit_that_is_always_reached_is_said() -> None:
    assert limit([10.0] * 58 + [2.0] * 2, [10.0] * 60) is Reason.LIMIT_ALWAYS_REACHED
    assert limit([10.0] * 30 + [2.0] * 30, [10.0] * 60) is Reason.LIMIT_FITS


def test_a_limit_that_is_never_near_is_said_after_a_day_only() -> None:
    assert limit([1.0] * 60, [1.0] * 1400) is Reason.LIMIT_NEVER_REACHED
    assert limit([1.0] * 60, [1.0] * 600) is Reason.LIMIT_FITS
    assert limit([1.0] * 60, [1.0] * 1400 + [3.0]) is Reason.LIMIT_FITS
