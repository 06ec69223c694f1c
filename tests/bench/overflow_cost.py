"""What counting against limits costs a request, while nothing overflows.

`python -m tests.bench.overflow_cost [--rounds 8] [--seconds 2]`: wrk against one node, again and again by turns:

* *governed*: a pool with a limit in each of three regions of three nodes each, so high that every request is checked
  and stays;
* *ungoverned*: a pool without limit, on the very same node;
* *plain*: the same pool on a node whose configuration knows no limits and no regions.

The node has a core for itself; wrk, the server and the eight other nodes share the rest, so that whoever is short of
processor time does not slow down the node. What counts is the node's own CPU per request: under wrk, where its inverse
is how many requests/s a core can serve, and at a calm 1 000 requests/s, where each message to a peer is a packet of its
own. Other work on the machine only adds to it, so the lower quartile of all goes stands for each. Each go is warmed up,
as a node counts in advance only when it is busy (ADR 0027). Requests/s are this machine's, and say as much about wrk
and the server as about the node when its core is not busy.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import Limit
from tests.bench.backends import instant_backends
from tests.bench.open_loop import CONSTANT, Way, arrivals, offer, schedule
from tests.bench.overflow_env import (
    Node,
    PoolPlan,
    host,
    on_cores,
    plain,
    rate,
    running_env,
    running_node,
    snapshot_of,
)
from tests.bench.tables import facts, table
from tests.ports import spare_port

MUCH = 1_000_000
LEAST_REQUESTS, MOST_CALM_CPU = 0.92, 1.4
CONNECTIONS = 32
CALM_PER_S, CALM_SECONDS, WARM_SECONDS = 1000, 2, 1
GOVERNED, UNGOVERNED, PLAIN = "governed", "ungoverned, same node", "plain node"


@dataclass(frozen=True, slots=True)
class Go:
    """One go of wrk, then one of 1 000/s; CPU is the node's, in µs per request, and `busy` its share of its core."""

    way: str
    per_s: float
    p99_ms: float
    busy: float
    cpu_us: float
    calm_us: float


def milliseconds(said: str) -> float:
    """`1.23ms`, `456.00us` or `1.02s` as ms."""
    found = re.fullmatch(r"([\d.]+)(us|ms|s)", said)
    if found is None:
        raise ValueError(f"not a time of wrk: {said}")
    return float(found[1]) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[found[2]]


def read(said: str) -> tuple[float, float, int]:
    """Requests/s, p99 in ms and the number of requests from wrk's report; raises ValueError when some failed."""
    per_s, p99 = re.search(r"Requests/sec:\s+([\d.]+)", said), re.search(r"^\s+99%\s+(\S+)", said, re.MULTILINE)
    count = re.search(r"(\d+) requests in", said)
    if per_s is None or p99 is None or count is None or "Non-2xx" in said or "Socket errors" in said:
        raise ValueError(said)
    return float(per_s[1]), milliseconds(p99[1]), int(count[1])


def load(way: str, node: Node, pool: int, seconds: int) -> Go:
    """wrk on 127.0.0.1 for so long."""
    wrk(node, pool, WARM_SECONDS)
    before, began = node.cpu_seconds(), time.monotonic()
    per_s, p99, count = read(wrk(node, pool, seconds))
    used, took = node.cpu_seconds() - before, time.monotonic() - began
    return Go(way, per_s, p99, used / took, used * 1e6 / count, calm(node, pool))


def wrk(node: Node, pool: int, seconds: int, sent: Sequence[str] = ()) -> str:
    """Its report; `sent` are more headers of its requests, `name: value`."""
    words = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency"]
    words += [word for header in (f"Host: {host(pool)}", *sent) for word in ("-H", header)]
    return subprocess.run([*words, f"http://127.0.0.1:{node.port}/"], capture_output=True, text=True, check=True).stdout


def calm(node: Node, pool: int) -> float:
    """CPU in µs per request at a rate that keeps nobody busy."""
    way = [Way(node.port, host(pool))]
    offer(way, schedule(arrivals(CONSTANT, CALM_PER_S, WARM_SECONDS), [0]))
    before = node.cpu_seconds()
    outcomes = offer(way, schedule(arrivals(CONSTANT, CALM_PER_S, CALM_SECONDS), [0]))
    return (node.cpu_seconds() - before) * 1e6 / len(outcomes)


def measure(rounds: int, seconds: int, nodes: int, directory: Path) -> list[Go]:
    """All ways by turns, so that the machine's moods fall on each of them."""
    first, *rest = sorted(os.sched_getaffinity(0))
    own = frozenset({first}) if rest else frozenset()
    with ExitStack() as stack:
        stack.enter_context(on_cores(frozenset(rest)))
        (port,) = stack.enter_context(instant_backends(directory, ("rgn-1",)))
        ports = ((port,), (port,), (port,))
        plans = [PoolPlan((rate(MUCH),) * 3, ports), PoolPlan((Limit(),), (ports[0],))]
        env = stack.enter_context(running_env(directory, plans, (nodes,) * 3, own))
        node = env[0][0]
        bare = compile_snapshot(plain(snapshot_of(plans[1:], (), 0))).output
        other = replace(node, id="node-0", directory=directory / "plain", port=spare_port())
        with on_cores(own):
            stack.enter_context(running_node(bare, other))
        goes: list[Callable[[], Go]] = [
            lambda: load(GOVERNED, node, 1, seconds),
            lambda: load(UNGOVERNED, node, 2, seconds),
            lambda: load(PLAIN, other, 1, seconds),
        ]
        for go in goes:
            go()
        return [go() for turn in range(rounds) for go in (goes if turn % 2 else goes[::-1])]


def typical(goes: Sequence[Go]) -> dict[str, Go]:
    """Of each way the median of what it carried, and the lower quartile of its CPU."""
    found = {}
    for way in (PLAIN, UNGOVERNED, GOVERNED):
        own = [go for go in goes if go.way == way]
        middle = [statistics.median(getattr(go, name) for go in own) for name in ("per_s", "p99_ms", "busy")]
        costs = [statistics.quantiles([getattr(go, name) for go in own], n=4)[0] for name in ("cpu_us", "calm_us")]
        found[way] = Go(way, *middle, *costs)
    return found


HEAD = ("pool", "requests/s", "p99 ms", "core busy", "CPU µs/request", "requests of a core", "at 1 000/s", "ratio")


def main() -> int:
    """Print a table and one line of JSON; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=3, help="nodes of each of the three regions")
    given = parser.parse_args()
    print(facts(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        goes = measure(given.rounds, given.seconds, given.nodes, Path(folder))
    ways = typical(goes)
    base, rows = ways[PLAIN], []
    for way, go in ways.items():
        carried = (f"{go.per_s:.0f}", f"{go.p99_ms:.1f}", f"{go.busy:.0%}")
        costs = (f"{go.cpu_us:.1f}", f"{base.cpu_us / go.cpu_us:.2f} ×")
        rows.append([way, *carried, *costs, f"{go.calm_us:.0f}", f"{go.calm_us / base.calm_us:.2f} ×"])
    print(table(HEAD, rows))
    print(facts())
    ratio, calm_ratio = base.cpu_us / ways[GOVERNED].cpu_us, ways[GOVERNED].calm_us / base.calm_us
    print(f"Governed to plain: requests/s of a core {ratio:.2f} ×, goal {LEAST_REQUESTS};", end=" ")
    print(f"CPU at a calm {CALM_PER_S} requests/s {calm_ratio:.2f} ×, goal {MOST_CALM_CPU}.")
    print(json.dumps({"ratio": ratio, "calm_ratio": calm_ratio, "goes": [asdict(go) for go in goes]}))
    return int(ratio < LEAST_REQUESTS or calm_ratio > MOST_CALM_CPU)


if __name__ == "__main__":
    sys.exit(main())
