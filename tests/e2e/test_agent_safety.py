"""What the agent promises with a real HAProxy: ports, foreign programs, kill -9, restarts, last known good."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import socket
import ssl
import subprocess
import threading
import time
from urllib.parse import urlsplit

import pytest

from apps.agent.process.sockets import ask
from apps.compiler.bundle import Bind, Bundle
from apps.compiler.model.operations import SetMapEntry
from apps.drivers.proxy.contract import NodeTarget, Refused, Superseded, Unreachable
from apps.drivers.proxy.registry import open_driver
from tests.conformance.bundles import MAP, make_bundle
from tests.conformance.real_agent import RealAgent, running_agent, wait_until
from tests.e2e.agents import operate, push

pytestmark = pytest.mark.e2e


def rounds(few: int, many: int) -> pytest.MarkDecorator:
    """So many kills: few at each change, many before a tag."""
    return pytest.mark.parametrize("rounds", [few, pytest.param(many, marks=pytest.mark.exhaustive)])


def master_of(agent: RealAgent) -> int:
    """Process id of haproxy's master; 0 when none answers."""
    found = agent.processes()
    return found.master if found else 0


def test_a_port_in_use_is_refused_by_name_and_everything_stays(agent: RealAgent) -> None:
    bundle = make_bundle(agent.port)
    before = push(agent, bundle)
    master = master_of(agent)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        more = 'frontend lst-2\n    mode tcp\n    bind "${SPILLWAY_BIND_LST_2}"\n    default_backend pool-2\n'
        taken = make_bundle(agent.port, answer="two", extra=more, binds=(Bind("lst-2", None, port, "tcp"),))
        with pytest.raises(Refused, match=f"port {port} on 127.0.0.1 is in use") as refusal:
            push(agent, taken)
    assert refusal.value.stage == "switch"
    state = agent.state()
    assert (state.generation, state.on_disk, state.reloads) == (before.generation, bundle.digest, before.reloads)
    assert (master_of(agent), agent.get()) == (master, (200, "one"))
    push(agent, make_bundle(agent.port, answer="two", extra=more, binds=(Bind("lst-2", None, port, "tcp"),)))
    assert agent.get() == (200, "two")


def test_the_node_knows_about_how_many_connections_haproxy_can_have(agent: RealAgent) -> None:
    push(agent, make_bundle(agent.port))
    worker = agent.state_dir / "run" / "worker.sock"
    known = int(ask(worker, "show env SPILLWAY_CONNECTIONS").strip().partition("=")[2])
    most = next(line for line in ask(worker, "show info").splitlines() if line.startswith("Maxconn: "))
    assert known == pytest.approx(int(most[9:]), rel=0.05)


def test_haproxy_serves_on_while_the_agent_is_killed_and_the_next_agent_adopts_it(agent: RealAgent) -> None:
    bundle = make_bundle(agent.port)
    before = push(agent, bundle)
    master = master_of(agent)
    agent.kill()
    assert agent.get() == (200, "one")
    agent.start()
    assert master_of(agent) == master
    state = agent.state()
    assert (state.generation, state.digest, state.serving) == (before.generation, bundle.digest, True)
    assert state.reloads == before.reloads
    push(agent, make_bundle(agent.port, answer="two"))
    assert (master_of(agent), agent.get()) == (master, (200, "two"))


def test_haproxy_is_started_again_when_it_is_killed(agent: RealAgent) -> None:
    bundle = make_bundle(agent.port)
    push(agent, bundle)
    both = make_bundle(agent.port, entries={"a.example/": "pool-1", "b.example/": "pool-1"})
    generation = operate(agent, [SetMapEntry(MAP, "b.example/", "pool-1")], both, bundle).generation
    first = master_of(agent)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: master_of(agent) not in (0, first) and agent.get("b.example")[0] == 200, "haproxy is back")
    wait_until(lambda: agent.state().serving, "the state says so")
    assert agent.state().generation == generation


@rounds(2, 12)
def test_the_agent_may_be_killed_at_any_instant_of_a_push(agent: RealAgent, rounds: int) -> None:
    generation = agent.state().generation + 1
    bundle = make_bundle(agent.port, answer=f"g{generation}")
    agent.driver.push_bundle(bundle, generation)
    digests = {generation: bundle.digest}
    failures: list[tuple[int, str]] = []
    ended = threading.Event()

    def ask_all_the_time() -> None:
        while not ended.wait(0.005):
            answer = agent.get()
            if answer[0] != 200:
                failures.append(answer)

    watcher = threading.Thread(target=ask_all_the_time)
    watcher.start()
    try:
        for _ in range(rounds):
            generation += 1
            bundle = make_bundle(agent.port, answer=f"g{generation}")
            digests[generation] = bundle.digest
            killer = threading.Timer(random.uniform(0.0, 0.16), agent.kill)
            killer.start()
            with contextlib.suppress(Unreachable):
                agent.driver.push_bundle(bundle, generation)
            killer.join()
            agent.start()
            state = agent.state()
            assert state.generation in (generation - 1, generation)
            assert state.digest == state.on_disk == digests[state.generation]
            assert agent.get() == (200, f"g{state.generation}")
            if state.generation < generation:
                agent.driver.push_bundle(bundle, generation)
    finally:
        ended.set()
        watcher.join()
    assert failures == []
    checked = ["haproxy", "-c", "-f", f"{agent.state_dir}/live/node.cfg", "-f", f"{agent.state_dir}/live/haproxy.cfg"]
    assert subprocess.run(checked, capture_output=True, check=False).returncode == 0


@rounds(2, 10)
def test_the_agent_may_be_killed_at_any_instant_of_runtime_operations(agent: RealAgent, rounds: int) -> None:
    entries = {"a.example/": "pool-1"}
    running = make_bundle(agent.port, entries=entries)
    generation = push(agent, running).generation
    for number in range(rounds):
        generation += 1
        entries = {**entries, f"h{number}.example/": "pool-1"}
        wanted = make_bundle(agent.port, entries=entries)
        operations = (SetMapEntry(MAP, f"h{number}.example/", "pool-1"),)
        killer = threading.Timer(random.uniform(0.0, 0.012), agent.kill)
        killer.start()
        with contextlib.suppress(Unreachable):
            agent.driver.run_operations(operations, wanted, running.digest, generation)
        killer.join()
        agent.start()
        state = agent.state()
        assert (state.generation, state.digest) in ((generation, wanted.digest), (generation - 1, running.digest))
        assert state.on_disk == state.digest
        assert (agent.get(f"h{number}.example")[0] == 200) == (state.generation == generation)
        if state.generation < generation:
            agent.driver.run_operations(operations, wanted, running.digest, generation)
        running = wanted


def wait_until_soaked(agent: RealAgent, generation: int) -> None:
    """Until the agent says that this generation is the last known good."""
    said, log = f"state: generation {generation} is the last known good", agent.folder / "agent.log"
    wait_until(lambda: said in log.read_text(), "it has soaked")


def test_an_agent_whose_live_files_were_ruined_starts_the_last_known_good(agent: RealAgent) -> None:
    good = make_bundle(agent.port)
    generation = push(agent, good).generation
    wait_until_soaked(agent, generation)
    agent.kill()
    os.kill(master_of(agent), signal.SIGKILL)
    wait_until(lambda: agent.get()[0] == 0, "haproxy is gone")
    releases = agent.state_dir / "releases"
    ruined = releases / str(generation + 1)
    subprocess.run(["cp", "-r", str(releases / str(generation)), str(ruined)], check=True)
    (ruined / "haproxy.cfg").write_text("nonsense\n")
    (agent.state_dir / "live").unlink()
    (agent.state_dir / "live").symlink_to(f"releases/{ruined.name}")
    agent.start()
    state = agent.state()
    assert (state.generation, state.digest, state.on_disk) == (generation, good.digest, good.digest)
    assert "last known good" in state.last_error
    assert agent.get() == (200, "one")


def test_a_second_agent_on_the_same_directory_does_not_start(agent: RealAgent) -> None:
    second = agent.command("--unix", str(agent.folder / "b.sock"))
    done = subprocess.run(second, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Another agent owns" in done.stderr


def test_an_agents_own_certificate_cannot_push_to_another_agent() -> None:
    with running_agent("https") as agent:
        assert agent.state().generation == 0
        target = agent.target
        own = (f"{agent.folder}/us-1.pem", f"{agent.folder}/us-1-key.pem")
        intruder = open_driver(NodeTarget("us-1", target.url, target.ca_file, *own))
        with pytest.raises(Unreachable):
            intruder.push_bundle(make_bundle(agent.port), 1)
        impostor = open_driver(NodeTarget("us-2", target.url, target.ca_file, target.certificate_file, target.key_file))
        with pytest.raises(Unreachable):
            impostor.read_state()
        assert agent.state().generation == 0


def test_who_shows_no_certificate_is_not_heard() -> None:
    with running_agent("https") as agent:
        target, url = agent.target, urlsplit(agent.target.url)
        context = ssl.create_default_context(cafile=target.ca_file)
        context.check_hostname = False

        def asked() -> int:
            connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=context, timeout=5)
            connection.request("GET", "/v1/state")
            return connection.getresponse().status

        with pytest.raises(OSError):  # noqa: PT011 - an alert or a connection that is cut, as the moment has it
            asked()
        context.load_cert_chain(target.certificate_file, target.key_file)
        assert asked() == 200


def test_ten_releases_are_kept(agent: RealAgent) -> None:
    entries = {"a.example/": "pool-1"}
    running = make_bundle(agent.port, entries=entries)
    push(agent, running)
    for number in range(14):
        entries = {**entries, f"h{number}.example/": "pool-1"}
        wanted = make_bundle(agent.port, entries=entries)
        generation = operate(agent, [SetMapEntry(MAP, f"h{number}.example/", "pool-1")], wanted, running).generation
        running = wanted
        if number == 12:
            wait_until_soaked(agent, generation)  # an older one would be kept besides
    assert len(list((agent.state_dir / "releases").iterdir())) == 10


def test_two_pushes_at_once_leave_the_higher_generation_running(agent: RealAgent) -> None:
    before = agent.state().generation
    bundles = {before + number: make_bundle(agent.port, answer=f"g{number}") for number in (3, 4, 1, 2)}
    threads = [threading.Thread(target=_push, args=(agent, bundle, number)) for number, bundle in bundles.items()]
    for thread in threads:
        thread.start()
        time.sleep(0.01)  # so that they do not come in the order of their numbers
    for thread in threads:
        thread.join()
    assert agent.state().generation == before + 4
    assert agent.get() == (200, "g4")


def _push(agent: RealAgent, bundle: Bundle, generation: int) -> None:
    with contextlib.suppress(Superseded):
        agent.driver.push_bundle(bundle, generation)
