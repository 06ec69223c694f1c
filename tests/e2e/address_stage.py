"""PUSH, for tests: a network of namespaces with nodes, each a real agent with its haproxy, and clients."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model import (
    FixedResponse,
    FleetAddress,
    FleetAddressKind,
    Listener,
    LoadBalancer,
    PathKind,
    Protocol,
    Region,
    RegionNode,
    Route,
    Snapshot,
)
from apps.drivers.proxy.contract import NodeState, NodeTarget, ProxyError
from apps.drivers.proxy.registry import open_driver
from tests.conformance.real_agent import short_folder

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90.0
ROUTER = "10.77.0.254"
VIP, SECOND_VIP, ANYCAST, ANYCAST_6 = "10.77.0.100", "10.77.0.101", "192.0.2.10", "2001:db8:7::10"


def missing_here(*programs: str) -> str:
    """Why this machine cannot have such a network, as a sentence; empty when it can."""
    for program in ("ip", *programs):
        if not shutil.which(program):
            return f"there is no {program} on this machine"
    name = f"sw-try-{os.getpid()}"
    if os.geteuid() != 0 or run("ip", "netns", "add", name, check=False).returncode != 0:
        return "network namespaces cannot be made here"
    run("ip", "netns", "del", name)
    return ""


def run(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """One short command."""
    return subprocess.run(words, check=check, capture_output=True, text=True, timeout=30)


def wait_until(true: Callable[[], bool], what: str, patience: float = PATIENCE) -> float:
    """Wait for a condition and return the seconds that it took; fails with `what` when it does not come."""
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < patience, f"waited {patience:.0f} s in vain until {what}"
        time.sleep(0.02)
    return time.monotonic() - begin


class NodeOnNet:
    """One node: a namespace with eth0, an agent in it, and the driver that speaks to it from outside."""

    def __init__(self, folder: Path, space: str, number: int, flags: Sequence[str]) -> None:
        self.name, self.space, self.number = f"us-{number}", space, number
        self.folder = folder
        self.address = f"10.77.0.{number}"
        self.address_6 = f"2001:db8:77::{number}"
        self.flags = list(flags)
        self.driver = open_driver(NodeTarget(self.name, f"unix://{folder}/{self.name}.sock"))
        self.agent: subprocess.Popen[bytes] | None = None

    @property
    def state_dir(self) -> Path:
        """The agent's directory."""
        return self.folder / self.name

    def command(self, *flags: str) -> list[str]:
        """The agent's command line in the node's namespace."""
        python = ["ip", "netns", "exec", self.space, sys.executable, "-m", "apps.agent"]
        return [*python, "--name", self.name, "--state-dir", str(self.state_dir), "--address", self.address, *flags]

    def start(self) -> None:
        """Start the agent and wait until it answers."""
        usual = ["--reload-gap", "0", "--drift-every", "0.5", "--unix", str(self.folder / f"{self.name}.sock")]
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.agent = subprocess.Popen(self.command(*usual, *self.flags), cwd=ROOT, stdout=log, stderr=log)
        wait_until(self.answers, f"the agent of {self.name} answers: {self.log()}")

    def log(self) -> str:
        """What the agent said."""
        path = self.folder / f"{self.name}.log"
        return path.read_text() if path.exists() else ""

    def answers(self) -> bool:
        """Whether the agent can be asked."""
        try:
            self.driver.read_state()
        except ProxyError:
            return False
        return True

    def state(self) -> NodeState:
        """What the agent says."""
        return self.driver.read_state()

    def push(self, bundle: Bundle) -> NodeState:
        """The next generation with this bundle."""
        return self.driver.push_bundle(bundle, self.state().generation + 1)

    def says(self, address: str) -> str:
        """What the agent says of an address: held, standby, announced, withdrawn."""
        return self.state().addresses.get(address, "")

    def has(self, address: str) -> bool:
        """Whether the address is on the node's interface, whoever lives there."""
        return f"inet {address}/" in run("ip", "-n", self.space, "-4", "address", "show", "dev", "eth0").stdout

    def pids(self) -> list[int]:
        """Every process of the node."""
        return [int(word) for word in run("ip", "netns", "pids", self.space).stdout.split()]

    def pids_of(self, program: str) -> list[int]:
        """Those of one program."""
        return [pid for pid in self.pids() if Path(f"/proc/{pid}/comm").read_text().startswith(program)]

    def tell(self, number: int, *programs: str) -> None:
        """A signal to every process of the node, or to those of these programs."""
        pids = [pid for name in programs for pid in self.pids_of(name)] if programs else self.pids()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self, *programs: str) -> None:
        """kill -9 for every process of the node, or for those of these programs."""
        self.tell(signal.SIGKILL, *programs)
        if self.agent is not None and not programs:
            self.agent.wait(10)

    def kill_agent(self) -> None:
        """kill -9 for the agent alone."""
        assert self.agent is not None
        self.agent.kill()
        self.agent.wait(10)

    def stop(self) -> None:
        """End everything of the node, by asking for it and then by force."""
        if self.agent is not None and self.agent.poll() is None:
            self.agent.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.agent.wait(15)
        for _ in range(100):
            if not self.pids():
                break
            self.kill()
            time.sleep(0.05)


@dataclass(frozen=True)
class Asked:
    """One request: when it began and ended (by the machine's monotonic clock), whether it was answered with 200."""

    began: float
    ended: float
    ok: bool


class Load:
    """A client in its own namespace that opens a connection per request, from several threads at once."""

    def __init__(self, space: str, place: str, out: Path, timeout: float) -> None:
        self._out = out
        command = ["ip", "netns", "exec", space, sys.executable, "-m", "tests.e2e.address_client", place]
        self._process = subprocess.Popen([*command, str(out), str(timeout)], cwd=ROOT)
        wait_until(lambda: bool(self.asked()), "the client has asked once")

    def asked(self) -> list[Asked]:
        """Every request that has ended so far, in order of its beginning."""
        if not self._out.exists():
            return []
        lines = self._out.read_text().split("\n")[:-1]
        return sorted((Asked(*json.loads(line)) for line in lines), key=lambda each: each.began)

    def failed(self, since: float, until: float = float("inf")) -> tuple[int, int]:
        """Of the requests that began in this time: how many failed, and how many there were."""
        found = [each.ok for each in self.asked() if since <= each.began < until]
        return found.count(False), len(found)

    def lost(self, since: float = 0.0) -> list[str]:
        """When requests failed, after how long; those that began before `since` do not count."""
        found = self.asked()
        failed = [each for each in found if not each.ok and each.began >= since]
        return [f"{each.began - found[0].began:.2f} s, after {each.ended - each.began:.2f} s" for each in failed]

    def stop(self) -> list[Asked]:
        """End the client; everything that it asked."""
        self._process.terminate()
        self._process.wait(20)
        return self.asked()


@dataclass(frozen=True)
class Move:
    """What clients saw of a move: seconds without an answer, requests that failed meanwhile, requests after it."""

    took: float
    lost: int
    after: int
    failed_after: int

    def __str__(self) -> str:
        return (
            f"moved in {self.took:.2f} s, {self.lost} requests lost, {self.after} after it, {self.failed_after} failed"
        )


def seen(asked: Sequence[Asked], since: float) -> Move:
    """What happened after `since`: the move is over with the first request of which every later one succeeds too."""
    later = [each for each in asked if each.began >= since]
    failed = [each for each in later if not each.ok]
    if not failed:
        return Move(0.0, 0, len(later), 0)
    first = next((each for each in later if each.ok and each.began > failed[0].began), None)
    if first is None:
        return Move(float("inf"), len(failed), 0, 0)
    after = [each for each in later if each.began >= first.began]
    return Move(first.ended - since, len(failed), len(after), sum(not each.ok for each in after))


class Net:
    """A bridge in the clients' namespace, and nodes on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tag = f"sw{os.getpid() % 100000}{folder.name[-3:]}"
        self.clients = f"{self.tag}-c"
        self.nodes: list[NodeOnNet] = []
        self._loads: list[Load] = []
        self._add_space(self.clients)
        run("ip", "-n", self.clients, "link", "add", "br0", "type", "bridge")
        self._in(self.clients, "link set br0 up")
        self._in(self.clients, f"address add {ROUTER}/24 dev br0")
        self._in(self.clients, "-6 address add 2001:db8:77::fe/64 dev br0 nodad")

    def _add_space(self, name: str) -> None:
        run("ip", "netns", "add", name)
        self._in(name, "link set lo up")

    def _in(self, space: str, words: str) -> None:
        run("ip", "-n", space, *words.split())

    def add_node(self, number: int, *flags: str) -> NodeOnNet:
        """A node on the bridge, its agent not started yet."""
        space = f"{self.tag}-{number}"
        self._add_space(space)
        ends = ["name", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", space]
        run("ip", "-n", self.clients, "link", "add", *ends)
        self._in(self.clients, f"link set port{number} master br0 up")
        node = NodeOnNet(self.folder, space, number, flags)
        self._in(space, f"address add {node.address}/24 dev eth0")
        self._in(space, f"-6 address add {node.address_6}/64 dev eth0 nodad")
        self._in(space, "link set eth0 up")
        self._in(space, f"route add default via {ROUTER}")
        self.nodes.append(node)
        return node

    def unplug(self, node: NodeOnNet) -> None:
        """Pull the node's cable: nothing more comes from it, and nothing tells so."""
        self._in(self.clients, f"link set port{node.number} down")

    def plug(self, node: NodeOnNet) -> None:
        """Put it in again."""
        self._in(self.clients, f"link set port{node.number} up")

    def load(self, address: str, timeout: float) -> Load:
        """Clients that ask an address all the time, and wait so many seconds for an answer."""
        found = Load(self.clients, f"{address}:80", self.folder / f"asked-{len(self._loads)}", timeout)
        self._loads.append(found)
        return found

    def fetch(self, address: str) -> bool:
        """One request from the clients' namespace."""
        command = ["ip", "netns", "exec", self.clients, sys.executable, "-m", "tests.e2e.address_client"]
        return subprocess.run([*command, f"{address}:80"], cwd=ROOT, check=False, timeout=20).returncode == 0

    def remove(self) -> None:
        """End all processes, then the namespaces."""
        for load in self._loads:
            load.stop()
        for node in self.nodes:
            node.stop()
            run("ip", "netns", "del", node.space, check=False)
        for pid in run("ip", "netns", "pids", self.clients).stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        run("ip", "netns", "del", self.clients, check=False)


@contextmanager
def network() -> Iterator[Net]:
    """A network that is taken away afterwards with everything in it."""
    folder = short_folder()
    net = Net(folder)
    try:
        yield net
    finally:
        net.remove()
        shutil.rmtree(folder, ignore_errors=True)


def fleet_address(number: int, address: str, count: int = 2) -> FleetAddress:
    """A static IP of as many nodes: anycast where it is one of those, else a vip with its number as router id."""
    if address in (ANYCAST, ANYCAST_6):
        return FleetAddress(f"ip-{number}", f"ip-{number}", address, FleetAddressKind.ANYCAST)
    nodes = tuple(f"node-{each}" for each in range(1, count + 1))
    return FleetAddress(f"ip-{number}", f"ip-{number}", address, FleetAddressKind.VIP, number, nodes)


def bundle_of(*addresses: str, body: str = "one", count: int = 2) -> Bundle:
    """What the fleet runs: a listener on port 80 of each address, and one route that answers everything itself."""
    nodes = tuple(
        RegionNode(f"node-{each}", f"us-{each}", f"10.77.0.{each}", 9700, 9800, 9900) for each in range(1, count + 1)
    )
    listeners = tuple(
        Listener(f"lst-{number}", f"l{number}", Protocol.HTTP, 80, address)
        for number, address in enumerate(addresses, 1)
    )
    answer = FixedResponse(200, body=body)
    route = Route("route-1", "all", "acme", "a.example", "/", PathKind.PREFIX, fixed_response=answer)
    snapshot = Snapshot(
        "us",
        "us",
        load_balancers=(LoadBalancer("lb-1", "front", "acme", listeners, (route,)),),
        region_id="rgn-1",
        regions=(Region("rgn-1", "us", nodes),),
        overflow_key="0" * 64,
        addresses=tuple(fleet_address(number, each, count) for number, each in enumerate(addresses, 1)),
    )
    compilation = compile_snapshot(snapshot)
    assert not compilation.quarantined, compilation.quarantined
    return compilation.bundle
