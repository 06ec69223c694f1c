"""What limits per client cost a request: where there are none, beside routes that have one, and below a limit.

`python -m tests.bench.client_limits_cost [--rounds 80]`: CPU of nodes that are asked by turns, as in `ceilings_cost`.
Each is one of a region of four, whose counts are added up.

* *without*: no route has a policy;
* *headers*: the route that is asked sets a header by a policy, which no limit is part of;
* *beside*: another route of the load balancer has a limit, the one that is asked has the header alone;
* *limited*: it has a limit per second that nobody reaches.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Region, RegionNode
from apps.compiler.model.policy import ClientLimit, HeaderChanges, Rules
from apps.compiler.model.shared import Limit
from apps.compiler.policies import rule_set
from tests.bench.backends import instant_backends
from tests.bench.ceilings_cost import COUNT, asked, cpu_us
from tests.bench.overflow_env import Node, PoolPlan, running_node, snapshot_of
from tests.bench.tables import facts, table
from tests.ports import spare_port

NODES = 4
HEADERS = Rules(request_headers=HeaderChanges(set=(("X-A", "b"),)))
LIMITED = replace(HEADERS, client_limit=ClientLimit(requests=1_000_000))
# The rules of the route that is asked, and of another one.
WAYS: dict[str, tuple[Rules, Rules]] = {
    "without": (Rules(), Rules()),
    "headers": (HEADERS, HEADERS),
    "beside": (HEADERS, LIMITED),
    "limited": (LIMITED, HEADERS),
}


def cost(node: Node) -> float:
    """CPU in µs per request."""
    before = cpu_us(node)
    found = asked(node.port)
    used = cpu_us(node) - before
    assert found[200] >= 0.9 * COUNT, found
    return used / COUNT


def measure(rounds: int, directory: Path) -> dict[str, list[float]]:
    """All ways by turns; the first turn is not counted."""
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    with ExitStack() as stack:
        (port,) = stack.enter_context(instant_backends(directory, ("rgn-1",)))
        nodes = {way: stack.enter_context(_node(way, port, directory / way)) for way in WAYS}
        for turn in range(rounds + 1):
            for way in list(nodes) if turn % 2 else list(nodes)[::-1]:
                found[way].append(cost(nodes[way]))
    return {way: costs[1:] for way, costs in found.items()}


def _node(way: str, port: int, directory: Path) -> AbstractContextManager[Node]:
    """One of four nodes with two routes; the others do not run."""
    reach = [
        RegionNode(f"node-{number}", f"n{number}", "127.0.0.1", spare_port(), spare_port(), spare_port())
        for number in range(1, NODES + 1)
    ]
    plans = [PoolPlan((Limit(),), ((port,),))] * 2
    snapshot = snapshot_of(plans, (Region("rgn-1", "region 1", tuple(reach)),), 0)
    (front,) = snapshot.load_balancers
    sets = [rule_set(rules) for rules in WAYS[way]]
    held = [each.id if each.rules != Rules() else "" for each in sets]
    routes = tuple(replace(route, rule_set=own) for route, own in zip(front.routes, held, strict=True))
    front = replace(front, routes=routes, rule_sets=tuple({each.id: each for each in sets}.values()))
    bundle = compile_snapshot(replace(snapshot, load_balancers=(front,))).output
    return running_node(bundle, Node(reach[0].id, "rgn-1", directory, spare_port(), reach[0]))


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=80)
    given = parser.parse_args()
    print(facts(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given.rounds, Path(folder))
    calm = {way: statistics.mean(sorted(costs)[: max(1, len(costs) // 4)]) for way, costs in found.items()}
    rows = [
        [way, f"{calm[way]:.1f}", f"{calm[way] / calm['without']:.2f}", f"{statistics.median(costs):.1f}"]
        for way, costs in found.items()
    ]
    print(table(("route", "node's CPU µs/request", "ratio", "median"), rows))
    print(facts())
    return 0


if __name__ == "__main__":
    sys.exit(main())
