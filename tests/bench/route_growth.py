"""Bench of COMPILE: a snapshot of many routes, and one in a hundred of them changed, each size in a process of its own.

`python -m tests.bench.route_growth [--routes 1000 10000 100000]`: processor seconds of this process, the largest file
and the whole of the bundle, and the highest memory. Nothing is stored or sent.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import WeightedPool
from apps.compiler.plan import Runtime, plan
from apps.compiler.recompile import compile_change
from tests.bench.compile import env, peak_mb
from tests.bench.tables import facts, table

SHARE = 100
HEADS = (
    "routes",
    "compile, s",
    "changed",
    "compile again, s",
    "plan, s",
    "operations",
    "largest file, MB",
    "bundle, MB",
    "peak, MB",
)


def changed(snapshot: Snapshot) -> Snapshot:
    """The same with every hundredth route moved to another pool."""
    front = snapshot.load_balancers[0]
    pools = (WeightedPool("pool-7", 1),)
    routes = tuple(replace(each, pools=pools) if at % SHARE == 0 else each for at, each in enumerate(front.routes))
    return replace(snapshot, load_balancers=(replace(front, routes=routes),))


def measure(routes: int) -> list[float]:
    """The row of so many routes."""
    snapshot = env(routes)
    wanted = changed(snapshot)
    moments = [time.process_time()]
    before = compile_snapshot(snapshot)
    moments.append(time.process_time())
    after = compile_change(before, snapshot, wanted).output
    moments.append(time.process_time())
    decision = plan(before.output, after)
    moments.append(time.process_time())
    compiled, again, planned = (later - earlier for earlier, later in pairwise(moments))
    operations = len(decision.operations) if isinstance(decision, Runtime) else -1
    sizes = [len(content) / 1e6 for content in after.files.values()]
    return [routes, compiled, routes // SHARE, again, planned, operations, max(sizes), sum(sizes), peak_mb()]


def main() -> int:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--routes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--alone", action="store_true", help="one size, in this process")
    asked = parser.parse_args()
    if asked.alone:
        print(json.dumps(measure(asked.routes[0])))
        return 0
    found = []
    for routes in asked.routes:
        command = [sys.executable, "-m", "tests.bench.route_growth", "--alone", "--routes", str(routes)]
        found.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    print(facts())
    print(table(HEADS, [[f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" for value in each] for each in found]))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
