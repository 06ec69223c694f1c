"""A network of namespaces with nodes, each a real agent with its haproxy, and clients."""

from __future__ import annotations

import contextlib
import itertools
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
from apps.compiler.model.fleet import FleetAddress, FleetAddressKind, Region, RegionNode, Snapshot
from apps.compiler.model.shared import FixedResponse, Listener, LoadBalancer, PathKind, Protocol, Route
from apps.drivers.proxy.contract import NodeState, NodeTarget, ProxyError
from apps.drivers.proxy.registry import open_driver
from tests.conformance.real_agent import short_folder

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90.0
ASKED_AGAIN = 1.0
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


def name_of(pid: int) -> str:
    """The name of a process; empty when it has just ended, as checks do all the time."""
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


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
        return [pid for pid in self.pids() if name_of(pid).startswith(program)]

    def tell(self, number: int, *programs: str) -> None:
        """A signal to every process of the node, or to those of these programs."""
        pids = [pid for name in programs for pid in self.pids_of(name)] if programs else self.pids()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self, *programs: str) -> None:
        """kill -9 for every process of the node, or for those of these programs; none sees another one die."""
        self.tell(signal.SIGSTOP, *programs)
        self.tell(signal.SIGKILL, *programs)
        if self.agent is not None and not programs:
            self.agent.wait(PATIENCE)

    def kill_agent(self) -> None:
        """kill -9 for the agent alone."""
        assert self.agent is not None
        self.agent.kill()
        self.agent.wait(PATIENCE)

    def stop(self) -> None:
        """End everything of the node, by asking for it and then by force."""
        if self.agent is not None and self.agent.poll() is None:
            self.agent.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.agent.wait(PATIENCE)
        self.end()

    def end(self) -> None:
        """End everything of the node by force."""
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

    @property
    def there(self) -> float:
        """From when on an answer shows that the address was there.

        The kernel asks again after a second: what is answered sooner was heard when it began, however slowly a busy
        machine handled the rest.
        """
        return self.began if self.ended - self.began < ASKED_AGAIN else self.ended


class Load:
    """A client in its own namespace that opens a connection every few milliseconds, whatever becomes of the others."""

    def __init__(self, space: str, address: str, out: Path) -> None:
        self._out = out
        self._read = 0
        self._asked: list[Asked] = []
        command = ["ip", "netns", "exec", space, sys.executable, "-m", "tests.e2e.address_client", address]
        self._process = subprocess.Popen([*command, str(out)], cwd=ROOT)
        wait_until(lambda: bool(self.asked()), "the client has asked once")

    def asked(self) -> list[Asked]:
        """Every request that has ended so far, in order of its end."""
        if self._out.exists():
            with self._out.open("rb") as lines:
                lines.seek(self._read)
                whole = lines.read().rpartition(b"\n")[0]
            self._read += len(whole) + bool(whole)
            self._asked += [Asked(*json.loads(line)) for line in whole.splitlines()]
        return self._asked

    def goes_on(self, requests: int = 100) -> float:
        """Wait for an answer to what is asked from now on, then until as many more have ended; when the first came."""
        since = time.monotonic()

        def answers() -> list[Asked]:
            return [each for each in self.asked() if each.ok and each.began >= since]

        wait_until(lambda: bool(answers()), "clients are answered")
        first = answers()[0].ended
        wait_until(lambda: len(self.begun(first)) >= requests, "clients have gone on asking")
        return first

    def begun(self, since: float, until: float = float("inf")) -> list[Asked]:
        """Requests that began in this time, of those that have ended."""
        return [each for each in self.asked() if since <= each.began < until]

    def lost(self, since: float = 0.0, until: float = float("inf")) -> list[Asked]:
        """Those that began in this time and were never answered, which a slow answer is not."""
        return [each for each in self.begun(since, until) if not each.ok]

    def stop(self) -> None:
        """End the client, and wait for what is under way."""
        self._process.terminate()
        self._process.wait(PATIENCE)


def at_one_moment(requests: Sequence[Asked]) -> bool:
    """Whether all of them were under way at one and the same time: then one event has ended them."""
    return not requests or max(each.began for each in requests) <= min(each.ended for each in requests)


@dataclass(frozen=True)
class Move:
    """What clients saw of a move: the longest time without an answer, what was lost before it was over, and after."""

    away: float
    lost: int
    after: int
    lost_after: int

    def __str__(self) -> str:
        return (
            f"away for {self.away:.2f} s, {self.lost} requests lost; {self.lost_after} of {self.after} after the move"
        )


def seen(load: Load, over: float) -> Move:
    """What clients saw of a move that was over at this time."""
    away, last = 0.0, float("inf")
    for each in load.asked():
        if each.ok:
            away, last = max(away, each.there - last), each.ended
    return Move(away, len(load.lost(until=over)), len(load.begun(over)), len(load.lost(over)))


class Net:
    """A bridge in the clients' namespace, and nodes on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tag = f"sw{os.getpid() % 100000}{folder.name[-3:]}"
        self.clients = f"{self.tag}-c"
        self.nodes: list[NodeOnNet] = []
        self._numbers = itertools.count()
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

    @contextmanager
    def load(self, address: str) -> Iterator[Load]:
        """Clients that ask an address all the time, from a while before the block to its end."""
        load = Load(self.clients, f"{address}:80", self.folder / f"asked-{next(self._numbers)}")
        try:
            wait_until(lambda: len(load.asked()) >= 50, "clients have begun")
            yield load
        finally:
            load.stop()

    def fetch(self, address: str) -> bool:
        """One request from the clients' namespace."""
        command = ["ip", "netns", "exec", self.clients, sys.executable, "-m", "tests.e2e.address_client"]
        return subprocess.run([*command, f"{address}:80"], cwd=ROOT, check=False, timeout=PATIENCE).returncode == 0

    def remove(self) -> None:
        """End all processes, then the namespaces."""
        for node in self.nodes:
            node.end()
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
    assert not compilation.left_out, compilation.left_out
    return compilation.output
