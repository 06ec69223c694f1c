"""Bench of PUSH on one node: 100 000 routes replaced without a reload, beside the Runtime API doing the same bare.

`python -m tests.bench.route_swap [--routes 100000]`: one agent with HAProxy. The bare part is `prepare map`, `add map`
in chunks below HAProxy's buffer and `commit map` on the worker's socket, for the same lines of the same maps.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import replace

from apps.agent.process.sockets import ask
from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.operations import ReplaceMap
from apps.compiler.model.shared import WeightedPool
from apps.compiler.plan import Runtime, plan
from tests.bench.compile import POOLS, env
from tests.conformance.real_agent import RealAgent, running_agent

CHUNK = 12_000
ROUNDS = 3


def bundles(routes: int, port: int) -> tuple[Bundle, Bundle]:
    """Two bundles that have no route in common: every one has another id and leads elsewhere."""
    snapshot = env(routes)
    front = snapshot.load_balancers[0]
    here = replace(front, listeners=(replace(front.listeners[0], port=port),))
    moved = tuple(
        replace(each, id=f"route-{routes + number + 1}", pools=(WeightedPool(f"pool-{(number + 7) % POOLS + 1}", 100),))
        for number, each in enumerate(front.routes)
    )
    found = (replace(snapshot, load_balancers=(front,)) for front in (here, replace(here, routes=moved)))
    first, second = (compile_snapshot(each).output for each in found)
    return first, second


def swap(agent: RealAgent, before: Bundle, after: Bundle, generation: int) -> tuple[float, float]:
    """Seconds to plan, and to bring the node there through the agent."""
    begin = time.perf_counter()
    decided = plan(before, after)
    assert isinstance(decided, Runtime), decided
    planned = time.perf_counter()
    agent.driver.run_operations(decided.operations, after, before.digest, generation)
    return planned - begin, time.perf_counter() - planned


def bare_swap(agent: RealAgent, before: Bundle, after: Bundle) -> float:
    """Seconds of the Runtime API alone for the maps that the plan replaces."""
    decided = plan(before, after)
    assert isinstance(decided, Runtime)
    paths = [each.path for each in decided.operations if isinstance(each, ReplaceMap)]
    socket = agent.state_dir / "run" / "worker.sock"
    begin = time.perf_counter()
    for path in paths:
        version = ask(socket, f"prepare map {path}").strip().rpartition(" ")[2]
        for chunk in _chunks(after.files[path]):
            ask(socket, f"add map @{version} {path} <<\n{chunk}\n")
        ask(socket, f"commit map @{version} {path}")
    return time.perf_counter() - begin


def _chunks(content: bytes) -> list[str]:
    found: list[str] = []
    lines: list[str] = []
    size = 0
    for line in content.decode().splitlines(keepends=True):
        if size + len(line) > CHUNK:
            found.append("".join(lines))
            size, lines = 0, []
        size += len(line)
        lines.append(line)
    return [*found, "".join(lines)]


def measure(routes: int) -> dict[str, float]:
    """Swap there and back, several times; the bare swap leads to what runs already, so files and worker agree."""
    with running_agent("unix") as agent:
        first, second = bundles(routes, agent.port)
        agent.driver.push_bundle(first, 1)
        reloads = agent.state().reloads
        planned, through, bare = [], [], []
        now, other = first, second
        for generation in range(2, 2 + ROUNDS):
            plan_s, swap_s = swap(agent, now, other, generation)
            planned.append(plan_s)
            through.append(swap_s)
            bare.append(bare_swap(agent, now, other))
            now, other = other, now
        state = agent.state()
        assert (state.reloads, state.digest) == (reloads, now.digest)
    return {
        "routes": float(routes),
        "plan_s": statistics.median(planned),
        "agent_s": statistics.median(through),
        "bare_s": statistics.median(bare),
        "ratio": statistics.median(through) / statistics.median(bare),
        "ratio_with_plan": (statistics.median(through) + statistics.median(planned)) / statistics.median(bare),
    }


def main() -> int:
    """Print a table and one line of JSON; 1 when the goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--routes", type=int, default=100_000)
    results = measure(parser.parse_args().routes)
    for name, value in results.items():
        print(f"{name:32} {value:10.3f}")
    print(json.dumps(results, sort_keys=True))
    return 0 if results["ratio"] <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
