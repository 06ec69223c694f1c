"""The agent's server: its events, what it refuses to read, and the packed file on a bare node."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from apps.drivers.proxy.contract import Refused
from tests.conformance.bundles import make_bundle
from tests.conformance.real_agent import PATIENCE, ROOT, RealAgent, running_agent, wait_until
from tests.e2e.agents import push

pytestmark = pytest.mark.e2e


class Local(http.client.HTTPConnection):
    """HTTP over the agent's Unix socket."""

    def __init__(self, agent: RealAgent) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = str(agent.folder / "a.sock")

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def ask(agent: RealAgent, method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
    """One request to the agent: status and text. It may answer before it has read a body that it refuses."""
    with contextlib.closing(Local(agent)) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read().decode()


def events(agent: RealAgent, since: int = 0) -> list[dict[str, Any]]:
    """What has happened so far, after an entry."""
    status, text = ask(agent, "GET", f"/v1/events?since={since}&follow=0")
    assert status == 200
    return [json.loads(line) for line in text.splitlines() if line]


def test_events_tell_of_pushes_and_refusals_in_order_and_go_on_after_an_entry(agent: RealAgent) -> None:
    before = max(each["id"] for each in events(agent))
    generation = push(agent, make_bundle(agent.port)).generation
    with pytest.raises(Refused):
        push(agent, make_bundle(agent.port, extra="frontend lst-9\n    bogus word\n"))
    found = events(agent, since=before)
    assert [each["id"] for each in found] == list(range(before + 1, before + 1 + len(found)))
    assert [each["at"] for each in found] == sorted(each["at"] for each in found)
    runs = next(each for each in found if f"generation {generation} runs" in each["text"])
    assert runs["kind"] == "state"
    (refused,) = [each for each in events(agent, since=runs["id"]) if each["kind"] == "error"]
    assert refused["text"].startswith(f"Generation {generation + 1} was refused (validate): HAProxy rejects the file:")
    assert [each for each in events(agent, since=refused["id"]) if each["kind"] == "error"] == []


def test_a_follower_hears_of_a_push_while_it_listens(agent: RealAgent) -> None:
    heard: list[str] = []
    runs = f"generation {agent.state().generation + 1} runs"
    with contextlib.closing(Local(agent)) as connection:
        connection.request("GET", "/v1/events")
        response = connection.getresponse()
        assert response.getheader("content-type") == "application/x-ndjson"

        def listen() -> None:
            while not any(runs in line for line in heard):
                heard.append(response.readline().decode())

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        push(agent, make_bundle(agent.port))
        listener.join(PATIENCE)
        assert not listener.is_alive()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/nothing", None, 404),
        ("PUT", "/v1/state", b"{}", 404),
        ("POST", "/v1/bundle", b"{}", 404),
        ("PUT", "/v1/bundle", b"no json", 400),
        ("PUT", "/v1/bundle", b'{"files": {"../../etc/passwd": ""}}', 400),
        ("POST", "/v1/runtime", b"[]", 400),
        ("POST", "/v1/runtime", b"[" * 100_000, 400),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_happens(
    agent: RealAgent, method: str, path: str, body: bytes | None, status: int
) -> None:
    before = agent.state()
    assert ask(agent, method, path, body)[0] == status
    after = agent.state()
    assert (after.generation, after.on_disk, after.reloads) == (before.generation, before.on_disk, before.reloads)


def test_the_packed_agent_serves_a_push_and_is_taken_over_by_the_next_one(tmp_path: Path) -> None:
    packed = tmp_path / "spillway-agent.pyz"
    subprocess.run([sys.executable, "deploy/pack_agent.py", str(packed)], cwd=ROOT, check=True)
    names = zipfile.ZipFile(packed).namelist()
    assert all(name.startswith(("apps/", "__main__.py")) for name in names)
    with running_agent("unix", program=[sys.executable, "-I", "-S", str(packed)]) as agent:
        assert agent.driver.push_bundle(make_bundle(agent.port), 1).generation == 1
        assert agent.get() == (200, "one")
        agent.kill()
        agent.start()
        wait_until(lambda: agent.state().serving, "the next agent has taken over")
        assert agent.driver.push_bundle(make_bundle(agent.port, answer="two"), 2).reloads == 2
        assert agent.get() == (200, "two")


def test_make_agent_packs_what_this_test_packs() -> None:
    said = subprocess.run(["make", "-n", "agent"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "deploy/pack_agent.py var/spillway-agent.pyz" in said
