"""Overflow: limits, policy, distances and draining, and what each fleet must know of the others."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.compiler.model.fleet import OverflowPorts, Pool, Snapshot
from apps.compiler.model.shared import Limit, LimitKind
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound, Stale
from apps.definitions import selectors
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.models import Backend
from apps.definitions.models import Pool as PoolRow
from apps.definitions.reading.describing import describe, document
from apps.definitions.reading.documents import read_spec
from apps.definitions.services import (
    apply_document,
    delete_object,
    drain_region,
    save_object,
    set_latency,
    set_limit,
    set_server,
)
from apps.fleet.distances import Latency
from apps.fleet.models import Fleet, Node, Region, RegionLatency
from apps.fleet.selectors import fleets, latency_table, regions
from apps.fleet.services import record_latency
from tests.conftest import actor_of

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


def test_a_fleet_knows_the_nodes_of_every_region_by_their_own_ports(tutorial_env: Actor) -> None:
    Fleet.objects.filter(name="europe-west1").update(peer_port=9000, overflow_port=9001, overflow_tcp_port=9002)
    found = snapshot()
    assert found.region_id == region_id("us-central1")
    assert [region.label for region in found.regions] == ["us-central1", "europe-west1"]
    node = next(node for node in found.regions[1].nodes if node.name == "eu-2")
    assert node.id == f"node-{Node.objects.get(name='eu-2').pk}"
    assert (node.address, node.peer_port, node.overflow_port, node.overflow_tcp_port) == ("127.0.0.1", 9300, 9301, 9302)
    assert snapshot("europe-west1").overflow_ports == OverflowPorts(9000, 9001, 9002)
    assert snapshot("europe-west1").regions == found.regions


def test_the_key_is_the_same_for_all_fleets_and_not_the_secret_key(tutorial_env: Actor, settings: Any) -> None:
    key = snapshot().overflow_key
    assert re.fullmatch(r"[0-9a-f]{64}", key)
    assert key == snapshot("europe-west1").overflow_key
    assert settings.SECRET_KEY not in key
    settings.SECRET_KEY = "another one that is long enough for a key"
    assert snapshot().overflow_key != key


def test_a_pool_knows_its_limits_elsewhere_and_how_many_servers_take_traffic(tutorial_env: Actor, acme: Actor) -> None:
    far = pool_of("us-central1").elsewhere
    assert [share.region_id for share in far] == [region_id("europe-west1")]
    assert (far[0].limit, far[0].ready_servers) == (Limit(LimitKind.RATE, 10), 3)
    backend = Backend.objects.get(pool__name="shop", region__name="europe-west1")
    backend.servers.filter(name="eu-vm-1").update(state="drain")
    assert pool_of("us-central1").elsewhere == (replace(far[0], ready_servers=2),)


def test_a_drained_region_takes_nothing_in_its_own_eyes_and_in_those_of_others(tutorial_env: Actor) -> None:
    Region.objects.filter(name="europe-west1").update(drained=True)
    assert pool_of("us-central1").elsewhere[0].capacity_scaler == 0
    assert pool_of("europe-west1").capacity_scaler == 0
    assert pool_of("us-central1").capacity_scaler == 1
    assert pool_of("europe-west1").elsewhere[0].capacity_scaler == 1


def test_a_region_without_nodes_gets_no_overflow(tutorial_env: Actor) -> None:
    add_region(tutorial_env, "moon", 0, 0, node=False)
    assert len(snapshot().regions) == 2
    assert [share.region_id for share in pool_of("us-central1").elsewhere] == [region_id("europe-west1")]


def test_overflow_goes_to_the_nearest_region_unless_somebody_ordered_it(tutorial_env: Actor) -> None:
    add_region(tutorial_env, "asia", 35.68, 139.69)
    add_region(tutorial_env, "dallas", 32.78, -96.8)

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


def test_a_pool_that_routes_lead_to_is_carried_where_it_has_no_servers(tutorial_env: Actor, acme: Actor) -> None:
    Backend.objects.filter(pool__name="shop", region__name="us-central1").delete()
    pool = pool_of("us-central1")
    assert (pool.servers, len(pool.elsewhere)) == ((), 1)


@pytest.mark.parametrize("policy", ["spread", "queue", "refuse"])
def test_what_happens_when_all_are_full_is_said_to_every_fleet(tutorial_env: Actor, policy: str) -> None:
    PoolRow.objects.filter(name="shop").update(when_full=policy)
    assert {pool_of(fleet).when_full for fleet in ("us-central1", "europe-west1")} == {policy}


def spec_of(actor: Actor, name: str = "shop") -> Spec:
    return copy.deepcopy(describe(selectors.pools(actor).get(name=name)))


def region_spec(name: str) -> Spec:
    actor = actor_of("operator", "operator")
    return copy.deepcopy(describe(regions(actor).get(name=name)))


def pointers(caught: pytest.ExceptionInfo[Invalid]) -> list[str]:
    return [field_error.pointer for field_error in caught.value.field_errors]


def generations() -> dict[str, int]:
    return dict(Fleet.objects.values_list("name", "desired_generation"))


@contextmanager
def pushes(*names: str) -> Iterator[None]:
    """Exactly these fleets get one higher generation."""
    before = generations()
    yield
    after = generations()
    assert {name for name in after if after[name] != before.get(name)} == set(names)


BOTH = ("us-central1", "europe-west1")


def shop_in(region: str) -> Backend:
    return Backend.objects.get(pool__name="shop", region__name=region)


def test_a_limit_is_set_by_one_small_call_with_who_and_why(tutorial_env: Actor, acme: Actor) -> None:
    pool = PoolRow.objects.get(name="shop")
    with pushes(*BOTH):
        set_limit(actor=acme, pool_id=pool.pk, region="us-central1", value=12, capacity_scaler=0.5, reason="tuned")
    row, entry = shop_in("us-central1"), Entry.objects.first()
    assert (row.limit_kind, row.limit_value, row.capacity_scaler) == ("rate", 12, 0.5)
    assert (row.limit_set_by, row.limit_set_at is not None, row.limit_measured_by) == (acme.name, True, "")
    assert entry is not None
    assert (entry.object_label, entry.reason, entry.account) == ("acme/shop in us-central1", "tuned", acme.account)
    assert (entry.before, entry.after) == (
        {"limit": {"kind": "rate", "value": 10, "scope": "backend"}, "capacity_scaler": 1.0},
        {"limit": {"kind": "rate", "value": 12, "scope": "backend"}, "capacity_scaler": 0.5},
    )
    assert PoolRow.objects.get(pk=pool.pk).version == pool.version + 1


def test_setting_the_same_limit_again_changes_nothing_not_even_who_set_it(tutorial_env: Actor, acme: Actor) -> None:
    pool, before = PoolRow.objects.get(name="shop"), shop_in("us-central1")
    with pushes():
        set_limit(actor=acme, pool_id=pool.pk, region="us-central1", kind="rate", value=10)
    after = shop_in("us-central1")
    assert (after.limit_set_by, after.limit_set_at) == (before.limit_set_by, before.limit_set_at)
    set_limit(actor=acme, pool_id=pool.pk, region="us-central1", capacity_scaler=0.25)
    assert shop_in("us-central1").limit_set_by == tutorial_env.name


def test_a_measured_limit_says_so_until_somebody_sets_another(tutorial_env: Actor, acme: Actor) -> None:
    pool_id = PoolRow.objects.get(name="shop").pk
    where: Spec = {"actor": acme, "pool_id": pool_id, "region": "us-central1"}
    set_limit(**where, value=14, measured_by="run-7")
    assert shop_in("us-central1").limit_measured_by == "run-7"
    spec = spec_of(acme)
    backend = next(entry for entry in spec["backends"] if entry["region"] == "us-central1")
    assert backend["limit"].pop("measured_by") == "run-7"
    with pushes():
        save_object(actor=acme, kind="Pool", name="shop", spec=spec)
    assert shop_in("us-central1").limit_measured_by == "run-7"
    backend["limit"]["value"] = 15
    save_object(actor=acme, kind="Pool", name="shop", spec=spec)
    assert (shop_in("us-central1").limit_measured_by, shop_in("us-central1").limit_value) == ("", 15)
    set_limit(**where, kind="none")
    assert spec_of(acme)["backends"][1]["limit"] == {"kind": "none", "value": 0, "scope": "backend"}


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"kind": "speed"}, "/kind"),
        ({"kind": "rate", "value": 0}, "/value"),
        ({"kind": "none", "value": 3}, "/value"),
        ({"kind": "connections"}, "/value"),
        ({"value": "12"}, "/value"),
        ({"scope": "town"}, "/scope"),
        ({"capacity_scaler": 1.5}, "/capacity_scaler"),
        ({"measured_by": "<b>"}, "/measured_by"),
    ],
)
def test_a_limit_that_cannot_be_is_refused_by_field(
    tutorial_env: Actor, acme: Actor, wrong: Spec, pointer: str
) -> None:
    pool_id = PoolRow.objects.get(name="shop").pk
    with pushes(), pytest.raises(Invalid) as caught:
        set_limit(actor=acme, pool_id=pool_id, region="us-central1", **wrong)
    assert pointers(caught) == [pointer]


def test_nobody_sets_a_limit_of_another_account_or_of_a_region_that_is_not_there(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    pool = PoolRow.objects.get(name="shop")
    for actor, region in ((globex, "us-central1"), (acme, "moon")):
        with pytest.raises(NotFound):
            set_limit(actor=actor, pool_id=pool.pk, region=region, value=1)
    viewer = Actor("looks", acme.account, "viewer")
    with pytest.raises(Forbidden):
        set_limit(actor=viewer, pool_id=pool.pk, region="us-central1", value=1)
    with pytest.raises(Stale):
        set_limit(actor=acme, pool_id=pool.pk, region="us-central1", value=1, expected_version=pool.version + 1)
    assert shop_in("us-central1").limit_value == 10


def test_waiting_in_a_queue_needs_limits_of_connections(tutorial_env: Actor, acme: Actor) -> None:
    spec = spec_of(acme)
    spec["overflow"] = {"when_full": "queue"}
    with pytest.raises(Invalid, match="limit by connections") as caught:
        save_object(actor=acme, kind="Pool", name="shop", spec=spec)
    assert pointers(caught) == ["/spec/overflow/when_full"]
    for backend in spec["backends"]:
        backend["limit"]["kind"] = "connections"
    pool = save_object(actor=acme, kind="Pool", name="shop", spec=spec)
    with pytest.raises(Invalid) as caught:
        set_limit(actor=acme, pool_id=pool.pk, region="us-central1", kind="rate", value=5)
    assert pointers(caught) == ["/kind"]


def test_the_order_of_overflow_names_regions_once(tutorial_env: Actor, acme: Actor) -> None:
    spec = spec_of(acme)
    for order, pointer in (
        (["moon"], "/spec/overflow/order/0"),
        (["europe-west1", "europe-west1"], "/spec/overflow/order"),
        ("europe-west1", "/spec/overflow/order"),
    ):
        with pytest.raises(Invalid) as caught:
            save_object(actor=acme, kind="Pool", name="shop", spec=spec | {"overflow": {"order": order}})
        assert pointers(caught) == [pointer]
    spec["overflow"] = {"when_full": "refuse", "order": ["europe-west1"]}
    with pushes(*BOTH):
        save_object(actor=acme, kind="Pool", name="shop", spec=spec)
    assert spec_of(acme)["overflow"] == {"mode": "anywhere", **spec["overflow"]}


@pytest.mark.both_engines
def test_a_region_that_an_order_names_is_not_deleted(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=tutorial_env, kind="Region", name="moon", spec={"title": "Moon"})
    save_object(actor=acme, kind="Pool", name="shop", spec=spec_of(acme) | {"overflow": {"order": ["moon"]}})
    with pytest.raises(Conflict, match="overflow order of pool shop"):
        delete_object(actor=tutorial_env, kind="Region", name="moon")


def test_draining_a_region_concerns_every_fleet_and_twice_is_as_good_as_once(tutorial_env: Actor) -> None:
    with pushes(*BOTH):
        drain_region(actor=tutorial_env, region="europe-west1", drained=True, reason="heat")
    entry = Entry.objects.first()
    assert entry is not None
    assert (entry.action, entry.object_label, entry.reason) == ("drain", "europe-west1", "heat")
    with pushes():
        drain_region(actor=tutorial_env, region="europe-west1", drained=True)
    assert pool_of("us-central1").elsewhere[0].capacity_scaler == 0
    with pushes(*BOTH):
        drain_region(actor=tutorial_env, region="europe-west1", drained=False)
    assert Region.objects.get(name="europe-west1").version == 3


def test_a_document_that_says_nothing_of_draining_and_distances_leaves_them(
    tutorial_env: Actor, tutorial_document: list[Spec]
) -> None:
    drain_region(actor=tutorial_env, region="us-central1", drained=True)
    set_latency(actor=tutorial_env, from_region="us-central1", to_region="europe-west1", ms=55)
    with pushes():
        apply_document(actor=tutorial_env, objects=tutorial_document)
    assert region_spec("us-central1")["drained"] is True
    assert region_spec("us-central1")["latency"] == [{"to": "europe-west1", "ms": 55}]
    with pushes(*BOTH):
        spec = {"title": "Iowa", "latitude": 41.26, "longitude": -95.86, "drained": False, "latency": []}
        save_object(actor=tutorial_env, kind="Region", name="us-central1", spec=spec)
    assert region_spec("us-central1") == spec


def test_customers_drain_nothing(tutorial_env: Actor, acme: Actor) -> None:
    with pytest.raises(Forbidden):
        drain_region(actor=acme, region="us-central1", drained=True)
    with pytest.raises(Forbidden):
        set_latency(actor=acme, from_region="us-central1", to_region="europe-west1", ms=1)
    assert not Region.objects.filter(drained=True).exists()


def test_a_distance_wants_a_push_only_when_another_region_becomes_the_nearest(tutorial_env: Actor) -> None:
    add_region(tutorial_env, "asia", 35.68, 139.69)
    where: Spec = {"actor": tutorial_env, "from_region": "us-central1"}
    with pushes():
        set_latency(**where, to_region="asia", ms=160)
    with pushes(*BOTH, "asia"):
        set_latency(**where, to_region="asia", ms=20)
    with pushes(*BOTH, "asia"):
        set_latency(**where, to_region="asia", ms=None)
    for to, ms, error in (
        ("asia", -1, Invalid),
        ("asia", "5", Invalid),
        ("us-central1", 5, Invalid),
        ("x", 5, NotFound),
    ):
        with pytest.raises(error):
            set_latency(**where, to_region=to, ms=ms)


def test_what_nodes_measure_is_kept_and_wants_a_push_only_when_it_matters(tutorial_env: Actor) -> None:
    asia = add_region(tutorial_env, "asia", 35.68, 139.69)
    home = Region.objects.get(name="us-central1")

    def measure(ms: int) -> RegionLatency:
        record_latency(from_region_id=home.pk, to_region_id=asia.pk, ms=ms)
        return RegionLatency.objects.get(from_region=home, to_region=asia)

    entries = Entry.objects.count()
    with pushes():
        first = measure(160)
    assert (first.measured_ms, first.set_ms) == (160, None)
    with pushes():
        assert measure(170).measured_at == first.measured_at, "a small change is no news"
    with pushes(*BOTH, "asia"):
        assert measure(4).measured_ms == 4
    record_latency(from_region_id=home.pk, to_region_id=home.pk, ms=1)
    record_latency(from_region_id=home.pk, to_region_id=10**9, ms=1)
    assert (RegionLatency.objects.filter(measured_ms__isnull=False).count(), Entry.objects.count()) == (1, entries)
    assert latency_table()[home.pk, asia.pk] == Latency(4, "measured")


def test_regions_of_one_document_may_name_each_other(operator: Actor, tutorial_document: list[Spec]) -> None:
    for entry in tutorial_document:
        if entry["kind"] == "Region":
            other = next(name for name in BOTH if name != entry["name"])
            entry["spec"]["latency"] = [{"to": other, "ms": 90}]
    assert apply_document(actor=operator, objects=tutorial_document).counts["create"] == len(tutorial_document)
    assert apply_document(actor=operator, objects=tutorial_document).counts["update"] == 0
    assert {region_spec(name)["latency"][0]["ms"] for name in BOTH} == {90}
    spec = region_spec("us-central1")
    for to, code in (("moon", "unknown"), ("us-central1", "self")):
        spec["latency"] = [{"to": to, "ms": 5}]
        with pytest.raises(Invalid) as caught:
            save_object(actor=operator, kind="Region", name="us-central1", spec=spec)
        assert [(field_error.pointer, field_error.code) for field_error in caught.value.field_errors] == [
            ("/spec/latency/0/to", code)
        ]


def test_nodes_and_their_ports_concern_every_fleet(tutorial_env: Actor) -> None:
    spec = {"fleet": "us-central1", "url": "memory://us-3", "address": "127.0.0.3"}
    with pushes(*BOTH):
        save_object(actor=tutorial_env, kind="Node", name="us-3", spec=spec)
    with pushes(*BOTH):
        save_object(actor=tutorial_env, kind="Node", name="us-3", spec=spec | {"address": "127.0.0.4"})
    with pushes(*BOTH):
        delete_object(actor=tutorial_env, kind="Node", name="us-3")
    with pushes(*BOTH):
        ports = {"region": "us-central1", "local_development": True, "peer_port": 9003}
        save_object(actor=tutorial_env, kind="Fleet", name="us-central1", spec=ports)


@pytest.mark.parametrize(
    ("ports", "pointer"),
    [
        ({"peer_port": 0}, "/spec/peer_port"),
        ({"overflow_port": 65536}, "/spec/overflow_port"),
        ({"peer_port": 9001, "overflow_tcp_port": 9001}, "/spec/overflow_tcp_port"),
        ({"overflow_port": 8080}, "/spec/overflow_port"),
    ],
)
def test_ports_of_a_fleet_collide_with_nothing(tutorial_env: Actor, ports: Spec, pointer: str) -> None:
    spec = {"region": "us-central1", "local_development": True} | ports
    with pytest.raises(Invalid) as caught:
        save_object(actor=tutorial_env, kind="Fleet", name="us-central1", spec=spec)
    assert pointers(caught) == [pointer]


def test_a_listener_leaves_the_ports_of_the_nodes_among_themselves_alone(tutorial_env: Actor) -> None:
    port = Fleet.objects.get(name="us-central1").overflow_port
    spec = {"fleets": ["us-central1"], "listeners": [{"name": "x", "protocol": "http", "port": port}]}
    with pytest.raises(Invalid, match="internally") as caught:
        save_object(actor=tutorial_env, kind="LoadBalancer", name="second", spec=spec)
    assert pointers(caught) == ["/spec/listeners/0/port"]


def test_the_last_server_of_a_region_concerns_the_others_and_one_of_several_does_not(
    tutorial_env: Actor, acme: Actor
) -> None:
    servers = list(shop_in("europe-west1").servers.all())
    for server in servers[:2]:
        with pushes("europe-west1"):
            set_server(actor=acme, server_id=server.pk, state="drain")
    with pushes(*BOTH):
        set_server(actor=acme, server_id=servers[2].pk, state="maintenance")
    Backend.objects.filter(pool__name="shop").update(limit_scope="server")
    with pushes(*BOTH):
        set_server(actor=acme, server_id=servers[2].pk, state="ready")
    with pushes("europe-west1"):
        set_server(actor=acme, server_id=servers[2].pk, weight=3)
    with pushes(*BOTH):
        set_server(actor=acme, server_id=servers[2].pk, weight=0)


def test_describing_regions_and_fleets_and_reading_them_again_gives_the_same_document(tutorial_env: Actor) -> None:
    drain_region(actor=tutorial_env, region="us-central1", drained=True)
    rows: list[Region | Fleet] = [*regions(tutorial_env), *fleets(tutorial_env)]
    for row in rows:
        assert document(read_spec(type(row).__name__, describe(row))) == describe(row)
