"""`python -m tests.bench.capacity [--only tutorial] [--at-once 2]`.

Servers with a known true capacity behind a real HAProxy that runs what the compiler made, loaded by the real engine,
searched by the search of the product. Each must be found within 5 % of the truth, in less than five minutes, with the
target overloaded for at most ten seconds. The truth is arithmetic for even arrivals at servers of constant time (lanes
by seconds), else a long simulation of the same queues. `overloaded` counts seconds in which most requests broke the
objective, `p95 over` every second whose own 95th percentile was over it, also by a burst of independent callers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from apps.capacity.measure.measuring import latencies_of
from apps.capacity.measure.results import Result
from apps.capacity.run.search.profile import Search
from apps.capacity.run.search.tuning import TUNING
from apps.capacity.run.steps import LoadProfile, Status, StepPlan, Verdict
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Region, RegionNode
from apps.compiler.model.shared import Limit
from apps.definitions.shapes.operations.capacity_test import ObjectiveSpec
from apps.drivers.load.contract import Arrivals, Endpoint, Plan, Request, Second
from apps.drivers.load.registry import open_generator
from tests.bench.capacity_backends import Model, backends, truth
from tests.bench.overflow_env import Node, PoolPlan, host, plain, running_node, snapshot_of
from tests.bench.tables import facts, table
from tests.ports import spare_port

GOAL, GOAL_S = 0.05, 300
SLOW = ObjectiveSpec(percentile=95, max_latency_ms=600, max_error_rate=0.01)
FAST = ObjectiveSpec(percentile=95, max_latency_ms=100, max_error_rate=0.01)
CONSTANT, POISSON = Arrivals.CONSTANT, Arrivals.POISSON


@dataclass(frozen=True, slots=True)
class Case:
    """One search: the servers, how requests come, the objective, where the search begins to guess."""

    name: str
    model: Model
    arrivals: Arrivals
    objective: ObjectiveSpec = FAST
    start: float = 50
    exactly: int = 0


CASES = (
    Case("tutorial VM", Model(1, 384, lanes=2), CONSTANT, SLOW, 0, 5),
    Case("tutorial region, 3 VMs", Model(3, 384, lanes=2), CONSTANT, SLOW, 10, 15),
    Case("1 server, constant", Model(1, 10), CONSTANT),
    Case("3 servers, constant", Model(3, 10), CONSTANT),
    Case("8 servers, constant", Model(8, 10), CONSTANT),
    Case("1 server, exponential", Model(1, 10, exponential=True), POISSON),
    Case("3 servers, exponential", Model(3, 10, exponential=True), POISSON),
    Case("8 servers, exponential", Model(8, 10, exponential=True), POISSON),
    Case("sudden cliff, 3 servers", Model(3, 10, thrashes_at=8), CONSTANT),
    Case("soft knee, 8 servers", Model(8, 10, contention=0.05), POISSON),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a case came to; rates in requests/s, times in s."""

    case: Case
    truth: float
    result: Result
    seconds: float
    over: int
    backlog: float

    @property
    def off(self) -> float:
        """How far from the truth, as a share of it."""
        return (self.result.capacity or 0.0) / self.truth - 1

    @property
    def held(self) -> bool:
        """Whether all that was promised is so."""
        exact = not self.case.exactly or int(self.result.capacity or 0) == self.case.exactly
        return (
            exact and abs(self.off) <= GOAL and self.seconds < GOAL_S and self.result.overloaded_s <= TUNING.overload_s
        )


@contextmanager
def balanced(ports: Sequence[int], directory: Path) -> Iterator[Node]:
    """One real HAProxy on what the compiler makes of a pool with these servers."""
    reach = RegionNode("node-1", "n1", "127.0.0.1", spare_port(), spare_port(), spare_port())
    regions = (Region("rgn-1", "region 1", (reach,)),)
    snapshot = plain(snapshot_of((PoolPlan((Limit(),), (tuple(ports),)),), regions, 0))
    directory.mkdir(parents=True, exist_ok=True)
    node = Node("node-1", "rgn-1", directory, spare_port(), reach)
    with running_node(compile_snapshot(snapshot).output, node):
        yield node


async def drive(profile: LoadProfile, plan: Plan) -> list[Second]:
    """What a worker does with a profile, without a database."""
    step = profile.next_step()
    assert step is not None
    generator = open_generator(plan)
    await generator.start(plan)
    stream, every = generator.seconds(), list[Second]()
    try:
        while step is not None:
            await generator.set_rate(step.rate)
            every += await _make(profile, step, stream, generator.renew)
            step = profile.next_step()
    finally:
        await generator.stop()
    return every


async def _make(profile: LoadProfile, step: StepPlan, stream: object, renew: object) -> list[Second]:
    made, verdict = list[Second](), Verdict(Status.UNDECIDED)
    while not verdict.decided:
        await renew()  # type: ignore[operator]
        made.append(await anext(stream))  # type: ignore[call-overload]
        verdict = profile.evaluate(step, made)
    profile.record(step, made, verdict)
    return made


def run(case: Case) -> Found:
    """One case, from the start of its servers to the verdict."""
    highest = 3 * case.model.ceiling
    profile = Search(
        objective=case.objective, start_rate=case.start, max_rate=highest, arrivals=case.arrivals, seconds=GOAL_S - 5
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        backends(case.model) as ports,
        balanced(ports, Path(folder)) as node,
    ):
        plan = Plan(
            (Endpoint("127.0.0.1", node.port),), Request(host(1)), rate=1, max_rate=highest, arrivals=case.arrivals,
            duration_s=GOAL_S, max_connections=1000, timeout_s=30, seed=1,
        )  # fmt: skip
        begun = time.monotonic()
        every = asyncio.run(drive(profile, plan))
        took = time.monotonic() - begun
    p95 = [latencies_of(second.histogram).percentile_ms(95) or 0 for second in every]
    over = sum(each > case.objective.max_latency_ms for each in p95)
    worst = max(second.in_flight for second in every) / case.model.ceiling
    true = truth(case.model, case.objective, constant=case.arrivals is CONSTANT)
    return Found(case, true, profile.result(), took, over, worst)


def row(found: Found) -> list[str]:
    """One line of the table."""
    result = found.result
    between = "–" if result.high is None or result.low is None else f"{result.low:.4g}–{result.high:.4g}"
    return [
        found.case.name,
        found.case.arrivals.value,
        f"{found.truth:.4g}",
        "nothing" if result.capacity is None else f"{result.capacity:.4g}",
        f"{found.off:+.1%}",
        between,
        f"{found.seconds:.0f} s",
        f"{result.overloaded_s:.0f} s",
        f"{found.over} s",
        "yes" if found.held else f"NO ({result.limited_by})",
    ]


HEADS = ("servers", "arrivals", "truth", "found", "off", "95 %", "took", "overloaded", "p95 over", "held")


def main(arguments: Sequence[str]) -> int:
    """Run the cases, print the table; 1 when something was not held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="words in the names of the cases")
    parser.add_argument("--at-once", type=int, default=1, help="cases side by side, on a machine that has the cores")
    parser.add_argument("--json", type=Path, help="where to write the numbers as well")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if not options.only or any(word in case.name for word in options.only)]
    print(facts(), flush=True)
    with ThreadPoolExecutor(options.at_once) as pool:
        found = []
        for each in pool.map(run, cases):
            found.append(each)
            print(" ".join(row(each)), flush=True)
    print(facts())
    print(table(HEADS, [row(each) for each in found]))
    if options.json:
        options.json.write_text(
            json.dumps([each.result.document() | {"truth": each.truth} for each in found], indent=1)
        )
    return 0 if all(each.held for each in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
