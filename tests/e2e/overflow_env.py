"""Real HAProxy nodes of several regions that run compiled bundles as peers, with servers that say where they stand."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import AccountShare, OverflowPorts, Pool, Region, RegionNode, RegionShare, Snapshot
from apps.compiler.model.listener_options import ConnectionLimit
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import (
    HealthCheck,
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
from apps.compiler.policies import NOTHING, rule_set
from apps.compiler.targets.haproxy.overflow.limits import LIMITS_MAP
from tests.e2e.limit_windows import in_ten_seconds
from tests.e2e.region_servers import HOST, Gate, instant_servers, slow_server, stop, wait_for
from tests.ports import spare_port

KEY = "7" * 64
POOL = "pool-1"
TESTS_MAP = "maps/tests.map"
# Who has died refuses at once; who is slow, as all are on a busy machine, has not died.
CHECK = HealthCheck(path="/", interval_ms=500, timeout_ms=10_000, rise=1, fall=2)
READY_S = 120.0  # of a busy machine
NO_LIMIT = Limit()


def rate(value: int) -> Limit:
    """So many requests per second."""
    return Limit(LimitKind.RATE, value)


def in_flight(value: int) -> Limit:
    """So many requests at once."""
    return Limit(LimitKind.CONNECTIONS, value)


COUNTERS = ("st_limits", "st_advance", "st_full", "st_flow")


@dataclass(frozen=True, slots=True)
class RegionSetup:
    """What the tests say of one region: its limit, how many nodes and servers it has.

    Its servers answer after `delay_s`, or, with `held`, when all who ask together have been sent somewhere. The others
    answer with a body of `body_bytes`.
    """

    limit: Limit = NO_LIMIT
    nodes: int = 1
    servers: int = 1
    scaler: float = 1.0
    delay_s: float = 0.0
    held: bool = False
    body_bytes: int = 0


@dataclass
class Node:
    """One running HAProxy: its facts for the others, its listener's port, its directory, its process."""

    facts: RegionNode
    port: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    def ask(
        self, method: str = "GET", *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own."""
        return ask(self.port, method, body=body, headers=headers)

    def command(self, line: str) -> str:
        """One Runtime API command."""
        with socket.socket(socket.AF_UNIX) as runtime:
            runtime.settimeout(READY_S)
            runtime.connect(str(self.directory / "worker.sock"))
            runtime.sendall(line.encode() + b"\n")
            return b"".join(iter(lambda: runtime.recv(65536), b"")).decode()

    def down(self) -> list[str]:
        """Servers that it has checked and found down, as `backend/server`."""
        rows = (row.split(",") for row in self.command("show stat -1 4 -1").splitlines() if ",DOWN" in row)
        return [f"{row[0]}/{row[1]}" for row in rows if "track" not in ",".join(row)]

    def queued(self) -> int:
        """Requests that wait for a slot."""
        rows = [row.split(",") for row in self.command("show stat -1 6 -1").splitlines() if row]
        column = rows[0].index("qcur")
        return sum(int(row[column] or 0) for row in rows[1:])

    def flows(self) -> dict[str, int]:
        """`st_flow`: where requests went that did not simply stay."""
        rows = (line.split() for line in self.command("show table st_flow").splitlines() if "key=" in line)
        return {row[1].removeprefix("key="): int(row[-1].removeprefix("gpc0=")) for row in rows}

    def admitted(self) -> dict[str, int]:
        """What this node believes that each key admitted in the last ten seconds."""
        found = {}
        for line in self.command("show table st_limits").splitlines():
            if "key=" in line:
                words = dict(word.split("=", 1) for word in line.split()[1:])
                found[words["key"]] = int(words["gpc0_rate(10000)"])
        return found

    def wait_answers(self) -> None:
        """Until its worker does."""
        wait_until(lambda: self.command("show info") != "", f"{self.facts.id} answers")

    def has_learned(self) -> bool:
        """Whether the first lesson is over, that of the predecessor and that of the peers: HAProxy's two lowest flags.

        It begins five seconds after a start. What is counted during it may come back from a peer as it was before.
        """
        first = self.command("show peers").splitlines()[0]
        return int(first.partition("flags=")[2].split()[0], 16) & 3 == 3

    def kill(self) -> None:
        """End master and worker at once, as a machine that loses power."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
            self.process = None

    def reload(self) -> None:
        """A new worker on the same files."""
        before = self._worker()
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR2)
        wait_until(lambda: self._worker() != before, "a new worker answers")

    def _worker(self) -> str:
        return next(line for line in self.command("show info").splitlines() if line.startswith("Pid:"))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client got; `region` is the server's word."""

    status: int
    headers: Mapping[str, str]

    @property
    def region(self) -> str:
        """Which region's server answered."""
        return self.headers.get("x-region", "")


def ask(
    port: int,
    method: str = "GET",
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    path: str = "/",
) -> Answer:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_S)
    try:
        connection.request(method, path, body=body, headers={"Host": HOST, **(headers or {})})
        response = connection.getresponse()
        response.read()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()})
    finally:
        connection.close()


def wait_until(true: Any, what: str, patience: float = READY_S) -> None:
    """Wait for a condition; fails with `what` when it does not come."""
    deadline = time.monotonic() + patience
    while True:
        try:
            if true():
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


@dataclass
class OverflowEnv:
    """All regions; `regions[0]` is `rgn-1` and so on, in the order in which they were described."""

    setups: list[RegionSetup]
    when_full: WhenFull
    root: Path
    pool_changes: Mapping[str, Any] = field(default_factory=dict)
    without: str = ""
    real_windows: bool = False
    connections: tuple[int, ...] = ()
    rps: tuple[int, ...] = ()
    rules: Rules = NOTHING
    client_limit: ConnectionLimit | None = None
    nodes: list[list[Node]] = field(default_factory=list)
    servers: list[list[int]] = field(default_factory=list)
    stop_servers: list[Callable[[], None]] = field(default_factory=list)
    gate: Gate = field(default_factory=Gate)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions with their nodes' facts, as every bundle knows them."""
        return tuple(
            Region(f"rgn-{number}", f"region-{number}", tuple(node.facts for node in nodes))
            for number, nodes in enumerate(self.nodes, 1)
        )

    def snapshot(self, index: int) -> Snapshot:
        """What the fleet of one region runs; the others follow in the order of their numbers."""
        setup = self.setups[index]
        others = tuple(
            RegionShare(f"rgn-{number}", other.limit, other.scaler, other.servers)
            for number, other in enumerate(self.setups, 1)
            if number != index + 1
        )
        servers = tuple(
            Server(f"srv-{index * 10 + number}", f"s{number}", "127.0.0.1", port)
            for number, port in enumerate(self.servers[index], 1)
        )
        pool = Pool(
            id=POOL,
            label="acme/shop",
            account="acme",
            protocol=Protocol.HTTP,
            servers=servers,
            health_check=CHECK,
            limit=setup.limit,
            capacity_scaler=setup.scaler,
            elsewhere=others,
            when_full=self.when_full,
        )
        pool = replace(pool, **self.pool_changes)
        shares = (WeightedPool(POOL, 100),)
        rules = rule_set(self.rules)
        rule_sets = {rules.id: rules} if self.rules != NOTHING else {}
        held = next(iter(rule_sets), "")
        route = Route("route-1", "acme/shop", "acme", HOST, "/", PathKind.PREFIX, pools=shares, rule_set=held)
        listener = Listener("lst-1", "web", Protocol.HTTP, 80, client_limit=self.client_limit)
        if pool.protocol is Protocol.TCP:
            listener = Listener("lst-1", "db", Protocol.TCP, 80, default_pool_id=POOL)
        routes = () if pool.protocol is Protocol.TCP else (route,)
        return Snapshot(
            fleet=f"fleet-{index + 1}",
            region=f"region-{index + 1}",
            load_balancers=(LoadBalancer("lb-1", "front", "acme", (listener,), routes, tuple(rule_sets.values())),),
            pools=(pool,),
            local_development=True,
            region_id=f"rgn-{index + 1}",
            regions=self.regions,
            overflow_key=KEY,
            overflow_ports=OverflowPorts(),
            shares=self._shares(index),
        )

    def _shares(self, index: int) -> tuple[AccountShare, ...]:
        if self.rps:
            return (AccountShare("acc-1", "acme", 100, self.rps[index]),)
        return (AccountShare("acc-1", "acme", 25),) if self.connections else ()

    def bundle(self, index: int) -> Bundle:
        """Compiled; fails when anything was left out."""
        compilation = compile_snapshot(self.snapshot(index))
        assert compilation.left_out == ()
        bundle = compilation.output
        bundle = replace(bundle, files={**bundle.files, "haproxy.cfg": self._taken_away(bundle.files["haproxy.cfg"])})
        return bundle if self.real_windows else in_ten_seconds(bundle)

    def _taken_away(self, config: bytes) -> bytes:
        """The file without what `without` says: a whole line, or one word at the end of lines."""
        if not self.without:
            return config
        text = config.decode()
        assert self.without in text, "the safeguard to take away is not there"
        if self.without.startswith(" "):
            return text.replace(self.without, "\n" if self.without.endswith("\n") else "").encode()
        return "".join(line for line in text.splitlines(keepends=True) if self.without not in line).encode()

    def start(self, node: Node, bundle: Bundle) -> None:
        """Lay the files out as an agent does, and start HAProxy on them."""
        for path, content in bundle.files.items():
            (node.directory / path).parent.mkdir(parents=True, exist_ok=True)
            (node.directory / path).write_bytes(content)
        ports = {"lst-1": node.port, "overflow": node.facts.overflow_port, "overflow-tcp": node.facts.overflow_tcp_port}
        settings = {
            "SPILLWAY_RUN": str(node.directory),
            "SPILLWAY_GENERATION": "1",
            "SPILLWAY_DIGEST": bundle.digest,
            "SPILLWAY_PROBE": "probe",
            "SPILLWAY_NODE": bundle.nodes[node.facts.name],
        }
        for region, most in zip(self.nodes, self.connections, strict=False):
            settings |= {"SPILLWAY_CONNECTIONS": str(most)} if node in region else {}
        settings |= {bind.variable: f"127.0.0.1:{ports[bind.listener_id]}" for bind in bundle.binds}
        lines = ["global", f"    localpeer {bundle.nodes[node.facts.name]}"]
        lines += [f"    setenv {name} {value}" for name, value in settings.items()]
        lines.append(f"    server-state-file {node.directory}/servers")
        (node.directory / "servers").write_text("1\n")
        (node.directory / "node.cfg").write_text("\n".join(lines) + "\n")
        program = shutil.which("haproxy") or "/usr/sbin/haproxy"
        command = [program, "-W", "-S", f"{node.directory}/master.sock", "-db"]
        command += ["-f", str(node.directory / "node.cfg"), "-f", str(node.directory / "haproxy.cfg")]
        log = (node.directory / "log").open("ab")
        node.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def wait_ready(self) -> None:
        """Until every node answers, knows its peers and sees its servers and the other regions up.

        Whoever was checked before it had started would be checked again a second later: its nodes are told sooner.
        """
        for node in self.all_nodes():
            node.wait_answers()
        wait_for(port for ports in self.servers for port in ports)
        for node in self.all_nodes():
            for name in node.down():
                node.command(f"set server {name} health up")
        for node in self.all_nodes():
            wait_until(lambda node=node: _is_ready(node, self), f"{node.facts.id} is ready")

    def wait_learned(self) -> None:
        """Until no node is taught anything that it knows better."""
        for node in self.all_nodes():
            wait_until(node.has_learned, f"{node.facts.id} has learned from its peers")

    def neighbours(self, node: Node) -> list[Node]:
        """The nodes of the same region."""
        return next(nodes for nodes in self.nodes if node in nodes)

    def peers_of(self, node: Node) -> list[Node]:
        """Those with which a node exchanges what it counted, itself among them: for TCP the nodes of all regions."""
        return self.all_nodes() if self.pool_changes.get("protocol") is Protocol.TCP else self.neighbours(node)

    def start_all(self) -> None:
        """Start every node, peers one after another.

        Two that call each other at the same moment both hang up (`coll=1` in `show peers`) and try again seconds later.
        """
        for index, nodes in enumerate(self.nodes):
            bundle = self.bundle(index)
            for node in nodes:
                self.start(node, bundle)
                if len(self.peers_of(node)) > 1:
                    node.wait_answers()

    def all_nodes(self) -> list[Node]:
        """Every node of every region."""
        return [node for nodes in self.nodes for node in nodes]

    def forget(self) -> None:
        """Empty the shared counters on every node, as after ten quiet seconds; what peers were still to say as well."""
        wait_until(self._has_forgotten, "nothing is counted any more")

    def _has_forgotten(self) -> bool:
        asked = [(node, f"table {table}") for node in self.all_nodes() for table in COUNTERS]
        for node, table in asked:
            node.command(f"clear {table}")
        return not any(re.search("used:[1-9]", node.command(f"show {table}")) for node, table in asked)

    def put_back(self) -> None:
        """As after its start: nothing counted, limits as compiled, no test that may pass."""
        self.forget()
        for node in self.all_nodes():
            node.command(f"clear map {TESTS_MAP}")
            for row in (node.directory / LIMITS_MAP).read_text().splitlines():
                node.command(f"set map {LIMITS_MAP} {row}")

    def set_limit(self, region: int, word: str, *, where: Sequence[int]) -> None:
        """Change what the nodes of some regions believe of one region's limit, at run time."""
        for index in where:
            for node in self.nodes[index]:
                node.command(f"set map {LIMITS_MAP} {POOL}/rgn-{region} {word}")

    def asked_together(self, count: int, headers: Mapping[str, str] | None = None) -> Counter[str]:
        """Requests in the first region, each sent when the last is counted, that are all under way at one moment.

        Counts by region or status. Two at the same instant may both be admitted to the last place, in two threads.
        """
        found: list[str] = []
        node = self.nodes[0][0]

        def one() -> None:
            answer = node.ask(headers=headers)
            found.append(answer.region or f"status {answer.status}")

        with self.gate.closed():
            threads = [threading.Thread(target=one) for _ in range(count)]
            for number, thread in enumerate(threads, 1):
                thread.start()
                wait_until(lambda so_far=number: self._sent(node, found) == so_far, "it was sent somewhere")
        for thread in threads:
            thread.join()
        return Counter(found)

    def _sent(self, node: Node, found: Sequence[str]) -> int:
        """How many requests are held by a server, wait for a slot or are answered."""
        return self.gate.waiting + node.queued() + len(found)


def _is_ready(node: Node, env: OverflowEnv) -> bool:
    peers = node.command("show peers")
    return peers.count("state=EST") >= len(env.peers_of(node)) - 1 and not node.down()


@contextmanager
def regions(
    *setups: RegionSetup,
    when_full: WhenFull = WhenFull.SPREAD,
    without: str = "",
    real_windows: bool = False,
    connections: tuple[int, ...] = (),
    rps: tuple[int, ...] = (),
    rules: Rules = NOTHING,
    client_limit: ConnectionLimit | None = None,
    **pool_changes: Any,
) -> Iterator[OverflowEnv]:
    """Start everything, wait until it is ready, stop it at the end; `without` takes a safeguard away.

    `connections` are those that a node of each region can have, and then an account gets a quarter of them; `rps` are
    the requests or connections per second that an account has on a node of each region.
    `rules` are those of the route, `client_limit` is the listener's.
    Without `real_windows` limits are those of `in_ten_seconds`, for machines that are busy.
    """
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sw-")))
        env = OverflowEnv(
            list(setups), when_full, root, pool_changes, without, real_windows, connections, rps, rules, client_limit
        )
        env.servers = _start_servers(stack, env, setups)
        number = 0
        for setup in setups:
            env.nodes.append([_node(root, number := number + 1) for _ in range(setup.nodes)])
        stack.callback(lambda: list(map(Node.kill, env.all_nodes())))
        env.start_all()
        env.wait_ready()
        yield env


def _node(root: Path, number: int) -> Node:
    directory = root / f"n{number}"
    directory.mkdir()
    facts = RegionNode(f"node-{number}", f"n{number}", "127.0.0.1", spare_port(), spare_port(), spare_port())
    return Node(facts, spare_port(), directory)


def _start_servers(stack: ExitStack, env: OverflowEnv, setups: tuple[RegionSetup, ...]) -> list[list[int]]:
    ports: list[list[int]] = []
    instant: dict[int, tuple[str, int]] = {}
    for number, setup in enumerate(setups, 1):
        if setup.delay_s or setup.held:
            wait = env.gate.pass_through if setup.held else partial(time.sleep, setup.delay_s)
            slow = [slow_server(stack, f"rgn-{number}", wait) for _ in range(setup.servers)]
            ports.append([int(server.server_address[1]) for server in slow])
            env.stop_servers.append(partial(stop, slow))
            continue
        ports.append([spare_port() for _ in range(setup.servers)])
        instant |= dict.fromkeys(ports[-1], (f"rgn-{number}", setup.body_bytes))
    # Else the health checks, which begin as the pool says, would find them down.
    bound = ("accept-proxy",) if "proxy_protocol" in env.pool_changes else ()
    instant_servers(stack, env.root, instant, *bound)
    return ports


def served(node: Node, count: int, per_second: float) -> Counter[str]:
    """Ask `count` times at a constant rate, each on its own connection; counts by region or `status 503`."""
    found: Counter[str] = Counter()
    begin = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begin + number / per_second - time.monotonic()))
        answer = node.ask()
        found[answer.region if answer.status == 200 else f"status {answer.status}"] += 1
    return found
