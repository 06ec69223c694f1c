"""What counting against limits costs a request, while nothing overflows.

`python -m tests.bench.overflow_cost [--rounds 4] [--seconds 6]`: wrk against one node, again and again by turns:

* *governed*: a pool with a limit in each of three regions of three nodes each, so high that every request is checked
  and stays;
* *ungoverned*: a pool without limit, on the very same node;
* *plain*: the same pool on a node whose configuration knows no limits and no regions.

Requests/s are this machine's, with the other eight nodes on the same cores; CPU per request is the node's own, under
wrk and at a calm 1 000 requests/s, where every admission is a message of its own to each peer.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import Limit
from tests.bench.backends import instant_backends
from tests.bench.open_loop import CONSTANT, Way, arrivals, offer, schedule
from tests.bench.overflow_env import Node, PoolPlan, host, plain, rate, running_env, running_node, snapshot_of
from tests.bench.tables import facts, table
from tests.ports import spare_port

MUCH = 1_000_000
GOAL = 0.9
CONNECTIONS = 32
CALM_PER_S, CALM_SECONDS = 1000, 3
GOVERNED, UNGOVERNED, PLAIN = "governed", "ungoverned, same node", "plain node"


@dataclass(frozen=True, slots=True)
class Go:
    """One go of wrk, then one of 1 000/s; CPU is the node's, in µs per request."""

    way: str
    per_s: float
    p99_ms: float
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
    words = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-H", f"Host: {host(pool)}"]
    before = node.cpu_seconds()
    done = subprocess.run([*words, f"http://127.0.0.1:{node.port}/"], capture_output=True, text=True, check=True)
    used = node.cpu_seconds() - before
    per_s, p99, count = read(done.stdout)
    return Go(way, per_s, p99, used * 1e6 / count, calm(node, pool))


def calm(node: Node, pool: int) -> float:
    """CPU in µs per request at a rate that keeps nobody busy."""
    before = node.cpu_seconds()
    outcomes = offer([Way(node.port, host(pool))], schedule(arrivals(CONSTANT, CALM_PER_S, CALM_SECONDS), [0]))
    return (node.cpu_seconds() - before) * 1e6 / len(outcomes)


def measure(rounds: int, seconds: int, nodes: int, directory: Path) -> list[Go]:
    """All ways by turns, so that the machine's moods fall on each of them."""
    with ExitStack() as stack:
        (port,) = stack.enter_context(instant_backends(directory, ("rgn-1",)))
        ports = ((port,), (port,), (port,))
        plans = [PoolPlan((rate(MUCH),) * 3, ports), PoolPlan((Limit(),), (ports[0],))]
        env = stack.enter_context(running_env(directory, plans, (nodes,) * 3))
        node = env[0][0]
        bare = compile_snapshot(plain(snapshot_of(plans[1:], (), 0))).output
        other = replace(node, id="node-0", directory=directory / "plain", port=spare_port())
        stack.enter_context(running_node(bare, other))
        goes: list[Callable[[], Go]] = [
            lambda: load(GOVERNED, node, 1, seconds),
            lambda: load(UNGOVERNED, node, 2, seconds),
            lambda: load(PLAIN, other, 1, seconds),
        ]
        for go in goes:
            go()
        return [go() for turn in range(rounds) for go in (goes if turn % 2 else goes[::-1])]


NAMES = ("per_s", "p99_ms", "cpu_us", "calm_us")


def medians(goes: Sequence[Go]) -> dict[str, Go]:
    """The median go of each way, figure by figure."""
    found = {}
    for way in (PLAIN, UNGOVERNED, GOVERNED):
        own = [go for go in goes if go.way == way]
        figures = [statistics.median(getattr(go, name) for go in own) for name in NAMES]
        found[way] = Go(way, *figures)
    return found


def main() -> int:
    """Print a table and one line of JSON; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--nodes", type=int, default=3, help="nodes of each of the three regions")
    given = parser.parse_args()
    print(facts(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        goes = measure(given.rounds, given.seconds, given.nodes, Path(folder))
    middle = medians(goes)
    base = middle[PLAIN]
    rows = []
    for way, go in middle.items():
        each_go = " ".join(f"{each.per_s:.0f}" for each in goes if each.way == way)
        figures = (f"{go.per_s:.0f}", f"{go.per_s / base.per_s:.2f}", f"{go.p99_ms:.2f}")
        costs = (f"{go.cpu_us:.0f}", f"{go.calm_us:.0f}")
        rows.append([way, *figures, *costs, each_go])
    print(table(("pool", "requests/s", "ratio", "p99 ms", "node's CPU µs/request", "at 1 000/s", "each go"), rows))
    print(facts())
    ratio = middle[GOVERNED].per_s / base.per_s
    print(f"Ratio governed to plain {ratio:.2f}, goal {GOAL}.")
    print(json.dumps({"ratio": ratio, "goes": [asdict(go) for go in goes]}))
    return int(ratio < GOAL)


if __name__ == "__main__":
    sys.exit(main())
