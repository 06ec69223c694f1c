"""What the ceilings of accounts cost a request, below them, beyond a pool's own part, and refused.

`python -m tests.bench.ceilings_cost [--rounds 80]`: CPU of four nodes that run the same pools, asked by turns, a little
each time, on one connection without a pause. They differ in the account's share alone:

* *without*: there is none, and so there are no rules;
* *below*: a pool within its own part, as nearly all are;
* *beyond*: nearly every request is beyond its pool's own part, is counted for the account and served;
* *refused*: nearly every request is answered 429.

What a request costs is the processor time of the node's worker, servers and clients not included; of all turns the
calmest quarter, because others on the machine only ever add to it. Requests that come one by one cost more, with and
without.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import statistics
import sys
import tempfile
from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import AccountShare, Region, RegionNode
from apps.compiler.model.shared import Limit
from tests.bench.backends import instant_backends
from tests.bench.overflow_env import Node, PoolPlan, host, running_node, snapshot_of
from tests.bench.tables import facts, table
from tests.ports import spare_port

COUNT, AT_ONCE = 1000, 20
POOLS = 20
STATUS_LINE = re.compile(rb"HTTP/1\.1 (\d{3}) ")
MUCH = 1_000_000
WITHOUT, BELOW, BEYOND, REFUSED = "without", "below", "beyond", "refused"
# Of so many pools each has a fortieth of the account's requests per second for itself.
SHARES: dict[str, int | None] = {WITHOUT: None, BELOW: MUCH, BEYOND: MUCH // 20, REFUSED: 1}
STATUS = {WITHOUT: 200, BELOW: 200, BEYOND: 200, REFUSED: 429}


def cpu_us(node: Node) -> float:
    """Processor time of the worker, to the nanosecond."""
    found = re.search(r"^Pid: (\d+)$", node.command("show info"), re.MULTILINE)
    assert found is not None
    tasks = Path(f"/proc/{found[1]}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks) / 1000


def cost(way: str, node: Node) -> float:
    """CPU in µs per request."""
    before = cpu_us(node)
    found = asked(node.port)
    used = cpu_us(node) - before
    assert found[STATUS[way]] >= 0.9 * COUNT, f"{way}: {found}"
    return used / COUNT


def asked(port: int) -> Counter[int]:
    """So many requests, a few at a time and as fast as they are answered; by status."""
    found: Counter[int] = Counter()
    request = f"GET / HTTP/1.1\r\nHost: {host(1)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        for _ in range(COUNT // AT_ONCE):
            client.sendall(request * AT_ONCE)
            text = b""
            while len(lines := STATUS_LINE.findall(text)) < AT_ONCE or not text.endswith(b"\n"):
                text += client.recv(65536)
            found.update(map(int, lines))
    return found


def measure(rounds: int, directory: Path) -> dict[str, list[float]]:
    """All ways by turns, so that the machine's moods fall on each of them; the first turn is not counted."""
    found: dict[str, list[float]] = {way: [] for way in SHARES}
    with ExitStack() as stack:
        (port,) = stack.enter_context(instant_backends(directory, ("rgn-1",)))
        nodes = {way: stack.enter_context(_node(way, port, directory / way)) for way in SHARES}
        for turn in range(rounds + 1):
            for way in list(nodes) if turn % 2 else list(nodes)[::-1]:
                found[way].append(cost(way, nodes[way]))
    return {way: costs[1:] for way, costs in found.items()}


def _node(way: str, port: int, directory: Path) -> AbstractContextManager[Node]:
    """A region of one node with a pool that is asked and many that are not."""
    reach = RegionNode("node-1", "n1", "127.0.0.1", spare_port(), spare_port(), spare_port())
    plans = [PoolPlan((Limit(),), ((port,),))] * POOLS
    snapshot = snapshot_of(plans, (Region("rgn-1", "region 1", (reach,)),), 0)
    rps = SHARES[way]
    shares = () if rps is None else (AccountShare("acc-1", "bench", 25, rps),)
    bundle = compile_snapshot(replace(snapshot, shares=shares)).output
    return running_node(bundle, Node(reach.id, "rgn-1", directory, spare_port(), reach))


def main() -> int:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=80)
    given = parser.parse_args()
    print(facts(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given.rounds, Path(folder))
    calm = {way: statistics.mean(sorted(costs)[: max(1, len(costs) // 4)]) for way, costs in found.items()}
    ratio = {way: each / calm[WITHOUT] for way, each in calm.items()}
    rows = [
        [way, f"{calm[way]:.1f}", f"{ratio[way]:.2f}", f"{min(costs):.1f}", f"{statistics.median(costs):.1f}"]
        for way, costs in found.items()
    ]
    print(table(("pool", "node's CPU µs/request", "ratio", "least", "median"), rows))
    print(facts())
    print(json.dumps({"ratio": ratio, "goes": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
