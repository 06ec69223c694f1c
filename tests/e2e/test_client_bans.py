"""A client that HAProxy banned is read from its node and let in again; without lifting, the ban stands."""

from __future__ import annotations

import http.client
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from apps.agent.process import bans
from apps.agent.process.sockets import ask
from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.policy import ClientLimit, Rules
from apps.compiler.policies import rule_set
from apps.compiler.questions.client_bans import read_key, scopes_of
from apps.drivers.proxy.contract import BanEntry, Refused, Unavailable, Unreachable
from tests.conformance.real_agent import RealAgent, running_agent, wait_until
from tests.e2e.rendered_proxy import echo_servers
from tests.ports import spare_port
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e
HOST = "www.example"
LIMIT = ClientLimit(requests=1, per="minute", ban_after=1, ban_within_s=60, ban_for_s=600)


@pytest.fixture(scope="module")
def bundle() -> Iterator[Bundle]:
    """One route with a limit that bans for ten minutes, on a free port."""
    rules = rule_set(Rules(client_limit=LIMIT))
    with echo_servers(1) as ports:
        served = replace(
            front(route(1, hostname=HOST, rule_set=rules.id)),
            rule_sets=(rules,),
            listeners=(listener(1, port=spare_port()),),
        )
        pools = (pool(1, servers=(server(1, address="127.0.0.1", port=ports[0]),)),)
        compiled = compile_snapshot(snapshot(served, pools=pools, local_development=True))
        assert compiled.left_out == ()
        yield compiled.output


@pytest.fixture
def agent(bundle: Bundle) -> Iterator[RealAgent]:
    """A node that runs it."""
    with running_agent("unix") as found:
        found.driver.push_bundle(bundle, 1)
        yield found


def status(bundle: Bundle, source: str) -> int:
    """The answer to one request of this address."""
    (bind,) = bundle.binds
    connection = http.client.HTTPConnection("127.0.0.1", bind.port, timeout=10, source_address=(source, 0))
    connection.request("GET", "/", headers={"Host": HOST})
    found = connection.getresponse().status
    connection.close()
    return found


def test_a_ban_of_haproxy_is_read_and_lifted_and_stands_until_then(agent: RealAgent, bundle: Bundle) -> None:
    assert agent.driver.read_bans().entries == ()
    assert [status(bundle, "127.0.0.8") for _ in range(3)] == [200, 429, 429]
    (entry,) = agent.driver.read_bans().entries
    scopes = scopes_of(bundle.files)
    client = read_key(entry.key, scopes)
    assert client is not None
    assert (client.client, client.hashed, scopes[client.scope]) == ("127.0.0.8", False, ["route-1"])
    assert 500 < entry.ends_in_s <= 600
    _forget_counts(agent)
    assert status(bundle, "127.0.0.8") == 429, "the control: nothing but the ban keeps it out"
    assert status(bundle, "127.0.0.9") == 200, "and nobody else"
    agent.driver.lift_ban(entry.table, entry.key)
    assert agent.driver.read_bans().entries == ()
    assert status(bundle, "127.0.0.8") == 200
    agent.driver.lift_ban(entry.table, entry.key)  # nothing happens


def _forget_counts(agent: RealAgent) -> None:
    """Requests and refusals of all clients are forgotten, so that only bans are left."""
    for table in ("st_clients_minute", "st_over_60"):
        ask(agent.state_dir / "run" / "worker.sock", f"clear table {table}")


def test_only_bans_can_be_taken_out(agent: RealAgent) -> None:
    for table, key in (("st_limits", "::1"), ("st_banned_600", "x"), ("st_banned_600;clear table x", "::1")):
        with pytest.raises(Refused):
            agent.driver.lift_ban(table, key)


def test_of_many_bans_a_thousand_are_read_and_that_there_are_more(agent: RealAgent, bundle: Bundle) -> None:
    path = agent.state_dir / "run" / "worker.sock"
    for start in range(0, 1500, 100):
        lines = [
            f"set table st_banned_600 key 2001:db8:{each:x}::7:7 data.gpc0 1" for each in range(start, start + 100)
        ]
        ask(path, ";".join(lines))
    found = agent.driver.read_bans()
    assert (len(found.entries), found.more) == (bans.MOST, True)
    assert all(isinstance(each, BanEntry) and 0 < each.ends_in_s <= 600 for each in found.entries)
    ask(path, "set table st_banned_600 key ffff:db8::7:8 data.gpc0 1")  # of another limit, and last in the table
    assert "ffff:db8::7:8" in {each.key for each in agent.driver.read_bans().entries}


def test_of_a_haproxy_that_does_not_answer_nothing_is_known(agent: RealAgent) -> None:
    workers = _workers(agent)
    _signal(workers, signal.SIGSTOP)
    try:
        wait_until(lambda: all(map(_is_stopped, workers)), "the workers stand still")
        with pytest.raises((Unavailable, Unreachable)):
            agent.driver.read_bans()
    finally:
        _signal(workers, signal.SIGCONT)


def _workers(agent: RealAgent) -> tuple[int, ...]:
    """All of them: one that is leaving may still answer at the same socket."""
    wait_until(lambda: bool((found := agent.processes()) and found.current), "a worker serves")
    found = agent.processes()
    assert found is not None
    return (*found.current, *found.old)


def _is_stopped(process: int) -> bool:
    """Whether every thread of it stands still, or it has ended."""
    try:
        stats = [each.read_text() for each in Path(f"/proc/{process}/task").glob("*/stat")]
    except OSError:
        return True
    return all(stat.rpartition(")")[2].split()[0] in "TZX" for stat in stats)


def _signal(processes: tuple[int, ...], which: signal.Signals) -> None:
    """To all of them that have not ended."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, which)
