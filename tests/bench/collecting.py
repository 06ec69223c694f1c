"""Bench of OBSERVE: processor time of a collector by the number of nodes, with light agents, PostgreSQL and Redis.

`python -m tests.bench.collecting [--nodes 10 100 1000] [--rounds 10]`: each node has 301 objects, 30 of them with
traffic; twenty nodes are a fleet and have the same 100 pools. A round reads all nodes over mutual TLS, stores, judges
and shows, as `manage.py collect` does. Rounds follow each other at once, and the clock that they are told goes on by
two seconds with each, so that other work on the machine changes only how long it takes. What counts is processor time,
of this process and of the two servers. The first rounds, which tell everything, do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.light_agents import LightNode, write
from tests.bench.tables import facts, table
from tests.ports import spare_port
from tests.servers import postgresql, redis

if TYPE_CHECKING:
    from apps.fleet.models import Node
    from apps.observe.collect.collector import Collector
    from apps.observe.collect.readings import Address

ROOT = Path(__file__).resolve().parents[2]
POOLS, BUSY, FLEET, INTERVAL = 100, 30, 20, 2.0
AGENTS_IN_A_PROCESS = 250
# The window is full and the buckets of before are stored.
WARM_UP = 6
HEADS = (
    "nodes", "ms of a read", "cores of collectors", "cores of PostgreSQL", "cores of Redis", "rows stored in a read",
    "ms of a minute's sums", "MB",
)  # fmt: skip


def processor_s(name: str, word: str) -> float:
    """Seconds that all processes of this name have used that have the word in their command, and their children."""
    found, ticks = 0.0, os.sysconf("SC_CLK_TCK")
    parents = set()
    for each in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            words = (each / "cmdline").read_bytes().decode(errors="replace")
            fields = (each / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if (name in words and word in words) or int(fields[1]) in parents:
            parents.add(int(each.name))
            # Also what ended children used: a connection of a thread ends with it.
            found += sum(map(int, fields[11:15])) / ticks
    return found


def define(nodes: int) -> list[Node]:
    """So many nodes in fleets of twenty, each fleet with pools of an account of its own; what is there stays."""
    from apps.accounts.models import Account
    from apps.definitions.models import Backend, Pool, Server
    from apps.fleet.models import Fleet, Node, Region

    operator, _ = Account.objects.get_or_create(name="operator", defaults={"kind": Account.Kind.OPERATOR})
    for number in range(Node.objects.count(), nodes):
        if number % FLEET == 0:
            customer = Account.objects.create(name=f"owner-{number}")
            region = Region.objects.create(account=operator, name=f"r-{number}", title=f"R {number}")
            fleet = Fleet.objects.create(account=operator, region=region, name=f"f-{number}")
            pools = Pool.objects.bulk_create(
                [Pool(account=customer, name=f"p-{number}-{each}") for each in range(POOLS)]
            )
            backends = Backend.objects.bulk_create(
                [Backend(account=customer, pool=pool, region=region) for pool in pools]
            )
            Server.objects.bulk_create(
                Server(account=customer, backend=backend, name=f"s-{each}", address="10.0.0.1", port=8000 + each)
                for backend in backends
                for each in range(2)
            )
        url = f"https://127.0.0.1:{spare_port()}"
        fleet = Fleet.objects.order_by("pk").last()  # type: ignore[assignment]  # there is one
        Node.objects.create(account=operator, fleet=fleet, name=f"n-{number}", url=url)
    return list(Node.objects.order_by("pk")[:nodes])


def objects_of(node: Node) -> list[tuple[str, str, str]]:
    """A listener, and the pools of its fleet with their servers; those with traffic first."""
    from apps.definitions.models import Server

    found = [("frontend", "lst-1", "")]
    rows = Server.objects.filter(backend__region=node.fleet.region_id).order_by("pk")
    for pk, pool_id in rows.values_list("pk", "backend__pool_id"):
        pool = f"pool-{pool_id}"
        if found[-1][2] != pool:
            found.append(("backend", pool, ""))
        found.append(("server", f"srv-{pk}", pool))
    return found


@contextmanager
def agents(folder: Path, nodes: Sequence[Node]) -> Iterator[None]:
    """Light agents of all these nodes, in a few processes."""
    known: dict[int, list[tuple[str, str, str]]] = {}
    described = [
        LightNode(
            node.name,
            int(node.url.rpartition(":")[2]),
            known.get(node.fleet_id) or known.setdefault(node.fleet_id, objects_of(node)),
            BUSY,
        )
        for node in nodes
    ]
    write(folder, described)
    started = []
    try:
        for first in range(0, len(described), AGENTS_IN_A_PROCESS):
            last = str(first + AGENTS_IN_A_PROCESS)
            command = [sys.executable, "-m", "tests.bench.light_agents", str(folder), str(first), last]
            started.append(subprocess.Popen(command, cwd=ROOT))
        while not all((folder / f"ready-{each.pid}").exists() for each in started):
            time.sleep(0.1)
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


class Rounds:
    """Rounds of a collector that reads these nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        from apps.core.clock import now
        from apps.observe.collect.collector import Collector
        from apps.observe.collect.readings import addresses_of
        from apps.observe.collect.recorder import Recorder

        self.collector: Collector = Collector()
        self.recorder = self.collector.recorder = Recorder()
        self.addresses: list[Address] = addresses_of(nodes)
        self.at = now()
        self.stored = self.read = 0

    async def __call__(self) -> None:
        """As `Collector.tick`, with a clock of its own and as much patience as it takes."""
        self.at += timedelta(seconds=INTERVAL)
        readings: dict[int, Any] = {}
        while len(readings) < len(self.addresses):
            left = [each for each in self.addresses if each.node_id not in readings]
            async for some in self.collector.read(left):
                readings |= some
        wrong = [each.error for each in readings.values() if each.error or each.counters is None]
        if wrong:
            raise SystemExit(f"{len(wrong)} nodes were not read, the first: {wrong[0]}")
        readings = {pk: replace(each, at=self.at, asked_at=self.at) for pk, each in readings.items()}
        self.recorder.gather(readings.values())
        self.recorder.close_buckets(self.at.timestamp())
        self.stored += sum(1 for bucket in self.recorder.pending for _ in bucket.worth_storing())
        moved = await asyncio.to_thread(self.recorder.store, readings, self.at)
        await asyncio.to_thread(self.recorder.show, readings)
        await asyncio.to_thread(self.recorder.tell, moved or [], self.at)
        self.read += len(readings)


async def measure(each: Rounds, rounds: int, folder: str) -> dict[str, float]:
    """What so many rounds cost, once the first are over."""
    for _ in range(WARM_UP):
        await each()
    each.stored = each.read = 0

    # Redis shows nothing but its address.
    address = os.environ["SPILLWAY_REDIS_URL"].partition("//")[2].partition("/")[0]

    def spent() -> tuple[float, float, float]:
        return time.process_time(), processor_s("postgres", folder), processor_s("redis-server", address)

    before = spent()
    for _ in range(rounds):
        await each()
    collector, database, live = (now - then for now, then in zip(spent(), before, strict=True))
    simulated = rounds * INTERVAL
    return {
        "nodes": len(each.addresses),
        "ms_of_a_read": collector / each.read * 1000,
        "collector_cores": collector / simulated,
        "postgresql_cores": database / simulated,
        "redis_cores": live / simulated,
        "rows_of_a_read": each.stored / each.read,
        "sums_ms": await asyncio.to_thread(sums_ms),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def sums_ms() -> float:
    """What the sums of the stored minutes cost, for each of them."""
    from apps.core.clock import now
    from apps.observe.rolling import roll_up

    began = time.process_time()
    minutes = roll_up(int(now().timestamp()) + 3600)
    return (time.process_time() - began) / max(1, minutes) * 1000


@contextmanager
def installation() -> Iterator[Path]:
    """A folder with a migrated PostgreSQL, a Redis and a place for agents, all of them in this process's settings."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sw-")))
        folder.chmod(0o755)
        for name in ("database", "redis", "agents"):
            (folder / name).mkdir()
        pem = folder / "agents"
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "SPILLWAY_DATABASE_URL": stack.enter_context(postgresql(folder / "database")),
            "SPILLWAY_REDIS_URL": stack.enter_context(redis(folder / "redis")),
            "SPILLWAY_AGENT_CA": str(pem / "ca.pem"),
            "SPILLWAY_AGENT_CERTIFICATE": str(pem / "console.pem"),
            "SPILLWAY_AGENT_KEY": str(pem / "console.key"),
        }
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield folder


def main() -> int:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--rounds", type=int, default=10)
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(installation())
        found = []
        for count in asked.nodes:
            nodes = define(count)
            with agents(folder / "agents", nodes):
                found.append(asyncio.run(measure(Rounds(nodes), asked.rounds, str(folder))))
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    print(facts())
    print(table(HEADS, [[f"{value:,.4g}" for value in each.values()] for each in found]))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
