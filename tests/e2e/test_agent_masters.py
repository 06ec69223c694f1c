"""A state directory has one HAProxy master, however long it takes to load, and none once it is stopped."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps.agent.errors import Refusal, Unavailable
from apps.agent.process.proxy import Proxy
from apps.agent.settings import Settings
from tests.conformance.bundles import make_bundle
from tests.conformance.inside import Inside, inside, nothing
from tests.conformance.real_agent import ROOT, RealAgent, running_agent, short_folder, wait_until
from tests.conformance.slow_haproxy import BINARIES, SlowHaproxy

pytestmark = [pytest.mark.long, pytest.mark.e2e]

every_haproxy = pytest.mark.parametrize("binary", BINARIES)
LOADS = [5, pytest.param(10, marks=pytest.mark.exhaustive), pytest.param(20, marks=pytest.mark.exhaustive)]

# A master as since 2.7: it answers `reload` with what came of it, when it has loaded.
MASTER = """
import socket, sys, time
path, seconds, answer = sys.argv[2].partition(",")[0], float(sys.argv[3]), sys.argv[4]
door = socket.socket(socket.AF_UNIX)
door.bind(path)
door.listen(8)
while True:
    stream, _ = door.accept()
    if b"reload" in stream.recv(1000):
        if not answer:
            door.close()
        time.sleep(seconds)
        stream.sendall(answer.encode())
    stream.close()
"""


@contextmanager
def master_that(seconds: float, answer: str) -> Iterator[tuple[Proxy, Path]]:
    """A proxy whose master takes so long to load and then answers; without an answer it listens no longer."""
    folder = short_folder()
    settings = Settings("us-1", folder, haproxy=BINARIES[0])
    settings.run_dir.mkdir()
    proxy = Proxy(settings, folder / "live")
    words = [sys.executable, "-c", MASTER, "-S", f"{proxy.master_socket},mode,600", str(seconds), answer]
    process = subprocess.Popen(words, start_new_session=True)
    try:
        wait_until(proxy.master_socket.exists, "the master listens")
        yield proxy, folder
        assert proxy.masters() == [process.pid], "no second one was started"
    finally:
        proxy.stop()
        process.wait()


def test_the_answer_to_a_reload_is_waited_for_as_long_as_loading_may_take() -> None:
    with master_that(4, "Success=1\n--\n") as (proxy, folder):
        began = time.monotonic()
        proxy.reload_or_start(folder, 30)
        assert time.monotonic() - began >= 4


def test_a_reload_that_failed_is_a_refusal_at_once_with_haproxys_own_line() -> None:
    answer = "Success=0\n--\n[ALERT] (7) : config : parsing [/x/live/haproxy.cfg:3] : unknown keyword 'bogus'\n"
    with master_that(0, answer) as (proxy, folder):
        with pytest.raises(Refusal, match="unknown keyword 'bogus'") as refusal:
            proxy.reload_or_start(folder, 30)
        assert (refusal.value.stage, refusal.value.line) == ("confirm", 3)


@pytest.mark.parametrize("answer", ["", "Success=1\n"])
def test_a_master_that_is_silent_or_refuses_connections_is_not_taken_for_none(answer: str) -> None:
    with master_that(30, answer) as (proxy, folder):
        with pytest.raises(Unavailable, match="did not load within 1 seconds"):
            proxy.reload_or_start(folder, 1)
        with pytest.raises(Unavailable, match="Use --stop to end it"):
            proxy.start()


def _answers(get: object, times: int = 40) -> set[tuple[int, str]]:
    assert callable(get)
    return {get() for _ in range(times)}


@pytest.mark.exhaustive  # a reload of four seconds and more, in real time; the answers of masters are asked below
@every_haproxy
@pytest.mark.parametrize("seconds", LOADS)
def test_a_slow_reload_ends_with_one_master_and_one_generation(binary: str, seconds: int) -> None:
    with inside(slow=functools.partial(SlowHaproxy, real=binary)) as node:
        assert node.slow is not None
        node.push(make_bundle(node.port), 1)
        before = node.node.proxy.masters()
        node.slow.before("reload", f"sleep {seconds}")
        assert node.push(make_bundle(node.port, answer="two"), 2)["generation"] == 2
        assert node.push(make_bundle(node.port, answer="three"), 3)["generation"] == 3
        assert len(node.slow.calls("reload")) == 2, "both were slow"
        assert (node.node.proxy.masters(), len(before)) == (before, 1)
        assert _answers(node.get) == {(200, "three")}
        node.node.close()
        assert node.node.proxy.masters() == []


def _states_during_a_reload(node: Inside) -> list[tuple[bool, int]]:
    """Whether it says that it serves, and with how many workers, while its master takes a second to load."""
    assert node.slow is not None
    node.push(make_bundle(node.port), 1)
    node.slow.before("reload", "sleep 1")
    pushing = threading.Thread(target=node.push, args=(make_bundle(node.port, answer="two"), 2))
    pushing.start()
    found = []
    while pushing.is_alive():
        assert node.get()[0] == 200
        state = node.node.state()
        found.append((state["serving"], state["workers"]))
    assert _answers(node.get) == {(200, "two")}
    return found


@every_haproxy
def test_a_node_says_that_it_serves_while_its_master_loads(binary: str) -> None:
    with inside(slow=functools.partial(SlowHaproxy, real=binary)) as node:
        found = _states_during_a_reload(node)
        assert len(found) > 1
        assert all(serving and workers for serving, workers in found)


def test_without_asking_the_kernel_a_node_that_loads_seems_not_to_serve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Proxy, "living", lambda _: None)
    with inside(slow=SlowHaproxy) as node:
        assert (False, 0) in _states_during_a_reload(node)


@every_haproxy
def test_a_reload_that_haproxy_itself_reports_as_failed_puts_the_old_configuration_back(binary: str) -> None:
    bad = "frontend lst-3\n    bind unix@/nonexistent/x.sock\n    default_backend pool-2\n"
    with inside(slow=functools.partial(SlowHaproxy, real=binary), trial_run=nothing) as node:
        node.push(make_bundle(node.port), 1)
        with pytest.raises(Refusal) as refusal:
            node.push(make_bundle(node.port, extra=bad), 2)
        assert (refusal.value.stage, node.live) == ("confirm", "1")
        assert "x.sock" in refusal.value.message
        assert _answers(node.get) == {(200, "one")}


def _second_master(agent: RealAgent) -> subprocess.Popen[bytes]:
    """What an earlier agent left behind when it took a slow master for none."""
    words = ["haproxy", "-W", "-S", f"{agent.state_dir}/run/master.sock,mode,600"]
    for name in ("node.cfg", "haproxy.cfg"):
        words += ["-f", f"{agent.state_dir}/live/{name}"]
    return subprocess.Popen(words, start_new_session=True, stderr=subprocess.DEVNULL)


def _masters(agent: RealAgent) -> list[int]:
    return Proxy(Settings("us-1", agent.state_dir), agent.state_dir / "live").masters()


def test_stop_ends_every_master_of_the_state_directory() -> None:
    with running_agent() as agent, running_agent() as other:
        for each in (agent, other):
            each.driver.push_bundle(make_bundle(each.port), 1)
        second = _second_master(agent)
        wait_until(lambda: len(_masters(agent)) == 2, "two masters run")
        agent.kill()
        subprocess.run(agent.command("--stop"), cwd=ROOT, check=True)
        second.wait(10)
        assert _masters(agent) == []
        assert (len(_masters(other)), other.get()) == (1, (200, "one")), "another state directory's is left alone"


def test_an_agent_that_starts_ends_the_master_that_runs_beside_the_one_that_answers() -> None:
    with running_agent() as agent:
        agent.driver.push_bundle(make_bundle(agent.port), 1)
        agent.kill()
        second = _second_master(agent)
        wait_until(lambda: len(_masters(agent)) == 2, "two masters run")
        agent.start()
        wait_until(lambda: second.poll() is not None or len(_masters(agent)) == 1, "one of them is ended")
        assert len(_masters(agent)) == 1
        assert agent.driver.push_bundle(make_bundle(agent.port, answer="two"), 2).generation == 2
        assert _answers(agent.get) == {(200, "two")}


def test_a_haproxy_that_is_too_old_is_named_with_what_to_do_until_a_newer_one_lies_there() -> None:
    with inside(slow=SlowHaproxy) as node:
        assert node.slow is not None
        node.slow.before("version", "echo 'HAProxy version 2.4.30-0ubuntu0.22.04.1 2025/10/03'; exit 0")
        node.slow.path.touch()
        words = r"This node has HAProxy 2\.4\.30; Spillway needs 2\.6 or later: install a newer package"
        with pytest.raises(Unavailable, match=words):
            node.push(make_bundle(node.port), 1)
        assert node.slow.calls("check") == []
        node.slow.before("version", "")
        node.slow.path.touch()
        assert node.push(make_bundle(node.port), 1)["haproxy_version"].startswith("2.")


def test_without_asking_for_its_version_an_old_haproxy_gets_as_far_as_its_own_error() -> None:
    with inside(slow=SlowHaproxy, supported=nothing) as node:
        assert node.slow is not None
        node.slow.before("version", "echo 'HAProxy version 2.4.30 2025/10/03'; exit 0")
        node.slow.path.touch()
        node.push(make_bundle(node.port), 1)
        assert node.slow.calls("check")


def test_one_binary_tells_its_version_checks_tries_and_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is first in the agent's PATH, which checks in their sandbox do not have."""
    folder = short_folder()
    slow = SlowHaproxy(folder)
    monkeypatch.setenv("PATH", f"{slow.path.parent}:/usr/sbin:/usr/bin:/bin")
    with inside(settings={"haproxy": "haproxy"}) as node:
        state = node.push(make_bundle(node.port), 1)
        assert state["haproxy_path"] == str(slow.path)
        assert all(slow.calls(word) for word in ("version", "check", "trial", "start"))
