"""DEFINE → COMPILE, overflow: what each fleet must know of the other regions, and in which order it tries them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.model import Limit, LimitKind, OverflowPorts, Pool, Snapshot
from apps.definitions.models import Backend
from apps.definitions.models import Pool as PoolRow
from apps.definitions.services import save_object
from apps.definitions.snapshot import freeze
from apps.fleet.models import Fleet, Node, Region, RegionLatency

Spec = dict[str, Any]


def snapshot(fleet: str = "us-central1") -> Snapshot:
    return freeze(Fleet.objects.get(name=fleet).pk)[0]


def pool_of(fleet: str, name: str = "shop") -> Pool:
    return next(pool for pool in snapshot(fleet).pools if pool.label == f"acme/{name}")


def region_id(name: str) -> str:
    return f"rgn-{Region.objects.get(name=name).pk}"


def add_region(actor: Actor, name: str, latitude: float, longitude: float, *, node: bool = True) -> Region:
    """A region with a fleet, and with a backend of the shop without servers."""
    spec: Spec = {"title": name, "latitude": latitude, "longitude": longitude}
    region: Region = save_object(actor=actor, kind="Region", name=name, spec=spec)
    save_object(actor=actor, kind="Fleet", name=name, spec={"region": name, "local_development": True})
    if node:
        spec = {"fleet": name, "url": f"memory://{name}", "address": "127.0.0.9"}
        save_object(actor=actor, kind="Node", name=name, spec=spec)
    shop = PoolRow.objects.get(name="shop")
    Backend.objects.create(account=shop.account, pool=shop, region=region, limit_kind="rate", limit_value=7)
    return region


def test_a_fleet_knows_the_nodes_of_every_region_by_their_own_ports(tutorial_world: Actor) -> None:
    Fleet.objects.filter(name="europe-west1").update(peer_port=9000, overflow_port=9001, overflow_tcp_port=9002)
    found = snapshot()
    assert found.region_id == region_id("us-central1")
    assert [region.label for region in found.regions] == ["us-central1", "europe-west1"]
    node = next(node for node in found.regions[1].nodes if node.name == "eu-2")
    assert node.id == f"node-{Node.objects.get(name='eu-2').pk}"
    assert (node.address, node.peer_port, node.overflow_port, node.overflow_tcp_port) == ("127.0.0.1", 9300, 9301, 9302)
    assert snapshot("europe-west1").overflow_ports == OverflowPorts(9000, 9001, 9002)
    assert snapshot("europe-west1").regions == found.regions


def test_the_key_is_the_same_for_all_fleets_and_not_the_secret_key(tutorial_world: Actor, settings: Any) -> None:
    key = snapshot().overflow_key
    assert re.fullmatch(r"[0-9a-f]{64}", key)
    assert key == snapshot("europe-west1").overflow_key
    assert settings.SECRET_KEY not in key
    settings.SECRET_KEY = "another one that is long enough for a key"
    assert snapshot().overflow_key != key


def test_a_pool_knows_its_limits_elsewhere_and_how_many_servers_take_traffic(
    tutorial_world: Actor, acme: Actor
) -> None:
    far = pool_of("us-central1").elsewhere
    assert [share.region_id for share in far] == [region_id("europe-west1")]
    assert (far[0].limit, far[0].ready_servers) == (Limit(LimitKind.RATE, 10), 3)
    backend = Backend.objects.get(pool__name="shop", region__name="europe-west1")
    backend.servers.filter(name="eu-vm-1").update(state="drain")
    assert pool_of("us-central1").elsewhere == (replace(far[0], ready_servers=2),)


def test_a_drained_region_takes_nothing_in_its_own_eyes_and_in_those_of_others(tutorial_world: Actor) -> None:
    Region.objects.filter(name="europe-west1").update(drained=True)
    assert pool_of("us-central1").elsewhere[0].capacity_scaler == 0
    assert pool_of("europe-west1").capacity_scaler == 0
    assert pool_of("us-central1").capacity_scaler == 1
    assert pool_of("europe-west1").elsewhere[0].capacity_scaler == 1


def test_a_region_without_nodes_gets_no_overflow(tutorial_world: Actor) -> None:
    add_region(tutorial_world, "moon", 0, 0, node=False)
    assert len(snapshot().regions) == 2
    assert [share.region_id for share in pool_of("us-central1").elsewhere] == [region_id("europe-west1")]


def test_overflow_goes_to_the_nearest_region_unless_somebody_ordered_it(tutorial_world: Actor) -> None:
    add_region(tutorial_world, "asia", 35.68, 139.69)
    add_region(tutorial_world, "dallas", 32.78, -96.8)

    def order(fleet: str = "us-central1") -> list[str]:
        names = {f"rgn-{pk}": name for pk, name in Region.objects.values_list("pk", "name")}
        return [names[share.region_id] for share in pool_of(fleet).elsewhere]

    assert order() == ["dallas", "europe-west1", "asia"]
    first, second = Region.objects.get(name="us-central1"), Region.objects.get(name="asia")
    RegionLatency.objects.create(from_region=second, to_region=first, set_ms=3)
    assert order() == ["asia", "dallas", "europe-west1"]
    assert order("asia") == ["us-central1", "europe-west1", "dallas"]
    PoolRow.objects.filter(name="shop").update(overflow_order=["europe-west1", "gone", "us-central1"])
    assert order() == ["europe-west1", "asia", "dallas"]
    assert order("asia") == ["europe-west1", "us-central1", "dallas"]


def test_a_pool_that_routes_lead_to_is_carried_where_it_has_no_servers(tutorial_world: Actor, acme: Actor) -> None:
    Backend.objects.filter(pool__name="shop", region__name="us-central1").delete()
    pool = pool_of("us-central1")
    assert (pool.servers, len(pool.elsewhere)) == ((), 1)


@pytest.mark.parametrize("policy", ["spread", "queue", "refuse"])
def test_what_happens_when_all_are_full_is_said_to_every_fleet(tutorial_world: Actor, policy: str) -> None:
    PoolRow.objects.filter(name="shop").update(when_full=policy)
    assert {pool_of(fleet).when_full for fleet in ("us-central1", "europe-west1")} == {policy}
