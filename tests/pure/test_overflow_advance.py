"""Counting in advance as rules: as many are counted as are used, and only where there is something to save."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Region, RegionNode
from apps.compiler.model.shared import Limit, LimitKind
from apps.compiler.targets.haproxy.overflow.advance import COUNTS, MUCH, STEP
from tests.pure.compiler_fixtures import front, pool, route, snapshot

RATE = Limit(LimitKind.RATE, 20_000)


def config(nodes: int, *limits: Limit) -> str:
    """The file of a node of a region with so many, and a pool for each limit."""
    reach = tuple(RegionNode(f"node-{n}", f"n{n}", "192.0.2.1", 9700, 9800, 9900) for n in range(1, nodes + 1))
    pools = tuple(replace(pool(number), limit=limit) for number, limit in enumerate(limits, 1))
    given = snapshot(front(route(1)), pools=pools, region_id="rgn-1", overflow_key="5ec2e7" * 8)
    compiled = compile_snapshot(replace(given, regions=(Region("rgn-1", "us", reach),)))
    return compiled.output.files["haproxy.cfg"].decode()


@pytest.mark.parametrize("count", COUNTS)
def test_as_many_are_used_as_are_counted(count: int) -> None:
    found = config(3, RATE)
    smaller = max((each for each in COUNTS if each < count), default=0)  # they are counted before
    rules = [line for line in found.splitlines() if f"var(txn.ahead) -m str {count} }} once" in line]
    assert smaller + sum(line.count(" once") for line in rules) == count
    (left,) = re.findall(rf"sc-set-gpt0\(2\) int\((\d+)\) if {{ var\(txn.ahead\) -m str {count} }}", found)
    assert STEP * int(left).bit_length() == count  # it is halved after every sixteenth, until nothing is left


def test_much_room_grows_with_the_nodes() -> None:
    for nodes in (2, 5):
        assert f"var(txn.used_1),add({MUCH * COUNTS[0] * nodes}),sub(txn.long_1)" in config(nodes, RATE)


def test_who_has_no_peers_or_tells_what_is_in_flight_counts_each_request_by_itself() -> None:
    assert "st_advance" in config(2, RATE)
    assert "st_advance" not in config(1, RATE)
    assert "st_advance" not in config(2, RATE, Limit(LimitKind.CONNECTIONS, 100))
