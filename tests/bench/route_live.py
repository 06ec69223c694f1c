"""Bench of PUSH: from the commit of a route to the new pool's answer on all four nodes, beside the bare parts of it.

`python -m tests.bench.route_live [--changes 60]`: SQLite, Redis, one Celery worker, four agents with HAProxy. The bare
parts are one committed row and one Runtime API command per node, one after another, until all four answer.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.installation import HOST, NODES, Installation, built, route, wait_until


class Looker:
    """Kept connections to all four nodes."""

    def __init__(self, installation: Installation) -> None:
        self._connections = {
            node: http.client.HTTPConnection("127.0.0.1", installation.ports[node], timeout=5) for node in NODES
        }

    def until_all_answer(self, path: str, pool: str) -> float:
        """The instant at which the last of the nodes answered with the pool."""
        waiting = set(NODES)
        deadline = time.perf_counter() + 20
        while waiting:
            for node in list(waiting):
                if self._ask(node, path) == pool:
                    waiting.discard(node)
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{waiting} never answered with {pool}")
            time.sleep(0.001)
        return time.perf_counter()

    def _ask(self, node: str, path: str) -> str:
        connection = self._connections[node]
        try:
            connection.request("GET", path, headers={"host": HOST})
            return connection.getresponse().read().decode()
        except (http.client.HTTPException, OSError):
            connection.close()
            return ""


def timed_commit(change: Callable[[], object]) -> float:
    """Make the change; the instant of its commit."""
    from django.db import transaction

    instants: list[float] = []
    with transaction.atomic():
        transaction.on_commit(lambda: instants.append(time.perf_counter()))
        change()
    return instants[0]


def live_times(installation: Installation, changes: int, looker: Looker) -> list[float]:
    """Seconds from commit to the last node's answer, for new routes to either pool."""
    from apps.accounts.models import Account
    from apps.definitions.services import save_object
    from tests.conftest import actor_of

    operator = actor_of("operator", Account.Kind.OPERATOR)
    found = []
    for number in range(changes):
        path, pool = f"/r{number // 2}", ("green", "blue")[number % 2]

        def change(path: str = path, pool: str = pool) -> None:
            save_object(actor=operator, kind="Route", name=path[1:], spec=route(path, pool))

        committed = timed_commit(change)
        found.append(looker.until_all_answer(path, pool) - committed)
        time.sleep(0.05)
    return found


def bare_times(installation: Installation, times: int, looker: Looker) -> list[float]:
    """Seconds of one committed row and one `set map` per node, until all four answer."""
    from apps.agent.process.sockets import ask
    from apps.definitions.models import LoadBalancer, Pool, Route
    from apps.fleet.models import Region

    pools = {pool.name: f"pool-{pool.pk}" for pool in Pool.objects.all()}
    action_map = f"maps/lb-{LoadBalancer.objects.get().pk}-action.map"
    key = f"route-{Route.objects.get(name='home').pk}"
    region = Region.objects.first()
    assert region is not None
    found = []
    for number in range(times):
        pool = ("green", "blue")[number % 2]
        begin = time.perf_counter()
        region.title = f"title {number}"
        region.save(update_fields=("title",))
        for node in NODES:
            answer = ask(
                installation.folder / node / "run" / "worker.sock", f"set map {action_map} {key} {pools[pool]}"
            )
            assert not answer.strip(), answer
        found.append(looker.until_all_answer("/", pool) - begin)
    return found


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of all are not above."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(changes: int) -> dict[str, float]:
    """All four nodes in sync, then changes one by one."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        url = f"sqlite:///{Path(folder) / 'bench.sqlite3'}"
        with built(url, "redis", *NODES) as installation:
            os.environ.update(installation.environment, DJANGO_SETTINGS_MODULE="controlplane.settings")
            import django

            django.setup()
            return _measure(installation, changes)


def _measure(installation: Installation, changes: int) -> dict[str, float]:
    from django.core.management import call_command

    from apps.accounts.models import Account
    from apps.definitions.services import apply_document
    from tests.conftest import actor_of

    call_command("migrate", verbosity=0)
    installation.start("worker")
    installation.start("schedule")
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=installation.document())
    wait_until(lambda: all(installation.get(node, "/") == (200, "blue") for node in NODES), "all nodes answer", 60)
    looker = Looker(installation)
    live_times(installation, 6, looker)  # connections, caches and the first reload gap are not what is measured
    reloads = {node: installation.state(node).reloads for node in NODES}
    found = live_times(installation, changes, looker)
    bare = bare_times(installation, changes, looker)
    more = sum(installation.state(node).reloads - reloads[node] for node in NODES)
    return {
        "changes": float(changes),
        "reloads": float(more),
        "live_p50_ms": statistics.median(found) * 1000,
        "live_p99_ms": percentile(found, 0.99) * 1000,
        "live_max_ms": max(found) * 1000,
        "bare_p50_ms": statistics.median(bare) * 1000,
        "ratio_p50": statistics.median(found) / statistics.median(bare),
    }


def main() -> int:
    """Print a table and one line of JSON; 1 when a goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int, default=200)
    results = measure(parser.parse_args().changes)
    for name, value in results.items():
        print(f"{name:32} {value:10.2f}")
    print(json.dumps(results, sort_keys=True))
    good = results["live_p50_ms"] < 100 and results["live_p99_ms"] < 500 and not results["reloads"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
