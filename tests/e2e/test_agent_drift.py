"""Whatever is changed behind the agent's back is said by the node's state, through the driver."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator

import pytest

from apps.agent.process.sockets import ask
from apps.compiler.bundle import Bind
from tests.breadth import first_of
from tests.conformance.bundles import MAP, make_bundle
from tests.conformance.real_agent import RealAgent, running_agent, wait_until
from tests.e2e.agents import push
from tests.ports import spare_port

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def watchful() -> Iterator[RealAgent]:
    """An agent that looks for drift at each turn."""
    with running_agent("unix", "--drift-every", "0.1") as found:
        yield found


@pytest.fixture
def agent(watchful: RealAgent) -> RealAgent:
    """It, without the drift that the last test has left: a push ends that."""
    assert push(watchful, make_bundle(watchful.port)).drift == ()
    return watchful


def drift(agent: RealAgent) -> tuple[str, ...]:
    """The words, as soon as there are some."""
    wait_until(lambda: bool(agent.state().drift), "the drift is seen")
    return agent.state().drift


@pytest.mark.parametrize("path", ["haproxy.cfg", "node.cfg"])
def test_a_file_edited_by_hand_is_named(agent: RealAgent, path: str) -> None:
    with (agent.state_dir / "live" / path).open("a") as stream:
        stream.write("# just a comment\n")
    assert drift(agent) == (f"{path} was edited",)


def test_a_file_that_does_not_belong_here_is_named(agent: RealAgent) -> None:
    (agent.state_dir / "live" / "maps" / "lb-9-prefix.map").write_text("evil.example/ pool-1\n")
    assert drift(agent) == ("maps/lb-9-prefix.map does not belong here",)


def test_a_live_path_that_was_switched_by_hand_is_named(agent: RealAgent) -> None:
    before = agent.state().generation
    push(agent, make_bundle(agent.port, answer="two"))
    (agent.state_dir / "live").unlink()
    (agent.state_dir / "live").symlink_to(f"releases/{before}")
    assert f"live points to {before} and not to {before + 1}" in drift(agent)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"set map {MAP} a.example/ pool-2", f"{MAP} was changed in the worker"),
        (f"add map {MAP} evil.example/ pool-1", f"{MAP} has 2 entries in the worker and 1 in the file"),
        (f"clear map {MAP}", f"{MAP} has 0 entries in the worker and 1 in the file"),
    ],
)
def test_a_map_changed_by_hand_in_the_worker_is_named(agent: RealAgent, command: str, words: str) -> None:
    ask(agent.state_dir / "run" / "worker.sock", command)
    assert drift(agent) == (words,)


def test_a_foreign_program_on_the_port_is_named_and_forgotten_when_it_goes(agent: RealAgent) -> None:
    foreign = agent.folder / "foreign.cfg"
    foreign.write_text(
        "defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 1s\n"
        f"frontend x\n bind 127.0.0.1:{agent.port}\n http-request return status 503\n"
    )
    stranger = subprocess.Popen(["haproxy", "-db", "-f", str(foreign)], stderr=subprocess.DEVNULL)
    try:
        assert drift(agent) == (f"lst-1: another program answers (status 503) on 127.0.0.1:{agent.port}",)
    finally:
        stranger.kill()
        stranger.wait()
    wait_until(lambda: agent.state().drift == (), "the drift is forgotten")


def test_a_push_ends_the_drift(agent: RealAgent) -> None:
    (agent.state_dir / "live" / MAP).write_text("evil.example/ pool-1\n")
    # A look may be halfway through when the file changes, and sees then only that the worker has something else.
    wait_until(lambda: f"{MAP} was edited" in agent.state().drift, "the edit is seen")
    assert push(agent, make_bundle(agent.port)).drift == ()
    assert agent.get("evil.example")[0] == 404


@pytest.mark.parametrize("content", [None, "{"])
def test_a_manifest_that_was_lost_is_brought_back_by_a_push(agent: RealAgent, content: str | None) -> None:
    manifest = agent.state_dir / "live" / "manifest.json"
    manifest.unlink() if content is None else manifest.write_text(content)
    assert "the live files cannot be read" in drift(agent)[0]
    assert push(agent, make_bundle(agent.port)).drift == ()


TCP = """frontend lst-2
    mode tcp
    bind "${SPILLWAY_BIND_LST_2}"
    default_backend pool-tcp
backend pool-tcp
    mode tcp
    server srv-9 127.0.0.1:%d
"""


@pytest.mark.parametrize("address", first_of(2, [None, "::1", "127.0.0.1", "0.0.0.0"]))
def test_servers_of_tcp_see_no_connection_of_the_agent_and_a_port_that_is_closed_is_named(
    agent: RealAgent, address: str | None
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        bind = Bind("lst-2", address, spare_port(), "tcp")
        push(agent, make_bundle(agent.port, extra=TCP % server.getsockname()[1], binds=(bind,)))
        with pytest.raises(TimeoutError):
            server.accept()  # in half a second it looks five times
    assert agent.state().drift == ()
    ask(agent.state_dir / "run" / "worker.sock", "disable frontend lst-2")
    (found,) = drift(agent)
    assert found.startswith("lst-2: nothing listens on ")
    assert found.endswith(f"{bind.port}")
