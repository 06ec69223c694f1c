"""An account's share of a node, divided among its pools."""

from __future__ import annotations

import resource

from apps.agent.release.nodecfg import connections
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import AccountShare, Region, RegionNode
from apps.compiler.model.shared import WhenFull
from apps.compiler.targets.haproxy.overflow.ceilings import CEILINGS_MAP
from tests.pure.compiler_fixtures import front, pool, snapshot

NODE = RegionNode("node-1", "one", "127.0.0.1", 9700, 9800, 9900)


def entries(*shares: AccountShare) -> dict[str, str]:
    """The map of a fleet with two pools of acme, of which one has a queue, one of globex, and one of nobody's."""
    pools = (
        pool(1),
        pool(2, when_full=WhenFull.QUEUE),
        pool(3, account="globex"),
        pool(4, account="platform"),
    )
    regions = (Region("rgn-1", "here", (NODE,)),)
    case = snapshot(front(), pools=pools, region_id="rgn-1", regions=regions, overflow_key="7" * 64, shares=shares)
    text = compile_snapshot(case).output.files.get(CEILINGS_MAP, b"").decode()
    return dict(line.split(" ", 1) for line in text.splitlines())


def test_half_of_a_share_is_divided_among_pools_and_queues_and_half_is_for_all() -> None:
    found = entries(AccountShare("acc-1", "acme", 30, 5000), AccountShare("acc-2", "globex", 25, 1))
    assert found == {
        "pool-1": "acc-1|500|1500|833|2501",
        "pool-2": "acc-1|500|1500|833|2501",
        "queue-2": "acc-1|500|1500|833|2501",
        "pool-3": "acc-2|1250|1250|0|1",
    }


def test_all_of_a_node_is_no_ceiling_for_any_pool() -> None:
    found = entries(AccountShare("acc-1", "acme", 100, 600))
    assert set(found.values()) == {"acc-1|100000|100000|100|300"}


def test_without_a_share_nothing_is_bounded() -> None:
    assert entries() == {}


def test_a_node_can_have_half_as_many_connections_as_open_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert connections() == min(most // 2, 10_000_000)
