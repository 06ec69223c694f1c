"""Nodes with a real HAProxy count together, over reloads and deaths, and a trial run never joins in."""

from __future__ import annotations

import select
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from apps.agent.check import trial_run as trial_running
from apps.agent.check.trial_run import trial_run
from apps.agent.errors import Refusal
from apps.agent.release import nodecfg
from apps.compiler.bundle import Bind, Bundle, assemble
from apps.compiler.model.operations import SetMapEntry, SetServerMaxconn
from apps.drivers.proxy.contract import CounterReading, Refused
from tests.conformance.bundles import make_bundle, map_text
from tests.conformance.inside import Inside, inside
from tests.conformance.real_agent import RealAgent, wait_until
from tests.e2e.agents import operate, push
from tests.ports import spare_port

pytestmark = [pytest.mark.long, pytest.mark.e2e]

LIMITS, SECRET = "maps/limits.map", "secrets/overflow.map"

# What counts as lately is so long that nothing is forgotten while a busy machine reloads.
CALL_S = 3.0  # within this a HAProxy that has a peer has called it
COUNTED = """    http-request track-sc1 "str(pool-1),concat(/${{SPILLWAY_NODE}})" table st_limits
    http-request sc-inc-gpc0(1)
    http-request set-header x-limit "%[str(pool-1),map_str({limits})]"
    http-request track-sc2 str(pool-1/to/rgn-2/rate) table st_flow
    http-request sc-inc-gpc0(2)
frontend overflow
    bind "${{SPILLWAY_BIND_OVERFLOW}}"
    http-request return status 200 hdr x-spillway-generation "${{SPILLWAY_GENERATION}}" hdr x-spillway-digest \
"${{SPILLWAY_DIGEST}}" if {{ path "/${{SPILLWAY_PROBE}}" }}
    http-request return status 200 content-type text/plain lf-string "%[str(key),map_str({secret})]"
frontend overflow-tcp
    mode tcp
    bind "${{SPILLWAY_BIND_OVERFLOW_TCP}}" accept-proxy
    default_backend queue-2
backend queue-2
    server srv-1 127.0.0.1:9 maxconn {maxconn}
backend to-rgn-2
    option httpchk GET /far
    server node-8 127.0.0.1:{far} check inter 200ms
    server node-9 127.0.0.1:9 check inter 200ms
backend to-rgn-2-rgn-3
    server node-8 127.0.0.1:{far} track to-rgn-2/node-8
backend st_limits
    stick-table type string len 64 size 1k expire 1h peers everywhere store gpc0,gpc0_rate(30m)
backend st_flow
    stick-table type string len 80 size 1k store gpc0
peers everywhere
{peers}"""


@dataclass
class Pair:
    """Two agents whose nodes are peers; `ports` are where the peers meet."""

    agents: tuple[RealAgent, RealAgent]
    ports: tuple[int, int]
    far: int
    overflow: int = field(default_factory=spare_port)
    overflow_tcp: int = field(default_factory=spare_port)
    offsets: tuple[int, int] = (0, 1)

    def bundle(
        self, number: int, *, names: dict[str, str] | None = None, limit: str = "10", maxconn: int = 5
    ) -> Bundle:
        """What the node of this number (0, 1) runs; each has a listener of its own."""
        own = self.agents[number]
        peers = "".join(f"    peer node-{index} 127.0.0.1:{port}\n" for index, port in enumerate(self.ports, 5))
        extra = COUNTED.format(limits=LIMITS, secret=SECRET, maxconn=maxconn, peers=peers, far=self.far)
        base = make_bundle(own.port, extra=extra)
        files = {path: content for path, content in base.files.items() if path != "manifest.json"}
        files |= {LIMITS: map_text({"pool-1": limit}), SECRET: map_text({"key": "7" * 64})}
        binds = (*base.binds, *_guests(self.overflow + 2 * number, self.overflow_tcp + 2 * number))
        return assemble(files, binds, {}, {"us-1": f"node-{5 + number}"} if names is None else names)

    def start(self) -> None:
        """Push to both and wait until they are peers."""
        for number, agent in enumerate(self.agents):
            push(agent, self.bundle(number))
        wait_until(self.are_peers, "the two exchange counters")

    def counters(self, number: int) -> CounterReading:
        """What a node says of its counters."""
        return self.agents[number].driver.read_counters()

    def admitted(self, number: int) -> dict[str, int]:
        """What a node believes that each of the two admitted lately."""
        return dict(self.counters(number).admitted)

    def are_peers(self) -> bool:
        """Whether each of the two exchanges counters with the other."""
        return self.counters(0).peers == {"node-6": True} and self.counters(1).peers == {"node-5": True}


def _guests(overflow: int, overflow_tcp: int) -> tuple[Bind, Bind]:
    return Bind("overflow", None, overflow, "http"), Bind("overflow-tcp", None, overflow_tcp, "tcp")


@contextmanager
def far_region() -> Iterator[int]:
    """A node elsewhere that answers checks with 200; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    stream, _ = server.accept()
                except OSError:
                    return
                with stream, suppress(OSError):  # a check that was out of time has hung up
                    stream.recv(4096)
                    stream.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def met(agents: tuple[RealAgent, RealAgent]) -> Iterator[Pair]:
    """Two nodes whose ports never change."""
    with far_region() as far:
        ports = spare_port(), spare_port()
        yield Pair(agents, ports, far, spare_port((0, 2)), spare_port((0, 2)))


@pytest.fixture
def pair(both: tuple[RealAgent, RealAgent], met: Pair) -> Pair:
    """The two as peers of each other, whatever the last test has left."""
    if not (all(agent.state().serving for agent in met.agents) and met.are_peers()):
        met.start()
    return met


def ask(agent: RealAgent, times: int) -> None:
    """So many requests through a node."""
    assert [agent.get()[0] for _ in range(times)] == [200] * times


def test_each_node_counts_under_its_own_name_and_both_see_both(pair: Pair) -> None:
    # What the test before has counted at one node may still be on its way to the other.
    wait_until(lambda: pair.admitted(0) == pair.admitted(1), "both nodes have seen the same")
    before = pair.admitted(0)
    ask(pair.agents[0], 7)
    ask(pair.agents[1], 3)

    def grown(number: int) -> tuple[int, ...]:
        now = pair.admitted(number)
        return tuple(now.get(key, 0) - before.get(key, 0) for key in ("pool-1/node-5", "pool-1/node-6"))

    wait_until(lambda: grown(0) == (7, 3) == grown(1), "both nodes see what both have admitted")


def test_flows_distances_and_confirmed_ports_are_told(pair: Pair) -> None:
    ask(pair.agents[0], 2)
    wait_until(lambda: "rgn-2" in pair.counters(0).distances_ms, "the other region was checked")
    found = pair.counters(0)
    assert set(found.distances_ms) == {"rgn-2"}
    (flow,) = [row for row in found.rows if row.kind == "flow"]
    assert (flow.object_id, flow.parent_id) == ("pool-1/to/rgn-2/rate", "pool-1")
    assert flow.requests >= 2
    assert pair.agents[0].state().drift == ()


def has_learned(agent: RealAgent) -> bool:
    """Whether the worker's own first lesson is over, at most 5 s after a start: only then it teaches its successor."""
    first = worker(agent.state_dir / "run" / "worker.sock", "show peers").splitlines()[0]
    return int(first.partition("flags=")[2].split()[0], 16) & 3 == 3


@pytest.mark.exhaustive  # a worker that has just been started learns for five seconds before it teaches
def test_own_counters_survive_a_reload(pair: Pair) -> None:
    agent = pair.agents[0]
    wait_until(lambda: has_learned(agent), "it could teach another one")
    ask(agent, 5)
    before, epoch = pair.admitted(0)["pool-1/node-5"], pair.counters(0).epoch
    push(agent, pair.bundle(0, limit="11"))
    assert pair.counters(0).epoch != epoch
    wait_until(lambda: pair.admitted(0).get("pool-1/node-5", 0) >= min(5, before), "the old worker taught the new one")
    wait_until(pair.are_peers, "the new worker is a peer")


def test_a_push_with_an_old_worker_still_there_finds_no_port_taken(pair: Pair) -> None:
    agent = pair.agents[1]
    for limit in ("12", "13", "14"):
        push(agent, pair.bundle(1, limit=limit))
    assert agent.state().last_error == ""
    wait_until(pair.are_peers, "the last worker is a peer")


def test_limits_and_slots_change_without_a_reload(pair: Pair) -> None:
    agent = pair.agents[0]
    old, new = pair.bundle(0), pair.bundle(0, limit="99", maxconn=8)
    before = push(agent, old)
    operations = (SetMapEntry(LIMITS, "pool-1", "99"), SetServerMaxconn("queue-2", "srv-1", 8))
    state = operate(agent, operations, new, old)
    assert (state.digest, state.on_disk, state.reloads) == (new.digest, new.digest, before.reloads)
    socket_path = agent.state_dir / "run" / "worker.sock"
    rows = worker(socket_path, "show stat").splitlines()
    names = rows[0].split(",")
    (row,) = [dict(zip(names, each.split(","), strict=False)) for each in rows if each.startswith("queue-2,srv-1,")]
    assert row["slim"] == "8"
    assert "pool-1 99" in worker(socket_path, f"show map {LIMITS}")


def test_a_secret_that_changed_needs_a_reload(pair: Pair) -> None:
    agent, old = pair.agents[0], pair.bundle(0)
    push(agent, old)
    files = {path: content for path, content in old.files.items() if path != "manifest.json"}
    new = assemble({**files, SECRET: map_text({"key": "8" * 64})}, old.binds, {}, old.nodes)
    for wanted in (new, assemble(files, old.binds, {}, {"us-1": "node-6"})):
        with pytest.raises(Refused, match="needs a reload"):
            operate(agent, (), wanted, old)
    assert agent.state().on_disk == old.digest


def test_secrets_are_as_private_as_certificates(pair: Pair) -> None:
    live = pair.agents[0].state_dir / "live"
    assert (live / SECRET).is_file()
    for path in (live / SECRET, live / "secrets"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o027


def test_a_secret_that_is_changed_in_the_worker_is_drift_without_its_words(pair: Pair) -> None:
    agent = pair.agents[1]
    worker(agent.state_dir / "run" / "worker.sock", f"set map {SECRET} key hunter2")
    wait_until(lambda: agent.state().drift != (), "the drift is seen")
    assert agent.state().drift == (f"{SECRET} was changed in the worker",)
    push(agent, pair.bundle(1))
    assert agent.state().drift == ()
    wait_until(pair.are_peers, "the new worker is a peer")


def worker(path: Path, command: str) -> str:
    """One Runtime API command."""
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.connect(str(path))
        runtime.sendall(command.encode() + b"\n")
        return b"".join(iter(lambda: runtime.recv(65536), b"")).decode()


def test_a_peer_that_dies_is_told_and_the_other_serves_on(pair: Pair) -> None:
    pair.agents[1].stop()
    wait_until(lambda: pair.counters(0).peers == {"node-6": False}, "the loss is told")
    ask(pair.agents[0], 3)


def test_a_peer_port_in_use_is_refused_by_name_and_everything_stays(pair: Pair) -> None:
    agent = pair.agents[0]
    push(agent, make_bundle(agent.port))
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = stranger.getsockname()[1]
        with pytest.raises(Refused, match=f"peers: port {taken} on 127.0.0.1 is in use") as refusal:
            push(agent, replace(pair, ports=(taken, pair.ports[1])).bundle(0))
        assert refusal.value.stage == "switch"
        assert agent.get() == (200, "one")
        push(agent, pair.bundle(0))


def test_a_node_that_the_manifest_does_not_name_counts_alone_whatever_its_machine_is_called(
    agent: RealAgent, met: Pair
) -> None:
    push(agent, met.bundle(0, names={"us-7": "node-5"}))
    ask(agent, 2)
    assert met.counters(0).peers == {}
    assert met.admitted(0) == {"pool-1/node-0": 2}
    # Control for the reload above: without a peer of its own name nobody teaches the new worker.
    push(agent, met.bundle(0, names={"us-7": "node-5"}, limit="11"))
    ask(agent, 1)
    assert met.admitted(0) == {"pool-1/node-0": 1}
    assert "localpeer node-0" in (agent.state_dir / "live" / "node.cfg").read_text()
    push(agent, make_bundle(agent.port))
    assert "localpeer" not in (agent.state_dir / "live" / "node.cfg").read_text()


# A trial run never joins the peers. As one of them it would meet the others, and be cut off or cut the real one off.


def only_trial_run(*arguments: Any) -> None:
    """The trial, and then nothing more."""
    trial_run(*arguments)
    raise Refusal("That was all.", "trial_run")


def calls_to_the_other_peer(node: Inside, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the other peer is called while a bundle is tried, which goes on until it was or might have been."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def end_later(process: subprocess.Popen[bytes]) -> None:
            select.select([other], [], [], CALL_S)
            end(process)

        end = trial_running._end
        monkeypatch.setattr(trial_running, "_end", end_later)
        extra = f"peers everywhere\n    peer node-5 127.0.0.1:{spare_port()}\n"
        extra += f"    peer node-6 127.0.0.1:{other.getsockname()[1]}\n"
        extra += "backend st_limits\n    stick-table type string len 64 size 1k peers everywhere store gpc0\n"
        base = make_bundle(node.port, extra=extra)
        files = {path: content for path, content in base.files.items() if path != "manifest.json"}
        with pytest.raises(Refusal, match="That was all"):
            node.push(assemble(files, base.binds, {}, {"us-1": "node-5"}), 1)
        return waiting(other)


def waiting(server: socket.socket) -> int:
    """How many connections the kernel keeps for a server, those included whose client has ended."""
    server.setblocking(False)
    count = 0
    with suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            count += 1
    return count


def test_a_trial_run_joins_no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    with inside(trial_run=only_trial_run) as node:
        assert calls_to_the_other_peer(node, monkeypatch) == 0


def test_control_a_trial_run_under_the_nodes_own_name_would_call_the_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = nodecfg.render.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "node", "node-5")
    with inside(trial_run=only_trial_run) as node:
        assert calls_to_the_other_peer(node, monkeypatch) > 0
