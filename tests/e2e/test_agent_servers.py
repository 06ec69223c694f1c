"""Servers that come and go without a reload: the worker has what the files say, before and after one."""

from __future__ import annotations

import pytest

from apps.agent.errors import Refusal
from apps.agent.tending import tend
from apps.compiler.bundle import Bundle
from apps.compiler.model.shared import ServerState
from apps.compiler.plan import Runtime, plan
from tests.conformance.inside import Inside, inside
from tests.conformance.real_agent import wait_until
from tests.e2e.test_agent_reloads import DOWN, IN_MAINTENANCE, UP, at, compiled, servers_of, two_servers
from tests.pure.compiler_fixtures import server

pytestmark = pytest.mark.e2e
TOLD = ("srv_addr", "srv_port", "srv_uweight", "srv_op_state", "srv_admin_state", "srv_use_ssl")
CHECK_IN_PROGRESS = 1  # of srv_check_state: comes and goes with every health check


def operate(node: Inside, before: Bundle, after: Bundle, generation: int) -> None:
    decided = plan(before, after)
    assert isinstance(decided, Runtime)
    node.operate(decided.operations, after, before.digest, generation, "haproxy.cfg")


def reloads(node: Inside) -> int:
    return int(node.node.state()["reloads"])


def told(node: Inside) -> dict[str, list[str]]:
    return {
        name: [*(row[key] for key in TOLD), str(int(row["srv_check_state"]) & ~CHECK_IN_PROGRESS)]
        for name, row in servers_of(node).items()
    }


def test_servers_come_and_go_without_a_reload_and_a_reload_changes_nothing() -> None:
    with two_servers() as (first, second), inside() as node:
        second.ill = False
        one = compiled(node.port, at(first, 1))
        parked = server(3, address="127.0.0.2", state=ServerState.MAINTENANCE)
        two = compiled(node.port, at(first, 1), at(second, 2, weight=50), parked)
        node.push(one, 1)
        began = reloads(node)
        operate(node, one, two, 2)
        for _ in range(12):
            assert node.get()[0] == 200
        assert second.asked > 0
        state = node.node.state()
        assert (state["digest"], state["on_disk"], state["drift"]) == (two.digest, two.digest, [])
        rows = servers_of(node)
        assert int(rows["srv-3"]["srv_admin_state"]) & IN_MAINTENANCE
        last = compiled(node.port, at(second, 2, weight=50))
        operate(node, two, last, 3)
        asked = first.asked
        for _ in range(6):
            assert node.get()[0] == 200
        assert first.asked == asked
        wait_until(lambda: tend(node.node) and "srv-3" not in servers_of(node), "what came at run time is forgotten")
        assert reloads(node) == began
        running = told(node)
        kept = servers_of(node)["srv-1"]  # the file gave it: HAProxy keeps it until the next reload
        assert int(kept["srv_admin_state"]) & IN_MAINTENANCE
        del running["srv-1"]
        node.push(compiled(node.port, at(second, 2, weight=50), host="more.example"), 4)  # by the files alone
        assert reloads(node) == began + 1
        assert told(node) == running


def test_a_server_that_came_at_run_time_is_checked_as_the_others_are() -> None:
    with two_servers() as (well, ill), inside() as node:
        one = compiled(node.port, at(well, 1))
        node.push(one, 1)
        operate(node, one, compiled(node.port, at(well, 1), at(ill, 2)), 2)
        wait_until(lambda: servers_of(node)["srv-2"]["srv_op_state"] == DOWN, "the sick server is down")
        ill.ill = False
        wait_until(lambda: servers_of(node)["srv-2"]["srv_op_state"] == UP, "it is up again")


def test_one_that_came_at_run_time_comes_back_and_one_of_the_file_needs_a_reload_for_it() -> None:
    with two_servers() as (first, second), inside() as node:
        second.ill = False
        pair, alone = compiled(node.port, at(first, 1), at(second, 2)), compiled(node.port, at(first, 1))
        node.push(alone, 1)
        began = reloads(node)
        for generation in (2, 4, 6):
            operate(node, alone, pair, generation)
            assert "srv-2" in servers_of(node)
            operate(node, pair, alone, generation + 1)
            wait_until(lambda: tend(node.node) and set(servers_of(node)) == {"srv-1"}, "it is forgotten")
        assert reloads(node) == began
        node.push(pair, 8)
        operate(node, pair, alone, 9)
        with pytest.raises(Refusal, match="Already exists"):  # the whole bundle is pushed then (push_one)
            operate(node, alone, pair, 10)
        assert (node.node.state()["digest"], set(servers_of(node))) == (alone.digest, {"srv-1"})


def test_what_the_files_do_not_say_is_refused_and_the_old_release_stays() -> None:
    from apps.compiler.model.operations import AddServer

    with two_servers() as (first, _), inside() as node:
        one, two = compiled(node.port, at(first, 1)), compiled(node.port, at(first, 1), at(first, 2, backup=True))
        node.push(one, 1)
        with pytest.raises(Refusal, match="The files have no server srv-9 in pool-1"):
            node.operate((AddServer("pool-1", "srv-9"),), two, one.digest, 2, "haproxy.cfg")
        assert node.node.state()["digest"] == one.digest
        with pytest.raises(Refusal, match="HAProxy objects: Already exists"):  # it is there, and it is in use
            node.operate((AddServer("pool-1", "srv-1"),), two, one.digest, 3, "haproxy.cfg")
        assert (node.node.state()["digest"], node.node.state()["on_disk"]) == (one.digest, one.digest)
        assert set(servers_of(node)) == {"srv-1"}
