"""What policies cost a request, with and without following any.

`python -m tests.bench.policies_cost [--rounds 4] [--seconds 5]`: wrk against one node each, by turns. Each node has the
same pool behind 20 hosts:

* *no policies*: the load balancer has none;
* *beside policies*: it has 20, which all other routes follow, and the route that is asked for follows none;
* *headers*, *CORS*, *all*: the route that is asked for follows one of the 20.

CPU per request is the node's own: other work on the machine hardly moves it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import RegionNode
from apps.compiler.model.policy import Cors, HeaderChanges, Rules, SecurityHeaders
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.policies import rule_set
from tests.bench.backends import instant_backends
from tests.bench.overflow_cost import Go, load
from tests.bench.overflow_env import Node, PoolPlan, plain, rate, running_node, snapshot_of
from tests.bench.tables import facts, table
from tests.ports import spare_port

POLICIES = 20
GOAL = 1.15
NONE, BESIDE = "no policies", "beside policies"


def headers(number: int) -> Rules:
    """Two headers to the server, one less to the client, two for browsers."""
    return Rules(
        request_headers=HeaderChanges(set=(("X-Team", f"team-{number}"), ("X-Client", "{client_address}"))),
        response_headers=HeaderChanges(remove=("Server",)),
        security_headers=SecurityHeaders(hsts_seconds=60 + number, no_sniff=True),
    )


def cors(number: int) -> Rules:
    """One origin that may read responses."""
    return Rules(cors=Cors((f"https://app-{number}.example",), ("GET", "PUT"), credentials=True))


def everything(number: int) -> Rules:
    """All of it."""
    return replace(headers(number), cors=cors(number).cors)


WAYS: Mapping[str, Rules | None] = {BESIDE: None, "headers": headers(0), "CORS": cors(0), "all": everything(0)}


def followed(front: LoadBalancer, asked: Rules | None) -> LoadBalancer:
    """The first route follows `asked`; every other route one of POLICIES policies that say something else each."""
    sets = tuple(rule_set(everything(number)) for number in range(1, POLICIES + 1))
    first = () if asked is None else (rule_set(asked),)
    routes = [replace(route, rule_set=sets[index % POLICIES].id) for index, route in enumerate(front.routes)]
    routes[0] = replace(routes[0], rule_set=first[0].id if first else "")
    return replace(front, routes=tuple(routes), rule_sets=(*sets, *first))


def measure(rounds: int, seconds: int, directory: Path) -> list[Go]:
    """All ways by turns, so that the machine's moods fall on each of them."""
    with ExitStack() as stack:
        (port,) = stack.enter_context(instant_backends(directory, ("rgn-1",)))
        reach = RegionNode("node-0", "n0", "127.0.0.1", 0, 0, 0)
        bare = plain(snapshot_of([PoolPlan((rate(1),), ((port,),))] * (POLICIES + 1), (), 0))
        nodes: dict[str, Node] = {}
        for way in (NONE, *WAYS):
            front = bare.load_balancers[0]
            wanted = bare if way == NONE else replace(bare, load_balancers=(followed(front, WAYS[way]),))
            node = Node("node-0", "rgn-1", directory / way.replace(" ", "-"), spare_port(), reach)
            stack.enter_context(running_node(compile_snapshot(wanted).output, node))
            nodes[way] = node
        for way, node in nodes.items():
            load(way, node, 1, 1)
        order = list(nodes.items())
        return [
            load(way, node, 1, seconds) for turn in range(rounds) for way, node in (order if turn % 2 else order[::-1])
        ]


def main() -> int:
    """Print a table and one line of JSON; 1 when a route without policies pays more than the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=5)
    given = parser.parse_args()
    print(facts(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        goes = measure(given.rounds, given.seconds, Path(folder))
    cpu = {way: statistics.median(go.cpu_us for go in goes if go.way == way) for way in (NONE, *WAYS)}
    speed = {way: statistics.median(go.per_s for go in goes if go.way == way) for way in cpu}
    rows = [
        [way, f"{cpu[way]:.1f}", f"{cpu[way] / cpu[NONE]:.2f}", f"{speed[way]:.0f}", f"{speed[way] / speed[NONE]:.2f}"]
        for way in cpu
    ]
    print(table(("route", "node's CPU µs/request", "ratio", "requests/s", "ratio"), rows))
    ratio = cpu[BESIDE] / cpu[NONE]
    print(f"A route without policies beside {POLICIES}: {ratio:.2f} × the CPU, goal {GOAL}.")
    print(json.dumps({"cpu_us": cpu, "per_s": speed}))
    return int(ratio > GOAL)


if __name__ == "__main__":
    sys.exit(main())
