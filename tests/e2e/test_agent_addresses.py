"""What stands between a bundle and the programs that move addresses, and the harm where it does not."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.agent.bodies import Bind as AgentBind
from apps.agent.errors import Malformed, Refusal
from apps.agent.process.sockets import is_here
from apps.agent.release import nodecfg, probes
from apps.agent.release.nodecfg import Endpoint
from apps.agent.settings import Settings
from apps.compiler.bundle import Bundle, assemble
from apps.compiler.model.fleet import FleetAddress, FleetAddressKind
from apps.compiler.targets.haproxy.static_ips.vrrp import render_vrrp
from tests.conformance.bundles import make_bundle
from tests.conformance.inside import Inside, inside, nothing
from tests.e2e.address_env import ANYCAST, VIP, bundle_of, missing_here
from tests.ports import spare_port

WHY_NOT = missing_here("keepalived", "haproxy")
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(bool(WHY_NOT), reason=f"NOT TESTED: {WHY_NOT}")]

ADDRESS = "127.77.0.9"
SECRET = "only-root-may-read-this"


@contextmanager
def a_node(flags: Mapping[str, Any] | None = None, **taken_away: Any) -> Iterator[Inside]:
    """A node that would put addresses on lo, unless its flags say otherwise, with every safeguard but those named."""
    with inside({"interface": "lo", **(flags or {})}, **taken_away) as found:
        yield found


def bundle(node: Inside, text: str = "", kind: str = "vip") -> Bundle:
    """A bundle with an address that moves; `text` is its keepalived.conf."""
    base = make_bundle(node.port)
    files = {path: content for path, content in base.files.items() if path != "manifest.json"}
    address = FleetAddress("ip-4", "ip-4", ADDRESS, FleetAddressKind.VIP, 77, ("node-1",))
    files["keepalived.conf"] = (text or render_vrrp((address,), {})).encode()
    return assemble(files, base.binds, {}, {"us-1": "node-1"}, {ADDRESS: kind})


def reading(folder: Path) -> str:
    """A configuration that makes keepalived read a file that root alone may read."""
    path = folder / "secret"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    return f"include {path}\n"


def _words_of_refusal(**taken_away: Any) -> str:
    with a_node(**taken_away) as node:
        node.push(make_bundle(node.port), 1)
        with pytest.raises(Refusal) as refusal:
            node.push(bundle(node, reading(node.folder)), 2)
        assert node.get() == (200, "one")
        return refusal.value.message + refusal.value.output


def test_a_file_that_makes_keepalived_read_another_one_is_refused_unread() -> None:
    words = _words_of_refusal()
    assert "has a line that is not allowed" in words
    assert SECRET not in words


def test_without_the_list_of_lines_keepalived_tells_what_root_alone_may_read() -> None:
    assert SECRET in _words_of_refusal(check_allowlist=nothing)


WRONG = "vrrp_instance ip-4 {\n    interface ${INTERFACE}\n    virtual_router_id 999\n}\n"


def test_a_configuration_that_keepalived_refuses_is_never_switched_to() -> None:
    with a_node() as node:
        node.push(make_bundle(node.port), 1)
        with pytest.raises(Refusal, match="keepalived refuses its configuration") as refusal:
            node.push(bundle(node, WRONG), 2)
        assert (refusal.value.stage, node.live) == ("validate", "1")


def test_without_that_check_a_node_reports_success_and_never_takes_part() -> None:
    with a_node(addresses=nothing) as node:
        state = node.push(bundle(node, WRONG), 1)
        assert (state["last_error"], state["addresses"]) == ("", {ADDRESS: "standby"})
        assert not is_here(ADDRESS)


def test_addresses_and_the_program_that_moves_them_come_together_or_not_at_all() -> None:
    with a_node() as node, pytest.raises(Malformed, match="exactly when it has addresses of kind"):
        node.push(bundle(node, kind="anycast"), 1)


def test_a_node_that_the_bundle_does_not_name_takes_no_addresses() -> None:
    with a_node() as node:
        found = bundle(node)
        files = {path: content for path, content in found.files.items() if path != "manifest.json"}
        strange = assemble(files, found.binds, {}, {"us-9": "node-1"}, found.addresses)
        with pytest.raises(Refusal, match="among nodes that do not include us-1"):
            node.push(strange, 1)


@pytest.mark.parametrize(
    ("flags", "address", "why"),
    [
        ({"keepalived": "no-such-program"}, VIP, "this node has no keepalived: install it"),
        ({"interface": ""}, VIP, "no interface of this node has .*: give the agent --interface"),
        ({"bird": "no-such-program", "bgp_as": 65010, "bgp_neighbours": ((65000, "10.77.0.254"),)}, ANYCAST,
         "this node has no no-such-program: install it"),
        ({}, ANYCAST, "this node knows no router for it: give the agent --bgp-as and --bgp-neighbour"),
    ],
)  # fmt: skip
def test_what_a_node_cannot_do_it_refuses_and_takes_everything_else(
    flags: dict[str, Any], address: str, why: str
) -> None:
    with a_node(flags) as node:
        node.push(make_bundle(node.port), 1)
        with pytest.raises(Refusal, match=why) as refusal:
            node.push(bundle_of(address), 2)
        assert (refusal.value.stage, node.live) == ("validate", "1")


def test_an_address_may_be_elsewhere_but_its_port_may_not_be_taken_here() -> None:
    port = spare_port()
    elsewhere = Endpoint("192.0.2.77", port)
    for each in (elsewhere, replace(elsewhere, udp=True)):
        assert probes.taken(each) == "has an address that this machine does not have"
        assert probes.taken(each, moves=True) is None
    with socket.create_server(("0.0.0.0", port)):
        assert probes.taken(elsewhere, moves=True) == "is in use by another program"
        assert probes.taken(replace(elsewhere, udp=True), moves=True) is None


def test_this_machine_has_its_own_addresses_and_no_others() -> None:
    assert is_here("127.0.0.1")
    assert not is_here("192.0.2.77")
    assert not is_here("2001:db8::77")


def test_a_private_socket_has_room_for_haproxys_own_name() -> None:
    settings = Settings("us-1", Path("/" + "x" * 59))
    path = nodecfg.private_socket(settings, AgentBind("lst-1234567", ADDRESS, 80, "http"))
    assert len(f"{path.parent}/trial/{path.name}.1234567.tmp") < 108
