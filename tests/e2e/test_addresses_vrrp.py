"""VRRP with real keepalived: an address stays reachable whatever dies, and never at a node that cannot serve.

Two nodes in network namespaces, clients that ask all the time. Run with `-s` to read the numbers. Each time one move
is asked for, that of a node whose haproxy is dead; all others take some seconds each.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from apps.drivers.proxy.contract import Refused
from tests.e2e.address_env import (
    PATIENCE,
    SECOND_VIP,
    VIP,
    Load,
    Net,
    NodeOnNet,
    at_one_moment,
    bundle_of,
    missing_here,
    network,
    seen,
    wait_until,
)

WHY_NOT = missing_here("keepalived", "haproxy")
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(bool(WHY_NOT), reason=f"NOT TESTED: {WHY_NOT}")]

# What is promised. A machine that tests run on may be slow, and the check is a program that has to be started.
MOVES_WITHIN = 3.0
CHECKED_WITHIN = 8.0
A_WHILE = 3.0


@dataclass
class Pair:
    """Two nodes of which one has the address."""

    net: Net
    nodes: list[NodeOnNet]

    @property
    def holder(self) -> NodeOnNet:
        """The one that has it and says so."""
        return next(node for node in self.nodes if node.answers() and node.says(VIP) == "held")

    @property
    def other(self) -> NodeOnNet:
        """The other one."""
        return next(node for node in self.nodes if node is not self.holder)

    def settle(self) -> None:
        """Put right what the last test has left, then wait until both run and exactly one has the address."""
        for node in self.nodes:
            self.net.plug(node)
            node.tell(signal.SIGCONT)
            (node.state_dir / "maintenance").unlink(missing_ok=True)
            if not node.answers():
                node.start()
        wait_until(lambda: sorted(node.says(VIP) for node in self.nodes) == ["held", "standby"], "one has the address")
        wait_until(lambda: self.net.fetch(VIP), "clients reach it")

    def well(self) -> None:
        """Wait until both could hold it: then whoever is not the holder would take it."""
        self.settle()
        for node in self.nodes:
            wait_until(lambda node=node: asked(node) == "", f"{node.name} is well")  # type: ignore[misc]


def asked(node: NodeOnNet) -> str:
    """What the check says on the node; empty when it may have the address."""
    check = ["python3", str(node.state_dir / "health_watchdog.py"), str(node.state_dir / "run" / "facts.json")]
    command = ["ip", "netns", "exec", node.space, *check]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE).stdout.strip()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two nodes that run one bundle with one address."""
    with network() as net:
        nodes = [net.add_node(1), net.add_node(2)]
        for node in nodes:
            node.start()
            node.push(bundle_of(VIP))
        found = Pair(net, nodes)
        found.well()
        yield found


@contextmanager
def under_load(pair: Pair) -> Iterator[Load]:
    """Clients ask while a node that is well has the address, and another one could have it."""
    pair.well()
    with pair.net.load(VIP) as load:
        yield load


def test_exactly_one_node_has_the_address_and_both_listen_on_it(pair: Pair) -> None:
    pair.settle()
    assert [node.has(VIP) for node in (pair.holder, pair.other)] == [True, False]
    assert pair.net.fetch(VIP)
    assert pair.other.state().serving
    assert [node.state().drift for node in pair.nodes] == [(), ()]


@pytest.mark.exhaustive
def test_a_reload_loses_no_request_and_moves_nothing(pair: Pair) -> None:
    with under_load(pair) as load:
        holder, pids = pair.holder, [node.pids_of("keepalived") for node in pair.nodes]
        for body in ("two", "three"):
            for node in pair.nodes:
                node.push(bundle_of(VIP, body=body))
        load.goes_on()
        assert pair.holder is holder
        assert [node.pids_of("keepalived") for node in pair.nodes] == pids
    assert load.lost() == []


@pytest.mark.exhaustive
def test_an_address_more_takes_nothing_from_those_that_are_there(pair: Pair) -> None:
    with under_load(pair) as load:
        holder = pair.holder
        for node in pair.nodes:
            node.push(bundle_of(VIP, SECOND_VIP))
        wait_until(lambda: any(node.says(SECOND_VIP) == "held" for node in pair.nodes), "the second one is held")
        load.goes_on()
        assert pair.holder is holder
        for node in pair.nodes:
            node.push(bundle_of(VIP))
        wait_until(lambda: not any(node.has(SECOND_VIP) for node in pair.nodes), "it is gone")
        load.goes_on()
        assert pair.holder is holder
    assert load.lost() == []


@pytest.mark.exhaustive
def test_a_node_that_dies_loses_the_address_within_three_seconds(pair: Pair) -> None:
    with under_load(pair) as load:
        holder, other = pair.holder, pair.other
        holder.kill()
        wait_until(lambda: other.has(VIP), "the other one has it")
        over = load.goes_on()
        assert other.says(VIP) == "held"
    move = seen(load, over)
    print(f"a node dies: {move}")
    assert move.away <= MOVES_WITHIN
    assert (move.after >= 100, move.lost_after) == (True, 0)


@pytest.mark.exhaustive
def test_a_node_that_comes_back_takes_nothing(pair: Pair) -> None:
    pair.settle()  # the one that died above is started here, and has left the address on its interface
    with under_load(pair) as load:
        holder = pair.holder
        other = pair.other
        other.kill()
        time.sleep(0.5)
        other.start()
        wait_until(lambda: asked(other) == "", "it is well again")
        time.sleep(A_WHILE)
        load.goes_on()
        assert (pair.holder, other.has(VIP)) == (holder, False)
    assert load.lost() == []


@pytest.mark.exhaustive
def test_a_cable_that_is_pulled_moves_the_address(pair: Pair) -> None:
    with under_load(pair) as load:
        holder, other = pair.holder, pair.other
        pair.net.unplug(holder)
        wait_until(lambda: other.has(VIP), "the other one has it")
        over = load.goes_on()
    move = seen(load, over)
    print(f"a cable is pulled: {move}")
    assert move.away <= MOVES_WITHIN
    assert move.lost_after == 0


@pytest.mark.exhaustive
def test_haproxy_alone_dies_and_is_started_again(pair: Pair) -> None:
    with under_load(pair) as load:
        pair.holder.kill("haproxy")
        pair.well()
        time.sleep(A_WHILE)  # where starting it took long, the last check that failed moves the address now
        pair.well()
        over = load.goes_on()
    move = seen(load, over)
    print(f"haproxy dies, the agent lives: {move}")
    assert move.away <= CHECKED_WITHIN
    assert move.lost_after == 0


def test_haproxy_dies_and_nobody_starts_it_again(pair: Pair) -> None:
    with under_load(pair) as load:
        holder, other = pair.holder, pair.other
        holder.kill_agent()
        holder.kill("haproxy")
        wait_until(lambda: other.has(VIP) and not holder.has(VIP), "the address moved")
        over = load.goes_on()
    move = seen(load, over)
    print(f"haproxy dies, nobody starts it again: {move}")
    assert move.away <= CHECKED_WITHIN
    assert move.lost_after == 0


@pytest.mark.exhaustive
def test_a_haproxy_that_only_pauses_keeps_the_address_and_one_that_hangs_loses_it(pair: Pair) -> None:
    pair.well()
    holder, other = pair.holder, pair.other
    holder.tell(signal.SIGSTOP, "haproxy")
    time.sleep(2)
    holder.tell(signal.SIGCONT, "haproxy")
    time.sleep(A_WHILE)
    assert (holder.has(VIP), other.has(VIP)) == (True, False)
    holder.tell(signal.SIGSTOP, "haproxy")
    took = wait_until(lambda: other.has(VIP) and not holder.has(VIP), "the address moved")
    holder.tell(signal.SIGCONT, "haproxy")
    print(f"haproxy hangs: moved in {took:.2f} s")


@pytest.mark.exhaustive
def test_an_agent_that_dies_changes_nothing_and_the_next_one_finds_keepalived(pair: Pair) -> None:
    with under_load(pair) as load:
        holder = pair.holder
        pids = holder.pids_of("keepalived")
        holder.kill_agent()
        time.sleep(A_WHILE)
        holder.start()
        assert holder.says(VIP) == "held"
        assert holder.pids_of("keepalived") == pids
        load.goes_on()
    assert load.lost() == []


@pytest.mark.exhaustive
def test_a_keepalived_that_dies_is_started_again_and_two_nodes_never_answer_for_long(pair: Pair) -> None:
    with under_load(pair) as load:
        holder, other = pair.holder, pair.other
        dead = set(holder.pids_of("keepalived"))
        holder.kill("keepalived")
        wait_until(lambda: other.has(VIP) and not holder.has(VIP), "the other one alone has it")
        alive = set(holder.pids_of("keepalived"))
        assert alive
        assert not alive & dead
        over = load.goes_on()
    move = seen(load, over)
    print(f"keepalived dies: {move}")
    assert move.away <= CHECKED_WITHIN
    assert move.lost_after == 0


@pytest.mark.exhaustive
def test_the_wrong_revision_gives_the_address_away(pair: Pair) -> None:
    pair.well()
    holder, other = pair.holder, pair.other
    holder.push(bundle_of(VIP, body="newer"))
    generation = holder.state().generation
    with under_load(pair) as load:
        holder.kill_agent()
        holder.kill("haproxy")
        run_old_release(holder, generation)
        took = wait_until(lambda: other.has(VIP) and not holder.has(VIP), "the address moved")
        assert asked(holder) == f"haproxy runs generation {generation - 1}"
        over = load.goes_on()
    move = seen(load, over)
    print(f"the wrong revision runs: moved in {took:.2f} s, {move}")
    assert move.lost_after == 0
    holder.start()  # the agent finds a haproxy that it did not load, and loads its own
    wait_until(lambda: asked(holder) == "", "the node is well again")
    assert holder.state().generation == generation


def run_old_release(node: NodeOnNet, generation: int) -> None:
    """What an operator might do by hand in despair: haproxy from the release before the live one."""
    releases = sorted((node.state_dir / "releases").iterdir(), key=lambda each: int(each.name.partition("-")[0]))
    old = next(each for each in reversed(releases) if int(each.name.partition("-")[0]) == generation - 1)
    files = ["-f", str(old / "node.cfg"), "-f", str(old / "haproxy.cfg")]
    master = f"{node.state_dir}/run/master.sock,mode,600"
    command = ["ip", "netns", "exec", node.space, "haproxy", "-W", "-D", "-S", master, *files]
    subprocess.run(command, check=True, timeout=PATIENCE, cwd=old, capture_output=True)


@pytest.mark.exhaustive
def test_a_drained_node_gives_the_address_away_and_keeps_serving(pair: Pair) -> None:
    with under_load(pair) as load:
        holder, other = pair.holder, pair.other
        subprocess.run(holder.command("--drain"), check=True, timeout=PATIENCE)
        wait_until(lambda: other.says(VIP) == "held" and holder.says(VIP) == "standby", "the address moved")
        assert holder.state().serving
        assert asked(holder) == "maintenance"
        over = load.goes_on()
        subprocess.run(holder.command("--undrain"), check=True, timeout=PATIENCE)
        wait_until(lambda: asked(holder) == "", "the node takes part again")
    move = seen(load, over)
    print(f"a node is drained: {move}")
    assert move.away <= MOVES_WITHIN
    assert at_one_moment(load.lost(until=over))
    assert move.lost_after == 0


@pytest.mark.exhaustive
def test_an_agent_that_is_stopped_gives_the_address_away_before_its_haproxy_ends(pair: Pair) -> None:
    with under_load(pair) as load:
        holder, other = pair.holder, pair.other
        holder.stop()
        wait_until(lambda: other.has(VIP), "the other one has it")
        assert not holder.has(VIP)
        over = load.goes_on()
    move = seen(load, over)
    print(f"an agent is stopped: {move}")
    assert move.away <= MOVES_WITHIN
    assert at_one_moment(load.lost(until=over))
    assert move.lost_after == 0


@pytest.mark.exhaustive
def test_control_without_the_check_the_address_stays_where_nobody_answers(pair: Pair) -> None:
    with under_load(pair) as load:
        holder, other = pair.holder, pair.other
        (holder.state_dir / "health_watchdog.py").write_text("raise SystemExit(0)\n")
        holder.kill_agent()
        holder.kill("haproxy")
        dead = time.monotonic()
        time.sleep(CHECKED_WITHIN)
        assert (holder.has(VIP), other.has(VIP)) == (True, False)
    assert load.lost(dead) == load.begun(dead) != []
    pair.settle()  # the agent that is started now puts the check back


# What a node cannot do it refuses, and only when it would have to


@pytest.mark.exhaustive
def test_a_node_without_keepalived_refuses_addresses_and_takes_everything_else() -> None:
    with network() as net:
        node = net.add_node(1, "--keepalived", "no-such-program")
        node.start()
        node.push(bundle_of())
        with pytest.raises(Refused, match="this node has no keepalived: install it") as refusal:
            node.push(bundle_of(VIP))
        assert refusal.value.stage == "validate"
        assert (node.state().addresses, node.state().serving) == ({}, True)


@pytest.mark.exhaustive
def test_a_node_that_does_not_know_its_interface_says_so() -> None:
    with network() as net:
        node = net.add_node(1)
        node.address = "127.0.0.9"
        node.start()
        with pytest.raises(Refused, match=r"no interface of this node has 127\.0\.0\.9: give the agent --interface"):
            node.push(bundle_of(VIP))


@pytest.mark.exhaustive
def test_the_last_address_that_goes_ends_keepalived() -> None:
    with network() as net:
        node = net.add_node(1)
        node.start()
        node.push(bundle_of(VIP, count=1))
        wait_until(lambda: node.says(VIP) == "held", "a node alone has the address")
        node.push(bundle_of())
        assert not node.has(VIP)
        assert node.pids_of("keepalived") == []
        assert node.state().addresses == {}
