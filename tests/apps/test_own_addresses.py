"""Where the installation itself is reached no server may be, when it is written and when it is compiled."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname
from apps.compiler.compile import compile_snapshot
from apps.core.errors import Invalid
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import save_object
from apps.fleet.models import AddressPool, Fleet, Node, StaticIP

pytestmark = pytest.mark.django_db


@pytest.fixture
def own_addresses(tutorial_env: Actor) -> None:
    """A node and its agent, a static IP of each kind, and an address pool."""
    owner = Account.objects.get(kind="operator")
    node = Node.objects.order_by("id")[0]
    Node.objects.filter(pk=node.pk).update(address="10.9.0.5", url="https://agent-5.example:8443")
    StaticIP.objects.create(account=owner, name="vip", address="10.9.0.7", kind="vip")
    StaticIP.objects.create(
        account=owner, name="far", address="198.51.100.7", kind="aws_eip", addresses=["198.51.100.8"]
    )
    AddressPool.objects.create(account=owner, name="block", blocks=["203.0.113.0/24"])


def save(actor: Actor, address: str, name: str = "circle") -> None:
    """A pool with one server there."""
    server = {"name": "self", "address": address, "port": 80}
    spec = {"protocol": "http", "backends": [{"region": "us-central1", "limit": {"kind": "none"}, "servers": [server]}]}
    save_object(actor=actor, kind="Pool", name=name, spec=spec)


OWN = ("10.9.0.5", "agent-5.example", "10.9.0.7", "198.51.100.7", "198.51.100.8", "203.0.113.200", "shop.acme.example")


@pytest.mark.parametrize("address", OWN)
def test_a_server_where_we_are_reached_ourselves_is_refused(own_addresses: None, acme: Actor, address: str) -> None:
    Hostname.objects.filter(name="shop.acme.example").update(verification="dns")
    with pytest.raises(Invalid) as caught:
        save(acme, address)
    (field_error,) = caught.value.field_errors
    assert (field_error.pointer, field_error.code) == ("/spec/backends/0/servers/0/address", "address_refused")
    assert "requests would loop" in field_error.detail


@pytest.mark.parametrize("address", ["10.9.0.6", "198.51.100.9", "origin.acme.example", "127.0.0.1"])
def test_other_addresses_are_stored(own_addresses: None, acme: Actor, address: str) -> None:
    save(acme, address)


def test_a_name_that_somebody_only_claimed_may_be_a_server_of_others(
    own_addresses: None, acme: Actor, globex: Actor
) -> None:
    Hostname.objects.create(account=globex.account, name="origin.acme.example", explicit=True)
    save(acme, "origin.acme.example")


def test_an_address_that_becomes_ours_later_is_left_out_when_compiled(own_addresses: None, acme: Actor) -> None:
    save(acme, "10.9.0.99")
    fleet = Fleet.objects.get(name="us-central1")
    assert not any(each.code == "address_refused" for each in compile_snapshot(snapshot_of(fleet)).left_out)
    Node.objects.filter(address="10.9.0.5").update(address="10.9.0.99")
    assert [each.code for each in compile_snapshot(snapshot_of(fleet)).left_out] == ["address_refused"]
