"""A server where the installation itself is reached would send requests round in circles; it is left out."""

from __future__ import annotations

import pytest

from apps.compiler.addresses import own_addresses
from apps.compiler.compile import compile_snapshot
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

OWN = ("10.0.0.5", "192.0.2.64/26", "2001:db8::1", "fd12::/64", "agent.example", "127.0.0.1", "::1")


def left_out(address: str, own: tuple[str, ...] = OWN) -> list[str]:
    """Codes of what is left out of a fleet whose only server has this address."""
    pools = (pool(1, servers=(server(1, address=address),)),)
    case = snapshot(front(route(1, "shop.example"), route(2, "*.wild.example")), pools=pools, own_addresses=own)
    done = compile_snapshot(case)
    assert (b"server srv-1" in done.output.files["haproxy.cfg"]) == (not done.left_out)
    return [finding.code for finding in done.left_out]


@pytest.mark.parametrize(
    "address", ["10.0.0.5", "192.0.2.70", "2001:db8::1", "fd12::77", "agent.example", "shop.example"]
)
def test_a_server_where_we_are_reached_ourselves_is_left_out(address: str) -> None:
    assert left_out(address) == ["address_refused"]


@pytest.mark.parametrize(
    "address", ["10.0.0.6", "192.0.2.10", "fd13::77", "origin.shop.example", "origin.wild.example"]
)
def test_its_neighbours_are_not(address: str) -> None:
    assert left_out(address) == []


def test_without_those_addresses_it_would_be_carried() -> None:
    assert left_out("10.0.0.5", ()) == []


def test_loopback_has_a_rule_of_its_own_so_that_a_machine_may_serve_itself_in_development() -> None:
    assert own_addresses(OWN).refusal("127.0.0.1") is None
    assert own_addresses(OWN).refusal("::1") is None
