"""Anycast with real BIRD on both sides: a node announces its addresses exactly while its haproxy answers as it should.

Two nodes in network namespaces, a router that knows both ways, clients that ask all the time. Run with `-s` to read the
numbers. Each time one withdrawal is asked for, that of a node whose haproxy is dead; all others take some seconds each.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from apps.drivers.proxy.contract import Refused
from tests.e2e.address_env import (
    ANYCAST,
    ANYCAST_6,
    PATIENCE,
    Load,
    Net,
    NodeOnNet,
    at_one_moment,
    bundle_of,
    missing_here,
    network,
    run,
    wait_until,
)
from tests.e2e.address_router import FLAGS, Router

WHY_NOT = missing_here("bird", "haproxy", "setpriv")
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(bool(WHY_NOT), reason=f"NOT TESTED: {WHY_NOT}")]

# What is promised. A machine that tests run on may be slow.
WITHDRAWN_WITHIN = 3.0
CHECKED_WITHIN = 8.0
A_WHILE = 3.0
BOTH = (ANYCAST, ANYCAST_6)


@dataclass
class AnycastEnv:
    """Two nodes behind a router."""

    net: Net
    nodes: list[NodeOnNet]
    router: Router

    def settle(self) -> None:
        """Put right what the last test has left, then wait until both announce everything and clients reach it."""
        for node in self.nodes:
            self.net.plug(node)
            (node.state_dir / "maintenance").unlink(missing_ok=True)
            if not node.answers():
                node.start()
        ways = ({node.address for node in self.nodes}, {node.address_6 for node in self.nodes})
        wait_until(lambda: (self.router.ways(ANYCAST), self.router.ways(ANYCAST_6)) == ways, "the router knows both")
        wait_until(lambda: all(self.net.fetch(env) for env in (ANYCAST, f"[{ANYCAST_6}]")), "clients reach both")

    def withdrawn(self, node: NodeOnNet) -> float:
        """Wait until the router has no way to the node; the seconds that it took."""
        return wait_until(
            lambda: node.address not in self.router.ways(ANYCAST) and node.address_6 not in self.router.ways(ANYCAST_6),
            f"the router forgets {node.name}",
        )


@pytest.fixture(scope="module")
def env() -> Iterator[AnycastEnv]:
    """Two nodes that announce two addresses."""
    with network() as net:
        nodes = [net.add_node(1, *FLAGS), net.add_node(2, *FLAGS)]
        router = Router(net)
        for node in nodes:
            node.start()
            node.push(bundle_of(*BOTH))
        found = AnycastEnv(net, nodes, router)
        found.settle()
        yield found
        router.stop()


@contextmanager
def under_load(env: AnycastEnv, address: str = ANYCAST) -> Iterator[Load]:
    """Clients ask while both nodes announce the address."""
    env.settle()
    with env.net.load(address) as load:
        yield load


@dataclass(frozen=True)
class Left:
    """How a node was left: when it began and when the router knew, and what clients saw."""

    began: float
    known: float
    load: Load

    @property
    def took(self) -> float:
        """Seconds until the router knew."""
        return self.known - self.began

    def well_after(self) -> bool:
        """Whether every request was answered that began when the router knew."""
        return self.load.begun(self.known) != [] and self.load.lost(self.known) == []

    def __str__(self) -> str:
        during = len(self.load.lost(self.began, self.known)), len(self.load.begun(self.began, self.known))
        after = len(self.load.lost(self.known)), len(self.load.begun(self.known))
        return "withdrawn in {:.2f} s; {} of {} requests lost till then, {} of {} after".format(
            self.took, *during, *after
        )


def left(env: AnycastEnv, node: NodeOnNet, load: Load, began: float) -> Left:
    """Wait until the router has forgotten the node, and until clients have asked a lot more."""
    env.withdrawn(node)
    found = Left(began, time.monotonic(), load)
    load.goes_on()
    return found


def test_both_nodes_announce_both_families_and_say_so(env: AnycastEnv) -> None:
    env.settle()
    for node in env.nodes:
        assert node.state().addresses == dict.fromkeys(BOTH, "announced")
        assert node.state().drift == ()


@pytest.mark.exhaustive
def test_a_reload_and_an_address_more_lose_no_request_and_no_session(env: AnycastEnv) -> None:
    with under_load(env) as load:
        pids = [node.pids_of("bird") for node in env.nodes]
        for node in env.nodes:
            node.push(bundle_of(*BOTH, body="two"))
        load.goes_on()
        for node in env.nodes:
            node.push(bundle_of(ANYCAST))
        wait_until(lambda: env.router.ways(ANYCAST_6) == set(), "one address is announced no more")
        for node in env.nodes:
            node.push(bundle_of(*BOTH))
        env.settle()
        load.goes_on()
        assert [node.pids_of("bird") for node in env.nodes] == pids
    assert load.lost() == [], "".join((node.state_dir / "bird.log").read_text()[-2000:] for node in env.nodes)


@pytest.mark.exhaustive
@pytest.mark.parametrize("address", [ANYCAST, f"[{ANYCAST_6}]"])
def test_a_node_that_dies_is_forgotten_within_three_seconds(env: AnycastEnv, address: str) -> None:
    with under_load(env, address) as load:
        node = env.nodes[0]
        node.kill()
        began = time.monotonic()
        found = left(env, node, load, began)
    print(f"a node dies: {found}")
    assert found.took <= WITHDRAWN_WITHIN
    assert found.well_after()


@pytest.mark.exhaustive
def test_a_cable_that_is_pulled_is_noticed(env: AnycastEnv) -> None:
    with under_load(env) as load:
        node = env.nodes[1]
        began = time.monotonic()
        env.net.unplug(node)
        found = left(env, node, load, began)
    env.net.plug(node)
    print(f"a cable is pulled: {found}")
    assert found.took <= WITHDRAWN_WITHIN
    assert found.well_after()


def test_haproxy_dies_and_nobody_starts_it_again(env: AnycastEnv) -> None:
    with under_load(env) as load:
        node = env.nodes[0]
        node.kill_agent()
        node.kill("haproxy")
        began = time.monotonic()
        found = left(env, node, load, began)
    print(f"haproxy dies, nobody starts it again: {found}")
    assert found.took <= CHECKED_WITHIN
    assert found.well_after()


@pytest.mark.exhaustive
def test_an_agent_that_dies_changes_nothing_and_the_next_one_finds_bird(env: AnycastEnv) -> None:
    with under_load(env) as load:
        node = env.nodes[0]
        pids = node.pids_of("bird")
        node.kill_agent()
        time.sleep(A_WHILE)
        node.start()
        assert node.says(ANYCAST) == "announced"
        assert node.pids_of("bird") == pids
        load.goes_on()
    assert load.lost() == []


@pytest.mark.exhaustive
def test_bird_does_not_outlive_the_one_who_watches(env: AnycastEnv) -> None:
    env.settle()
    node = env.nodes[0]
    node.kill_agent()
    for pid in node.pids_of("python"):
        run("kill", "-9", str(pid))
    assert env.withdrawn(node) <= CHECKED_WITHIN
    assert node.pids_of("bird") == []
    env.settle()
    assert node.pids_of("bird") != []


# A router that gets or loses a way spreads connections anew: those that are just under way may end at the other node.


@pytest.mark.exhaustive
def test_a_drained_node_is_left_and_serves_what_still_comes(env: AnycastEnv) -> None:
    with under_load(env) as load:
        node = env.nodes[0]
        began = time.monotonic()
        subprocess.run(node.command("--drain"), check=True, timeout=PATIENCE)
        found = left(env, node, load, began)
        assert node.says(ANYCAST) == "withdrawn"
        again = time.monotonic()
        subprocess.run(node.command("--undrain"), check=True, timeout=PATIENCE)
        env.settle()
        load.goes_on()
    print(f"a node is drained: {found}")
    assert at_one_moment(load.lost(until=found.known))
    assert load.lost(found.known, again) == []
    assert at_one_moment(load.lost(again))


@pytest.mark.exhaustive
def test_an_agent_that_is_stopped_withdraws_before_its_haproxy_ends(env: AnycastEnv) -> None:
    with under_load(env) as load:
        node = env.nodes[0]
        began = time.monotonic()
        node.stop()
        env.withdrawn(node)
        known = time.monotonic()
        load.goes_on()
    print(f"an agent is stopped: {len(load.lost(began))} of {len(load.begun(began))} requests lost")
    assert at_one_moment(load.lost())
    assert load.lost(known) == []


@pytest.mark.exhaustive
def test_control_without_the_check_the_way_stays_to_where_nobody_answers(env: AnycastEnv) -> None:
    env.settle()
    node = env.nodes[0]
    node.kill_agent()
    facts = node.state_dir / "run" / "facts.json"
    facts.write_text(facts.read_text().replace('"worker": "', '"worker": "/nowhere'))
    env.withdrawn(node)  # so far it is the check; now one that is always content
    node.kill()
    (node.state_dir / "health_watchdog.py").write_text(
        (node.state_dir / "health_watchdog.py").read_text().replace("    why = ask_once(path)\n", '    why = ""\n')
    )
    watch = ["python3", str(node.state_dir / "health_watchdog.py"), str(facts), "--watch"]
    with subprocess.Popen(["ip", "netns", "exec", node.space, *watch]) as content:
        try:
            wait_until(lambda: node.address in env.router.ways(ANYCAST), "a node without haproxy is announced")
            time.sleep(CHECKED_WITHIN)
            assert node.address in env.router.ways(ANYCAST)
        finally:
            content.terminate()
    env.settle()


# What a node cannot do it refuses, and only when it would have to


@pytest.mark.exhaustive
def test_a_node_without_bird_or_without_routers_refuses_addresses_and_takes_everything_else() -> None:
    with network() as net:
        without_bird, without_router = net.add_node(1, *FLAGS, "--bird", "no-such-program"), net.add_node(2)
        only_four = net.add_node(3, *FLAGS[:4])
        for node, why in (
            (without_bird, "this node has no no-such-program: install it"),
            (without_router, "this node knows no router for it: give the agent --bgp-as and --bgp-neighbour"),
            (only_four, f"{ANYCAST_6} is announced by BGP, and this node knows no router for it"),
        ):
            node.start()
            node.push(bundle_of())
            with pytest.raises(Refused, match=why) as refusal:
                node.push(bundle_of(*BOTH))
            assert refusal.value.stage == "validate"
            assert (node.state().addresses, node.state().serving) == ({}, True)


@pytest.mark.exhaustive
def test_the_last_address_that_goes_ends_bird_and_nothing_is_accepted_any_more() -> None:
    with network() as net:
        node = net.add_node(1, *FLAGS)
        node.start()
        node.push(bundle_of(*BOTH))
        assert ANYCAST in accepted(node)
        node.push(bundle_of())
        assert node.pids_of("bird") == []
        assert accepted(node) == ""


def accepted(node: NodeOnNet) -> str:
    """What the machine accepts because the agent told it to."""
    shown = [
        run("ip", "-n", node.space, each, "route", "show", "table", "local", "proto", "120") for each in ("-4", "-6")
    ]
    return "".join(each.stdout for each in shown)
