"""Regions of real HAProxy nodes that run what the compiler makes of a small environment.

Every pool is asked for by a host of its own (`pool-3.example`) and has a backend with a limit in each region. Nodes get
their `node.cfg` as the agent would write it; those of a region are peers.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Pool, Region, RegionNode, RegionShare, Snapshot
from apps.compiler.model.shared import (
    Limit,
    LimitKind,
    Listener,
    LoadBalancer,
    PathKind,
    Protocol,
    Route,
    Server,
    WeightedPool,
    WhenFull,
)
from tests.bench.backends import stop
from tests.ports import spare_port

SECRET = "5ec2e7" * 8
LISTENER = "lst-1"


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """A pool: for each region its limit and its servers' ports."""

    limits: tuple[Limit, ...]
    ports: tuple[tuple[int, ...], ...]
    when_full: WhenFull = WhenFull.SPREAD


@dataclass(frozen=True, slots=True)
class Node:
    """One HAProxy: where clients reach it."""

    id: str
    region_id: str
    directory: Path
    port: int
    reach: RegionNode

    def command(self, line: str) -> str:
        """One Runtime API command."""
        with socket.socket(socket.AF_UNIX) as runtime:
            runtime.connect(str(self.directory / "worker.sock"))
            runtime.sendall(line.encode() + b"\n")
            return b"".join(iter(lambda: runtime.recv(65536), b"")).decode()

    def cpu_seconds(self) -> float:
        """CPU time that the worker has used, to the nanosecond: ticks of a hundredth miss what is short and often."""
        found = re.search(r"^Pid: (\d+)$", self.command("show info"), re.MULTILINE)
        assert found is not None
        threads = Path(f"/proc/{found[1]}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


def host(pool: int) -> str:
    """What clients ask for to reach the pool with that number, from 1."""
    return f"pool-{pool}.example"


def rate(value: int) -> Limit:
    """A limit of so many requests/s."""
    return Limit(LimitKind.RATE, value)


def in_flight(value: int) -> Limit:
    """A limit of so many requests at a time."""
    return Limit(LimitKind.CONNECTIONS, value)


def snapshot_of(plans: Sequence[PoolPlan], regions: Sequence[Region], own: int) -> Snapshot:
    """What the fleet of region `own` (from 0) must run."""
    pools = tuple(_pool(number, plan, own) for number, plan in enumerate(plans, 1))
    routes = tuple(
        Route(f"route-{number}", f"route {number}", "bench", host(number), "/", PathKind.PREFIX, pools=(share,))
        for number, share in enumerate((WeightedPool(pool.id, 100) for pool in pools), 1)
    )
    listener = Listener(LISTENER, "web", Protocol.HTTP, 80)
    front = LoadBalancer("lb-1", "front", "bench", (listener,), routes)
    fleet = f"fleet-{own + 1}"
    whole = Snapshot(fleet, fleet, (front,), pools, local_development=True, region_id=f"rgn-{own + 1}")
    return replace(whole, regions=tuple(regions), overflow_key=SECRET)


def plain(snapshot: Snapshot) -> Snapshot:
    """The same pools without limits and without other regions: nothing is counted."""
    pools = tuple(replace(pool, limit=Limit(), elsewhere=()) for pool in snapshot.pools)
    return replace(snapshot, pools=pools, regions=(), region_id="", overflow_key="")


def _pool(number: int, plan: PoolPlan, own: int) -> Pool:
    """The pool as region `own` sees it; the others are tried in their order after it.

    A plan for the first regions only leaves the pool without servers in the rest.
    """
    count = len(plan.limits)
    here = own < count
    others = [each % count for each in range(own + 1, own + count)] if here else range(count)
    return Pool(
        f"pool-{number}",
        f"pool {number}",
        "bench",
        Protocol.HTTP,
        servers=tuple(
            Server(f"srv-{(number * count + own) * 100 + each}", f"vm {each}", "127.0.0.1", port)
            for each, port in enumerate(plan.ports[own] if here else ())
        ),
        limit=plan.limits[own] if here else Limit(),
        server_timeout_ms=60_000,
        elsewhere=tuple(
            RegionShare(f"rgn-{other + 1}", plan.limits[other], ready_servers=len(plan.ports[other]))
            for other in others
        ),
        when_full=plan.when_full,
    )


def write_node(bundle: Bundle, node: Node) -> None:
    """Lay the files out as the agent does."""
    for path, content in bundle.files.items():
        (node.directory / path).parent.mkdir(parents=True, exist_ok=True)
        (node.directory / path).write_bytes(content)
    ports = {
        LISTENER: node.port,
        "overflow": node.reach.overflow_port,
        "overflow-tcp": node.reach.overflow_tcp_port,
        "peers": node.reach.peer_port,
    }
    settings = {"RUN": str(node.directory), "GENERATION": "1", "DIGEST": bundle.digest, "PROBE": "probe"}
    settings = {f"SPILLWAY_{name}": value for name, value in settings.items()} | {"SPILLWAY_NODE": node.id}
    settings |= {bind.variable: f"127.0.0.1:{ports[bind.listener_id]}" for bind in bundle.binds}
    lines = ["global", *(f"    setenv {name} {value}" for name, value in settings.items())]
    lines += [f"    localpeer {node.id}"] if node.id in bundle.nodes.values() else []
    lines.append(f"    server-state-file {node.directory}/servers")
    (node.directory / "servers").write_text("1\n")
    (node.directory / "node.cfg").write_text("\n".join(lines) + "\n")


@contextmanager
def on_cores(cores: Set[int]) -> Iterator[None]:
    """What is started meanwhile runs on these cores only; on any when there are none."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def running_node(bundle: Bundle, node: Node) -> Iterator[Node]:
    """One HAProxy on the bundle; its sockets answer."""
    write_node(bundle, node)
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    files = [str(node.directory / name) for name in ("node.cfg", "haproxy.cfg")]
    with (node.directory / "log").open("wb") as log:
        process = subprocess.Popen([program, "-W", "-db", "-f", files[0], "-f", files[1]], stdout=log, stderr=log)
    try:
        _until(lambda: _answers(node.port), process, node)
        yield node
    finally:
        stop(process)


@contextmanager
def running_env(
    directory: Path, plans: Sequence[PoolPlan], nodes: Sequence[int], first: Set[int] = frozenset()
) -> Iterator[tuple[tuple[Node, ...], ...]]:
    """Regions with that many nodes each, up, joined as peers and sure of each other's health.

    The first node runs on the cores `first`.
    """
    regions, counter = list[Region](), iter(range(1, sum(nodes) + 1))
    for number, count in enumerate(nodes, 1):
        members = tuple(_reach(next(counter)) for _ in range(count))
        regions.append(Region(f"rgn-{number}", f"region {number}", members))
    with ExitStack() as stack:
        env: list[tuple[Node, ...]] = []
        for own, region in enumerate(regions):
            compiled = compile_snapshot(snapshot_of(plans, regions, own))
            assert not compiled.left_out, compiled.left_out
            found = [Node(each.id, region.id, directory / each.id, spare_port(), each) for each in region.nodes]
            with on_cores(frozenset() if env else first):
                started = [stack.enter_context(running_node(compiled.output, found[0]))]
            started += [stack.enter_context(running_node(compiled.output, node)) for node in found[1:]]
            env.append(tuple(started))
        for together in env:
            _wait_for_peers(together)
        yield tuple(env)


def _reach(number: int) -> RegionNode:
    return RegionNode(f"node-{number}", f"n{number}", "127.0.0.1", spare_port(), spare_port(), spare_port())


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _until(true: object, process: subprocess.Popen[bytes], node: Node) -> None:
    assert callable(true)
    end = time.monotonic() + 20
    while not true():
        if process.poll() is not None or time.monotonic() > end:
            raise AssertionError((node.directory / "log").read_text())
        time.sleep(0.02)


def _wait_for_peers(nodes: Sequence[Node]) -> None:
    """Every node has said hello to all its peers, and health checks between regions have run twice."""
    end = time.monotonic() + 30
    while any(said.count("last_status=ESTA") < said.count("(remote") for said in map(_peers, nodes)):
        if time.monotonic() > end:
            raise AssertionError(_peers(nodes[0]))
        time.sleep(0.2)
    time.sleep(2.5)


def _peers(node: Node) -> str:
    return node.command("show peers")


def set_bounds(env: Sequence[Sequence[Node]], pool: int, region_id: str, word: str) -> None:
    """Change `<in 10 s>|<in 1 s>|<in flight>` of a pool in a region on all nodes, without a reload."""
    for node in (node for region in env for node in region):
        said = node.command(f"set map maps/limits.map pool-{pool}/{region_id} {word}|backend").strip()
        assert not said, said
