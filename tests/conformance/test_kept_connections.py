"""A node is asked over one connection again and again, and what ends a connection costs no answer."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.drivers.proxy import connections
from apps.drivers.proxy.agent import AgentDriver
from apps.drivers.proxy.connections import CONNECTIONS
from apps.drivers.proxy.contract import NodeTarget, Unreachable
from tests.bench.light_agents import LightNode, write
from tests.ports import spare_port

ROOT = Path(__file__).resolve().parents[2]


class Agents:
    """A process with two light agents, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes = [LightNode(name, spare_port(), [("backend", "pool-1", "")], 1) for name in ("n-1", "n-2")]
        write(folder, self.nodes)
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Return when it listens."""
        command = [sys.executable, "-m", "tests.bench.light_agents", str(self.folder), "0", "2"]
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ)
        deadline = time.monotonic() + 60
        while not (self.folder / f"ready-{process.pid}").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return process

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def driver(self, number: int = 0, name: str = "") -> AgentDriver:
        """The hands for one of them, or for one that pretends to be it."""
        node, pem = self.nodes[number], self.folder / "console.pem"
        target = NodeTarget(
            name=name or node.name,
            url=f"https://127.0.0.1:{node.port}",
            ca_file=str(self.folder / "ca.pem"),
            certificate_file=str(pem),
            key_file=str(pem.with_suffix(".key")),
        )
        return AgentDriver(target)


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    CONNECTIONS.close()
    found = Agents(tmp_path)
    yield found
    found.kill()
    CONNECTIONS.close()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the nodes to which connections were opened."""
    found: list[str] = []
    connect = connections._NamedConnection.connect

    def noted(self: connections._NamedConnection) -> None:
        found.append(self._target.name)
        connect(self)

    monkeypatch.setattr(connections._NamedConnection, "connect", noted)
    return found


def test_many_questions_need_one_connection_and_each_node_has_its_own(agents: Agents, opened: list[str]) -> None:
    for _ in range(5):
        assert agents.driver().read_state().boot_id == "n-1"
        assert agents.driver().read_counters().rows
        assert agents.driver(1).read_state().boot_id == "n-2"
    assert opened == ["n-1", "n-2"]


def test_an_agent_that_began_anew_answers_at_once(agents: Agents, opened: list[str]) -> None:
    agents.driver().read_state()
    agents.kill()
    with pytest.raises(Unreachable):
        agents.driver().read_state()
    agents.process = agents.start()
    assert agents.driver().read_state().serving
    assert opened == ["n-1"] * 3


@pytest.mark.exhaustive
def test_a_name_that_the_certificate_does_not_carry_gets_no_kept_connection(agents: Agents) -> None:
    agents.driver().read_state()
    with pytest.raises(Unreachable, match="certificate"):
        agents.driver(name="n-2").read_state()


@pytest.mark.exhaustive
def test_new_certificates_of_ours_mean_new_connections(agents: Agents, opened: list[str]) -> None:
    agents.driver().read_state()
    pem = agents.folder / "console.pem"
    os.utime(pem, ns=(0, pem.stat().st_mtime_ns + 1))
    agents.driver().read_state()
    assert opened == ["n-1", "n-1"]


@pytest.mark.exhaustive
def test_what_lay_idle_for_long_or_lives_for_long_is_not_used(
    agents: Agents, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LONGEST_IDLE_S", "LONGEST_LIFE_S"):
        agents.driver().read_state()
        with monkeypatch.context() as patch:
            patch.setattr(connections, name, 0.0)
            agents.driver().read_state()
    assert len(opened) == 3


@pytest.mark.exhaustive
def test_threads_never_share_a_connection(agents: Agents) -> None:
    wrong: list[str] = []

    def ask(number: int) -> None:
        for _ in range(20):
            said = agents.driver(number % 2).read_state().boot_id
            if said != f"n-{number % 2 + 1}":
                wrong.append(said)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


@pytest.mark.exhaustive
def test_a_node_that_stops_listening_is_missed_within_seconds(agents: Agents) -> None:
    silent = socket.create_server(("127.0.0.1", 0), backlog=0)
    fillers = []
    try:
        while True:  # until the queue is full and nobody answers a new one
            filler = socket.socket()
            filler.settimeout(0.2)
            fillers.append(filler)
            filler.connect(silent.getsockname())
    except TimeoutError:
        pass
    target = agents.driver()._target
    driver = AgentDriver(NodeTarget("n-1", f"https://127.0.0.1:{silent.getsockname()[1]}", *_files(target)))
    began = time.monotonic()
    with pytest.raises(Unreachable):
        driver.read_state()
    assert time.monotonic() - began < connections.CONNECT_SECONDS + 2
    for each in (*fillers, silent):
        each.close()


def _files(target: NodeTarget) -> tuple[str, str, str]:
    return target.ca_file, target.certificate_file, target.key_file
