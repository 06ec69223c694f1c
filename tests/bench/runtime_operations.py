"""Runtime operations on a node with 100 000 routes: one route, ten thousand, a weight, a whole map.

`python -m tests.bench.runtime_operations [--routes 100000]`. Times are those of the driver's call: files, digests,
commands and the state's answer included. Nothing of it may reload. Needs no traffic.
"""

from __future__ import annotations

import argparse
import json
import time

from apps.compiler.bundle import Bundle
from apps.compiler.model.operations import DeleteMapEntry, Operation, ReplaceMap, SetMapEntry, SetServerWeight
from tests.conformance.bundles import MAP, make_bundle
from tests.conformance.real_agent import RealAgent, running_agent

ONE_ROUTE_GOAL_S = 1.0
MANY = 10_000


class Routes:
    """A node that runs `count` routes, and what it runs now."""

    def __init__(self, agent: RealAgent, count: int) -> None:
        self.agent = agent
        self.entries = {f"h{number}.example/": "pool-1" for number in range(count)} | {"a.example/": "pool-1"}
        self.generation = 1
        self.weight = 100
        self.running = self._bundle()

    def _bundle(self) -> Bundle:
        return make_bundle(self.agent.port, entries=self.entries, weight=self.weight)

    def push(self) -> float:
        """Seconds of a push of everything, with its check, trial run and reload."""
        began = time.monotonic()
        self.agent.driver.push_bundle(self.running, self.generation)
        return time.monotonic() - began

    def operate(self, operations: tuple[Operation, ...]) -> float:
        """Seconds of operations that bring the node to what this object says now."""
        wanted = self._bundle()
        self.generation += 1
        began = time.monotonic()
        state = self.agent.driver.run_operations(operations, wanted, self.running.digest, self.generation)
        took = time.monotonic() - began
        assert (state.digest, state.on_disk) == (wanted.digest, wanted.digest)
        self.running = wanted
        return took

    def add(self, hosts: list[str]) -> float:
        """Seconds of adding a route for each host."""
        added = {f"{host}/": "pool-1" for host in sorted(hosts)}
        self.entries.update(added)
        return self.operate(tuple(SetMapEntry(MAP, key, value) for key, value in added.items()))

    def remove(self, host: str) -> float:
        """Seconds of removing a route."""
        del self.entries[f"{host}/"]
        return self.operate((DeleteMapEntry(MAP, f"{host}/"),))

    def replace(self, host: str) -> float:
        """Seconds of replacing the whole map by one that has one more host."""
        self.entries[f"{host}/"] = "pool-1"
        return self.operate((ReplaceMap(MAP),))

    def weigh(self, weight: int) -> float:
        """Seconds of changing a server's weight."""
        self.weight = weight
        return self.operate((SetServerWeight("pool-2", "srv-1", weight),))


def median(found: list[float]) -> float:
    """The middle one."""
    return sorted(found)[len(found) // 2]


def measure(count: int) -> dict[str, object]:
    """All figures as plain data, times in seconds."""
    with running_agent("unix", "--drift-every", "600") as agent:
        routes = Routes(agent, count)
        figures: dict[str, object] = {
            "routes": count,
            "push_of_everything_s": routes.push(),
            "one_route_median_s": median([routes.add([f"one{number}.example"]) for number in range(7)]),
            "ten_thousand_routes_s": routes.add([f"many{number}.example" for number in range(MANY)]),
            "one_deletion_s": routes.remove("one0.example"),
            "whole_map_s": routes.replace("b.example"),
            "one_weight_s": routes.weigh(7),
            "reloads": agent.state().reloads - 1,
        }
        answers = [agent.get(host)[0] for host in ("one6.example", "many9.example", "b.example", "one0.example")]
        assert answers == [200, 200, 200, 404]
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in figures.items()}


def main() -> int:
    """Print the figures; 1 when something reloaded or one route takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=100_000)
    figures = measure(parser.parse_args().routes)
    for name, value in figures.items():
        print(f"{name:24} {value}")
    print(json.dumps(figures))
    return int(figures["reloads"] != 0 or float(str(figures["one_route_median_s"])) > ONE_ROUTE_GOAL_S)


if __name__ == "__main__":
    raise SystemExit(main())
