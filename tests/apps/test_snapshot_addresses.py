"""Which static IPs a fleet's snapshot has, and whose nodes they move among."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import FleetAddress, FleetAddressKind
from apps.compiler.model.stack import AddressKind
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Listener, LoadBalancer
from apps.fleet.models import Fleet, Node, Region, StaticIP

pytestmark = pytest.mark.django_db


@pytest.fixture
def us(tutorial_env: Actor) -> Fleet:
    """The tutorial's fleet with the load balancer `front`."""
    return Fleet.objects.get(name="us-central1")


def attach(name: str, address: str | None, kind: AddressKind, **fields: object) -> StaticIP:
    """A static IP that a new listener of `front` names."""
    front = LoadBalancer.objects.get(name="front")
    owner = Account.objects.get(kind="operator")
    found = StaticIP.objects.create(account=owner, name=name, address=address, kind=kind, **fields)
    Listener.objects.create(
        account=front.account, load_balancer=front, name=name, protocol="http", port=80, static_ip=found
    )
    return found


def moved(fleet: Fleet) -> tuple[FleetAddress, ...]:
    """The addresses of the fleet's snapshot."""
    return snapshot_of(fleet).addresses


def ids(*fleets: Fleet) -> tuple[str, ...]:
    """The nodes of these fleets, by id."""
    return tuple(f"node-{node.pk}" for node in Node.objects.filter(fleet__in=fleets).order_by("id"))


def test_a_vip_moves_among_the_nodes_of_its_fleet_and_an_anycast_address_among_none(us: Fleet) -> None:
    vip = attach("vip", "10.9.0.7", AddressKind.VIP, region=us.region, router_id=7)
    every = attach("every", "192.0.2.7", AddressKind.ANYCAST)
    assert moved(us) == (
        FleetAddress(f"ip-{vip.pk}", "vip", "10.9.0.7", FleetAddressKind.VIP, 7, ids(us)),
        FleetAddress(f"ip-{every.pk}", "every", "192.0.2.7", FleetAddressKind.ANYCAST),
    )


def test_an_address_that_is_simply_there_is_bound_and_not_moved(us: Fleet) -> None:
    attach("still", "10.9.0.8", AddressKind.NODE, region=us.region)
    snapshot = snapshot_of(us)
    assert snapshot.addresses == ()
    assert "10.9.0.8" in {each.address for each in snapshot.load_balancers[0].listeners}


def test_what_a_cloud_keeps_is_not_the_nodes_to_bind(us: Fleet) -> None:
    attach("cloud", "203.0.113.7", AddressKind.ELASTIC)
    snapshot = snapshot_of(us)
    assert snapshot.addresses == ()
    assert {each.address for each in snapshot.load_balancers[0].listeners} == {None}


def test_an_address_that_no_listener_names_is_nobodys(us: Fleet) -> None:
    attach("vip", "10.9.0.7", AddressKind.VIP, region=us.region, router_id=7)
    Listener.objects.filter(name="vip").delete()
    assert moved(us) == ()


def test_fleets_of_one_region_that_serve_it_stand_in_for_each_other_and_no_one_elsewhere(us: Fleet) -> None:
    other = Fleet.objects.create(account=us.account, region=us.region, name="us-two")
    idle = Fleet.objects.create(account=us.account, region=us.region, name="us-idle")
    for number, fleet in enumerate((other, idle)):
        Node.objects.create(account=us.account, fleet=fleet, name=f"more-{number}", url=f"memory://more-{number}")
    LoadBalancer.objects.get(name="front").fleets.add(other)
    attach("vip", "10.9.0.7", AddressKind.VIP, region=us.region, router_id=7)
    assert Region.objects.count() > 1
    for fleet in (us, other):
        assert [each.nodes for each in moved(fleet)] == [ids(us, other)]


def test_many_addresses_cost_as_many_queries_as_one(us: Fleet) -> None:
    attach("vip", "10.9.0.7", AddressKind.VIP, region=us.region, router_id=7)
    with CaptureQueriesContext(connection) as one:
        snapshot_of(us)
    for number in range(8, 14):
        attach(f"vip-{number}", f"10.9.0.{number}", AddressKind.VIP, region=us.region, router_id=number)
    with CaptureQueriesContext(connection) as many:
        assert len(moved(us)) == 7
    assert len(many) == len(one)


def test_a_stored_vip_without_a_router_id_is_left_out_and_the_fleet_is_served(us: Fleet) -> None:
    attach("vip", "127.0.0.7", AddressKind.VIP, region=us.region)
    found = compile_snapshot(snapshot_of(us))
    assert {finding.code for finding in found.left_out} == {"router_id", "address_left_out"}
    assert "keepalived.conf" not in found.output.files
