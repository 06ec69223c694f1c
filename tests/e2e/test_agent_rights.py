"""An agent started as root runs haproxy's workers as a user without rights, locked into an empty place."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from apps.agent.settings import can_enter, default_user, exists
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import SniRoute
from apps.compiler.model.operations import SetMapEntry
from apps.compiler.model.shared import Certificate, Protocol
from deploy.demo.config import DemoConfig
from tests.conformance.bundles import MAP, make_bundle
from tests.conformance.inside import inside
from tests.conformance.real_agent import RealAgent, running_agent, short_folder, wait_until
from tests.e2e.agents import operate, push
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, server, snapshot

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="NOT CHECKED: an unprivileged worker needs a start as root"),
    pytest.mark.skipif(not exists("haproxy"), reason="NOT CHECKED: this machine has no user haproxy"),
]


def workers(agent: RealAgent) -> tuple[int, ...]:
    """Process ids of the current workers."""
    found = agent.processes()
    return found.current if found else ()


def user_and_root(pid: int) -> tuple[int, str]:
    """The user id of a process (real, effective, saved and of files alike), and what it takes for `/`."""
    status = Path(f"/proc/{pid}/status").read_text()
    uids = set(status.partition("Uid:")[2].partition("\n")[0].split())
    assert len(uids) == 1
    return int(uids.pop()), str(Path(f"/proc/{pid}/root").readlink())


def is_locked_in(agent: RealAgent, pid: int) -> bool:
    """True when the worker has neither root's id nor root's view of the files."""
    user, root = user_and_root(pid)
    return user == pwd.getpwnam("haproxy").pw_uid and root == str(agent.state_dir / "empty")


def test_workers_have_no_rights_and_see_no_files_whatever_is_done_to_them(agent: RealAgent) -> None:
    """Start, reload, runtime operations, counters, kill -9 of the agent, takeover, kill -9 of haproxy."""
    push(agent, make_bundle(agent.port))
    (first,) = workers(agent)
    assert is_locked_in(agent, first)
    bundle = make_bundle(agent.port, answer="two")
    push(agent, bundle)
    (second,) = workers(agent)
    assert second != first
    assert is_locked_in(agent, second)
    both = make_bundle(agent.port, answer="two", entries={"a.example/": "pool-1", "b.example/": "pool-1"})
    operate(agent, [SetMapEntry(MAP, "b.example/", "pool-1")], both, bundle)
    assert agent.get("b.example") == (200, "two")
    assert agent.driver.read_counters().rows
    agent.kill()
    agent.start()
    assert workers(agent) == (second,)
    push(agent, make_bundle(agent.port, answer="three"))
    assert agent.get() == (200, "three")
    assert all(is_locked_in(agent, pid) for pid in workers(agent))
    found = agent.processes()
    assert found is not None
    os.kill(found.master, signal.SIGKILL)
    wait_until(lambda: agent.state().serving and agent.get()[0] == 200, "haproxy is back")
    assert all(is_locked_in(agent, pid) for pid in workers(agent))
    assert agent.state().drift == ()


def test_without_a_user_the_worker_keeps_roots_rights() -> None:
    with running_agent("unix", "--user", "") as agent:
        agent.driver.push_bundle(make_bundle(agent.port), 1)
        assert [user_and_root(pid) for pid in workers(agent)] == [(0, "/")]


def test_sockets_and_files_stay_closed_to_the_worker(agent: RealAgent) -> None:
    push(agent, make_bundle(agent.port))
    for name in ("run/master.sock", "run/worker.sock", "state.json", "probe", "haproxy.log", "live/haproxy.cfg"):
        stat = (agent.state_dir / name).stat()
        assert stat.st_uid == 0, name
        assert stat.st_mode & 0o027 == 0, name


def test_an_unknown_user_is_refused_with_a_sentence(agent: RealAgent) -> None:
    command = agent.command("--unix", str(agent.folder / "b.sock"), "--user", "no-such-user")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "There is no user no-such-user on this machine." in done.stderr


def test_where_the_user_cannot_reach_the_files_workers_still_lose_their_rights() -> None:
    """Checks then run with the agent's rights; a home directory of root is such a place."""
    with inside() as node:
        node.folder.chmod(0o700)
        assert not can_enter(default_user(), node.settings.state_dir)
        node.push(make_bundle(node.port), 1)
        node.push(make_bundle(node.port, answer="two"), 2)
        assert node.get() == (200, "two")
        found = node.node.proxy.processes()
        assert found is not None
        assert [user_and_root(pid)[0] != 0 for pid in found.current] == [True]


def test_the_demos_directories_let_haproxy_pass_and_nobody_else() -> None:
    folder = short_folder()
    try:
        config = DemoConfig(var=folder / "var")
        (folder / "var").mkdir()
        config.make_directories()
        assert can_enter("haproxy", config.run / "us-1")
        assert not can_enter("nobody", config.run / "us-1")
        assert not can_enter("haproxy", config.demo / "pki" / "ca.pem")
    finally:
        shutil.rmtree(folder)


def test_tls_is_ended_behind_the_lookup_of_its_name_before_and_after_a_reload(agent: RealAgent) -> None:
    """The two frontends of such a listener reach each other without rights; the trial run has a pair of its own."""
    routes = (SniRoute("a.example", "pool-1"), SniRoute("passed.example", "pool-1", passthrough=True))
    for port_of_server in (9, 10):
        given = snapshot(
            front(
                listeners=(
                    listener(
                        1,
                        port=agent.port,
                        protocol=Protocol.TCP,
                        ends_tls=True,
                        certificate_ids=("crt-1",),
                        sni_routes=routes,
                    ),
                )
            ),
            pools=(pool(1, protocol=Protocol.TCP, servers=(server(1, address="127.0.0.1", port=port_of_server),)),),
            certificates=(Certificate("crt-1", "house", "acme", certificate_pem("a.example"), ("a.example",)),),
            local_development=True,
        )
        push(agent, compile_snapshot(given).output)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", agent.port), timeout=30) as plain,
            context.wrap_socket(plain, server_hostname="a.example") as client,
        ):
            assert client.version() == "TLSv1.3"
