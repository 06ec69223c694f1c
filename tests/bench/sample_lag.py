"""Bench of OBSERVE: how old what pages show of a node is, with real collectors, PostgreSQL, Redis and light agents.

`python -m tests.bench.sample_lag [--nodes 100 250 500 1000] [--collectors 2] [--seconds 60]`: the nodes of
`tests.bench.collecting`, read by so many `manage.py collect`. Twice a second Redis is asked when each node's numbers
were read, as pages ask it. A node that is read each two seconds is on average a little more than one second old.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.bench.collecting import ROOT, agents, define, installation, processor_s
from tests.bench.tables import facts, table

if TYPE_CHECKING:
    from apps.fleet.models import Node

PATIENCE_S, PAUSE_S, WARM_UP_S = 180.0, 0.5, 75.0
HEADS = ("nodes", "collectors", "age p50", "p95", "p99", "oldest", "cores of collectors", "cores of agents")

OF = ("collect", "tests.bench.light_agents")


@contextmanager
def collectors(count: int) -> Iterator[None]:
    """So many collectors, which share the nodes."""
    command = [sys.executable, "manage.py", "collect"]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(count)
    ]
    try:
        yield
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait(30)


def ages(nodes: Sequence[Node]) -> list[float]:
    """Seconds since the numbers of each node were read; a node without numbers is infinitely old."""
    from apps.observe.live import store

    pipe = store.client().pipeline(transaction=False)
    for node in nodes:
        pipe.hget(store.live_key(node.pk), "at")
    found, present = pipe.execute(), time.time()
    return [present - float(at) if at else float("inf") for at in found]


def measure(nodes: Sequence[Node], count: int, seconds: float) -> list[float]:
    """A row of the table."""
    with collectors(count):
        until = time.monotonic() + PATIENCE_S
        while max(ages(nodes)) == float("inf"):
            if time.monotonic() > until:
                raise SystemExit("Not every node was read.")
            time.sleep(PAUSE_S)
        time.sleep(WARM_UP_S)
        found: list[float] = []
        before = [processor_s(sys.executable, word) for word in OF]
        began = time.monotonic()
        while (left := began + seconds - time.monotonic()) > 0:
            found += ages(nodes)
            time.sleep(min(PAUSE_S, left))
        took = time.monotonic() - began
        cores = [(processor_s(sys.executable, word) - then) / took for word, then in zip(OF, before, strict=True)]
    found.sort()
    share = (0.5, 0.95, 0.99)
    return [len(nodes), count, *(found[int(each * (len(found) - 1))] for each in share), found[-1], *cores]


def main() -> int:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 250, 500, 1000])
    parser.add_argument("--collectors", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    rows = []
    with installation() as folder:
        for count in asked.nodes:
            nodes = define(count)
            with agents(folder / "agents", nodes):
                rows.append(measure(nodes, asked.collectors, asked.seconds))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(facts())
    print(table(HEADS, [[f"{value:,.3g}" for value in row] for row in rows]))
    print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
