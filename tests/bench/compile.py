"""Bench of COMPILE: snapshots of growing size to bundles, one changed route, and the memory they take."""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.model.policy import Cors, HeaderChanges, ResponseHeaders, Rules, SecurityHeaders
from apps.compiler.model.shared import Listener, LoadBalancer, PathKind, Protocol, Route, Server, WeightedPool
from apps.compiler.plan import Runtime, plan
from apps.compiler.policies import rule_set
from apps.compiler.recompile import compile_change

POOLS = 1000
POLICIES = 20
SIZES = (1000, 10_000, 100_000)


def env(routes: int) -> Snapshot:
    """That many routes of 100 accounts on their own hosts, POOLS pools with two servers each."""
    pools = tuple(_pool(number) for number in range(1, POOLS + 1))
    listeners = (Listener("lst-1", "http", Protocol.HTTP, 8080),)
    front = LoadBalancer("lb-1", "front", "operator", listeners, tuple(_route(each) for each in range(1, routes + 1)))
    return Snapshot("bench", "region", (front,), pools)


def _pool(number: int) -> Pool:
    servers = tuple(
        Server(f"srv-{2 * number + each}", f"server-{each}", f"10.{number // 250}.{number % 250}.{each + 1}", 8080)
        for each in range(2)
    )
    return Pool(f"pool-{number}", f"pool-{number}", f"account-{number % 100}", Protocol.HTTP, servers=servers)


def _route(number: int) -> Route:
    host = f"h{number // 10}.customer-{number // 10 % 100}.example"
    shares = (WeightedPool(f"pool-{number % POOLS + 1}", 100),)
    return Route(
        f"route-{number}", f"route {number}", f"account-{number // 10 % 100}",
        host, f"/service-{number % 10}", PathKind.PREFIX, pools=shares,
    )  # fmt: skip


def with_policies(snapshot: Snapshot) -> Snapshot:
    """The same, and each route follows one of POLICIES policies."""
    sets = tuple(rule_set(_rules(number)) for number in range(POLICIES))
    front = snapshot.load_balancers[0]
    routes = tuple(replace(route, rule_set=sets[index % POLICIES].id) for index, route in enumerate(front.routes))
    return replace(snapshot, load_balancers=(replace(front, routes=routes, rule_sets=sets),))


def _rules(number: int) -> Rules:
    return Rules(
        request_headers=HeaderChanges(set=(("X-Team", f"team-{number}"), ("X-Client", "{client_address}"))),
        response_headers=ResponseHeaders(remove=("Server",)),
        security_headers=SecurityHeaders(hsts_seconds=60 + number, no_sniff=True),
        cors=Cors((f"https://app-{number}.example",), ("GET", "PUT"), credentials=True),
    )


def taken_over(snapshot: Snapshot) -> Snapshot:
    """The same with one route in the middle that follows another policy."""
    front = snapshot.load_balancers[0]
    middle = len(front.routes) // 2
    wanted = front.rule_sets[(middle + 1) % POLICIES].id
    routes = (*front.routes[:middle], replace(front.routes[middle], rule_set=wanted), *front.routes[middle + 1 :])
    return replace(snapshot, load_balancers=(replace(front, routes=routes),))


def changed(snapshot: Snapshot) -> Snapshot:
    """The same with one route in the middle moved to another pool."""
    front = snapshot.load_balancers[0]
    middle = len(front.routes) // 2
    moved = replace(front.routes[middle], pools=(WeightedPool("pool-7", 1),))
    routes = (*front.routes[:middle], moved, *front.routes[middle + 1 :])
    return replace(snapshot, load_balancers=(replace(front, routes=routes),))


def best_of(times: int, work: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds: the one that was disturbed least."""
    taken = []
    for _ in range(times):
        gc.collect()
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def peak_mb() -> float:
    """Highest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_change(snapshot: Snapshot, wanted: Snapshot) -> tuple[float, Bundle, Bundle]:
    """Seconds to compile a snapshot in which one route changed, and the bundles before and after."""
    before = compile_snapshot(snapshot)
    taken = best_of(3, partial(compile_change, before, snapshot, wanted))
    after = compile_change(before, snapshot, wanted).output
    if after.digest != compile_snapshot(wanted).output.digest:
        raise AssertionError("The short way and the long way disagree.")
    return taken, before.output, after


def run() -> dict[str, float]:
    """All measurements; seconds unless the name says otherwise."""
    results: dict[str, float] = {}
    for size in SIZES:
        snapshot = env(size)
        results[f"compile_{size}_routes_s"] = best_of(3, partial(compile_snapshot, snapshot))
    results["peak_mb"] = peak_mb()
    taken, before, after = one_change(snapshot, changed(snapshot))
    results["one_change_s"] = taken
    results["plan_one_change_s"] = best_of(3, partial(plan, before, after))
    decision = plan(before, after)
    results["operations_for_one_change"] = len(decision.operations) if isinstance(decision, Runtime) else -1
    followed = with_policies(snapshot)
    results["compile_100000_routes_with_20_policies_s"] = best_of(3, partial(compile_snapshot, followed))
    results["take_over_a_policy_s"], before, after = one_change(followed, taken_over(followed))
    decision = plan(before, after)
    results["operations_to_take_over"] = len(decision.operations) if isinstance(decision, Runtime) else -1
    results["growth_100k_over_10k"] = results["compile_100000_routes_s"] / results["compile_10000_routes_s"]
    return results


def main() -> int:
    """Print a table and one line of JSON; 1 when a goal is missed."""
    results = run()
    for name, value in results.items():
        print(f"{name:32} {value:10.3f}")
    print(json.dumps(results, sort_keys=True))
    good = results["compile_100000_routes_s"] < 2 and results["compile_100000_routes_with_20_policies_s"] < 3
    good = good and results["peak_mb"] < 400 and results["one_change_s"] < 0.1
    return 0 if good and results["operations_to_take_over"] >= 0 else 1


if __name__ == "__main__":
    sys.exit(main())
