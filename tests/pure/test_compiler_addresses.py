"""Static IPs that move: who gets which, what is left out, and what config verification finds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agent.check.allowlist import check_allowlist
from apps.agent.errors import Refusal
from apps.compiler.codec import bundle_from_bytes, bundle_to_bytes
from apps.compiler.compile import compile_snapshot
from apps.compiler.differences.snapshots import diff_snapshots
from apps.compiler.model.fleet import FleetAddress, FleetAddressKind, Region, RegionNode, Snapshot
from apps.compiler.model.shared import Protocol
from apps.compiler.plan import Reload, plan
from apps.compiler.targets.haproxy.static_ips.anycast import render_anycast
from apps.compiler.targets.haproxy.static_ips.vrrp import priorities, render_vrrp
from apps.compiler.targets.haproxy.verify.address_verification import check_anycast, check_vrrp, read_vrrp
from tests.pure.compiler_fixtures import front, listener, pool, route

VIP, ANYCAST = FleetAddressKind.VIP, FleetAddressKind.ANYCAST
NODES = tuple(RegionNode(f"node-{n}", f"us-{n}", f"10.9.0.{n}", 9700, 9800, 9900) for n in range(1, 5))
BY_ID = {node.id: node for node in NODES}


def vip(number: int, router_id: int | None = None, **fields: object) -> FleetAddress:
    """A vip of all nodes whose router id is its number unless told otherwise."""
    known = {"router_id": number if router_id is None else router_id, "nodes": tuple(BY_ID)}
    found = FleetAddress(f"ip-{number}", f"vip-{number}", f"10.9.0.{100 + number}", VIP)
    return replace(found, **{**known, **fields})  # type: ignore[arg-type]


def anycast(number: int, address: str = "") -> FleetAddress:
    """An announced address."""
    return FleetAddress(f"ip-{number}", f"any-{number}", address or f"192.0.2.{number}", ANYCAST)


def snapshot(*addresses: FleetAddress) -> Snapshot:
    """A fleet of four nodes with one listener per address."""
    listeners = tuple(listener(number, address=each.address) for number, each in enumerate(addresses, 1))
    return Snapshot(
        "us",
        "us",
        load_balancers=(front(route(1), listeners=listeners),),
        pools=(pool(1),),
        region_id="rgn-1",
        regions=(Region("rgn-1", "us", NODES),),
        overflow_key="0" * 64,
        addresses=addresses,
    )


# Who gets which


def test_as_many_addresses_as_nodes_are_spread_one_each() -> None:
    first = [max(found, key=lambda node: found[node]) for found in map(priorities, map(vip, range(5, 9)))]
    assert sorted(first) == sorted(BY_ID)


@given(st.integers(1, 255), st.integers(1, 200))
def test_no_two_nodes_have_one_priority_and_all_are_legal(router_id: int, count: int) -> None:
    nodes = tuple(f"node-{number}" for number in range(count))
    found = priorities(vip(1, router_id, nodes=nodes))
    assert len(set(found.values())) == count
    assert all(1 <= priority <= 254 for priority in found.values())


def test_an_address_keeps_its_positions_when_another_one_goes() -> None:
    text, fewer = (render_vrrp(each, BY_ID) for each in ((vip(3), vip(4), vip(5)), (vip(3), vip(5))))
    assert read_vrrp(text, "node-2")["ip-5"] == read_vrrp(fewer, "node-2")["ip-5"]


def test_a_single_address_stays_where_it_is_and_several_come_home() -> None:
    assert "nopreempt" in render_vrrp((vip(3),), BY_ID)
    assert "preempt_delay 60" in (several := render_vrrp((vip(3), vip(4)), BY_ID))
    assert "nopreempt" not in several


def test_a_node_alone_names_no_peers() -> None:
    assert "unicast_" not in render_vrrp((vip(3, nodes=("node-1",)),), BY_ID).replace("check_unicast_src", "")


# What a bundle carries


def test_files_are_there_exactly_when_they_are_needed() -> None:
    def files(*addresses: FleetAddress) -> set[str]:
        return {path for path in compile_snapshot(snapshot(*addresses)).output.files if path.endswith(".conf")}

    assert files() == set()
    assert files(vip(3)) == {"keepalived.conf"}
    assert files(anycast(3)) == {"bird.conf"}
    assert files(vip(3), anycast(4, "2001:db8::4")) == {"keepalived.conf", "bird.conf"}


def test_the_order_of_the_input_is_not_seen() -> None:
    there, back = snapshot(vip(3), vip(10), anycast(4)), snapshot(anycast(4), vip(10), vip(3))
    one, two = compile_snapshot(there).output, compile_snapshot(back).output
    assert [one.files[path] for path in ("keepalived.conf", "bird.conf")] == [
        two.files[path] for path in ("keepalived.conf", "bird.conf")
    ]


def test_a_bundle_that_was_stored_still_knows_its_addresses() -> None:
    bundle = compile_snapshot(snapshot(vip(3), anycast(4))).output
    assert bundle.addresses == {"10.9.0.103": "vip", "192.0.2.4": "anycast"}
    assert bundle_from_bytes(bundle_to_bytes(bundle)) == bundle


def test_an_address_that_begins_to_move_needs_a_reload_and_is_told() -> None:
    still = replace(snapshot(vip(3)), addresses=())
    moving = snapshot(vip(3))
    assert isinstance(plan(compile_snapshot(still).output, compile_snapshot(moving).output), Reload)
    assert [change.sentence for change in diff_snapshots(still, moving)] == ["static IP vip-3: added"]


def test_only_listeners_whose_address_moves_are_bound_while_it_is_elsewhere() -> None:
    two = snapshot(vip(3))
    balancer = two.load_balancers[0]
    usual = replace(balancer, listeners=(*balancer.listeners, listener(7, address="10.9.0.1"), listener(8)))
    text = compile_snapshot(replace(two, load_balancers=(usual,))).output.files["haproxy.cfg"].decode()
    assert [line.split()[1:] for line in text.splitlines() if line.startswith("    bind ")] == [
        ['"${SPILLWAY_BIND_LST_1}"', "transparent"],
        ['"unix@${SPILLWAY_RUN}/lst-1.sock"', "mode", "600"],
        ['"${SPILLWAY_BIND_LST_7}"'],
        ['"${SPILLWAY_BIND_LST_8}"'],
    ]


def test_a_tcp_listener_has_no_private_socket_since_its_servers_would_be_asked() -> None:
    moving = snapshot(vip(3))
    tcp = listener(1, address="10.9.0.103", protocol=Protocol.TCP, default_pool_id="pool-2")
    with_tcp = replace(moving, load_balancers=(front(listeners=(tcp,)),), pools=(pool(2, protocol=Protocol.TCP),))
    assert "lst-1.sock" not in compile_snapshot(with_tcp).output.files["haproxy.cfg"].decode()


# What is left out


@pytest.mark.parametrize(
    ("address", "code"),
    [
        (vip(3, 0), "router_id"),
        (vip(3, 256), "router_id"),
        (vip(3, nodes=()), "no_nodes"),
        (vip(3, nodes=("node-9",)), "no_nodes"),
        (vip(3, address="2001:db8::3"), "address_family"),
        (vip(3, address="10.9.0.3\n}"), "control_character"),
        (vip(3, address="10.9.0.3/24"), "address"),
    ],
)
def test_an_address_that_cannot_move_is_left_out_with_its_listener_and_the_rest_stays(
    address: FleetAddress, code: str
) -> None:
    found = compile_snapshot(snapshot(address, vip(4)))
    codes = {(finding.object_id, finding.code) for finding in found.left_out}
    assert {("ip-3", code), ("lst-1", "address_left_out")} <= codes
    assert found.output.addresses == {"10.9.0.104": "vip"}


def test_of_two_with_one_router_id_the_newer_one_is_left_out() -> None:
    found = compile_snapshot(snapshot(vip(9, 7), vip(3, 7)))
    assert found.output.addresses == {"10.9.0.103": "vip"}
    assert "vip-3 has 7 already" in str(found.left_out)


# Config verification


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    @node-2 priority 250\n", "    @node-2 priority 230\n"),  # as node-3 has
        ("10.9.0.103/32", "10.9.0.104/32"),
        ("    virtual_router_id 5\n", "    virtual_router_id 6\n"),
        ("        @^node-3 10.9.0.3 min_ttl 255\n", ""),
        ("        @^node-3 10.9.0.3", "        @node-3 10.9.0.3"),
        ("    @node-1 unicast_src_ip 10.9.0.1\n", "    @node-1 unicast_src_ip 10.9.0.2\n"),
        ("    track_script {\n        haproxy\n    }\n", ""),
        ("vrrp_instance ip-3 {", "vrrp_instance ip-4 {"),
        ("    state BACKUP\n", '    state BACKUP\n    notify "/bin/sh -c x;y|z"\n'),
    ],
)
def test_config_verification_refuses_a_keepalived_configuration_that_says_something_else(old: str, new: str) -> None:
    address = vip(3, 5)
    text = render_vrrp((address,), BY_ID)
    assert check_vrrp(text, "keepalived.conf", (address,), BY_ID) == []
    assert old in text
    assert check_vrrp(text.replace(old, new), "keepalived.conf", (address,), BY_ID) != []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("192.0.2.4/32", "192.0.2.0/24"),
        ("    route 192.0.2.4/32 blackhole;\n", ""),
        ("    route 192.0.2.4/32 blackhole;\n", "    route 192.0.2.4/32 blackhole;\n    route 0.0.0.0/0 blackhole;\n"),
        ("    if !announcing then reject;\n", ""),
        ("    reject;\n}", "    accept;\n}\nfilter other {\n    accept;\n}"),
    ],
)
def test_config_verification_refuses_a_bird_configuration_that_announces_something_else(old: str, new: str) -> None:
    text = render_anycast((anycast(4),))
    assert check_anycast(text, "bird.conf", (anycast(4),)) == []
    assert old in text
    assert check_anycast(text.replace(old, new), "bird.conf", (anycast(4),)) != []


# What the agent lets pass to programs with more rights than haproxy


@given(st.lists(st.integers(1, 250), min_size=1, max_size=6, unique=True), st.integers(1, 4))
def test_whatever_the_compiler_writes_the_agent_lets_pass(numbers: list[int], count: int) -> None:
    nodes = tuple(BY_ID)[:count]
    moving = [vip(each, nodes=nodes, address=f"10.9.1.{each}") for each in numbers]
    check_allowlist("keepalived.conf", render_vrrp(moving, BY_ID))
    check_allowlist("bird.conf", render_anycast([anycast(each) for each in numbers] + [anycast(251, "2001:db8::4")]))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("keepalived.conf", 'script "/bin/sh"'),
        ("keepalived.conf", "include /etc/shadow"),
        ("keepalived.conf", "    notify /bin/sh"),
        ("keepalived.conf", "$CHECK=/bin/sh"),
        ("keepalived.conf", "    interval 1 # } notify /bin/sh"),
        ("keepalived.conf", "        haproxy\r    notify /bin/sh"),
        ("bird.conf", 'include "/etc/shadow";'),
        ("bird.conf", 'log "/etc/cron.d/x" all;'),
        ("bird.conf", "    route 0.0.0.0/0 blackhole;"),
        ("bird.conf", 'interface "*" { }; log stderr all;'),
    ],
)
def test_whatever_could_start_a_program_or_open_a_file_is_refused(path: str, line: str) -> None:
    with pytest.raises(Refusal, match="has a line that is not allowed") as refusal:
        check_allowlist(
            path, f"global_defs {{\n{line}\n}}\n" if path == "keepalived.conf" else f"protocol device {{\n{line}\n}}\n"
        )
    assert refusal.value.line == 2
