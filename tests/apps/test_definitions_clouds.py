"""Clouds and static IPs: allotted without twins, kept while protected, moved in one document; the snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pytest_django import DjangoAssertNumQueries

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.compiler.compile import compile_stack
from apps.core.errors import Conflict, Forbidden, Invalid
from apps.definitions.freezing.stack_snapshot import freeze_stack
from apps.definitions.models import LoadBalancer, Zone
from apps.definitions.services import apply_document, delete_object, save_object
from apps.definitions.writing.kinds.static_ips import holds, lowest_free
from apps.fleet.models import Node, Stack, StaticIP
from apps.fleet.selectors import static_ips
from tests.apps.clouds_env import NETWORK, STACK, ZONE, give_real_addresses, operator_of, remembered, spec_of
from tests.conftest import apply_tutorial
from tests.fixture_cache import CachedFixture
from tests.hostile.corpus import VALUES
from tests.hostile.legal import public_url
from tests.hostile.refusals import errors_of

pytestmark = pytest.mark.django_db
CLOUDS, TUTORIAL = remembered(), CachedFixture(apply_tutorial)
EXAMPLE = Path(__file__).resolve().parents[2] / "deploy" / "examples" / "cloud.yaml"
VIP: dict[str, Any] = {"kind": "vip", "pool": "addresses", "region": "us-central1"}


@pytest.fixture
def operator(db: None, request: pytest.FixtureRequest) -> Actor:
    """The operator, with clouds where a test wants them."""
    return operator_of(CLOUDS if "clouds" in request.fixturenames else TUTORIAL)


@pytest.fixture
def clouds(operator: Actor) -> Actor:
    """The operator, with clouds."""
    return operator


def saved(actor: Actor, kind: str, name: str, spec: dict[str, Any]) -> Any:
    """The row of an object that was saved."""
    return save_object(actor=actor, kind=kind, name=name, spec=spec)


def codes_of(actor: Actor, kind: str, spec: dict[str, Any], name: str = "x") -> dict[str, str]:
    """Pointer → code of what is refused."""
    with pytest.raises(Invalid) as caught:
        saved(actor, kind, name, spec)
    return {field_error.pointer: field_error.code for field_error in caught.value.field_errors}


HERE = ("http://10.0.0.1", "https://127.0.0.1", "https://169.254.169.254", "https://[::1]", "https://localhost")


def test_no_hostile_address_of_a_cloud_is_stored(operator: Actor, settings: Any) -> None:
    settings.OUTBOUND_NETWORKS = []
    hostile = (*HERE, *(value for _, value in VALUES if value and not public_url(value)))
    specs = [{"cloud": "aws", "endpoint_url": value} for value in hostile]
    read = [spec for spec in specs if not errors_of("CloudAccount", spec)]
    assert len(read) >= len(HERE), "reading knows nothing of what the installation calls"
    for spec in read:
        assert codes_of(operator, "CloudAccount", spec) == {"/spec/endpoint_url": "url"}
    settings.OUTBOUND_NETWORKS = ["127.0.0.0/8"]  # the negative control: it is the address that was refused
    assert saved(operator, "CloudAccount", "x", {"cloud": "aws", "endpoint_url": "https://127.0.0.1"})


@pytest.mark.parametrize("url", ["http://aws.example.org", "memory://cloud"])
def test_only_a_developers_machine_calls_a_cloud_in_the_clear_or_in_memory(
    operator: Actor, settings: Any, url: str
) -> None:
    spec = {"cloud": "aws", "endpoint_url": url}
    settings.DEVELOPMENT = False
    assert codes_of(operator, "CloudAccount", spec) == {"/spec/endpoint_url": "url"}
    settings.DEVELOPMENT = True
    assert saved(operator, "CloudAccount", "x", spec)


def front(
    *, static_ip: str | None = None, fleets: tuple[str, ...] = (), stacks: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A load balancer with one http listener."""
    listener = {"name": "web", "protocol": "http", "port": 8085, "static_ip": static_ip}
    return {"fleets": list(fleets), "stacks": list(stacks), "listeners": [listener]}


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        '{"type": "service_account"}',
        "env:lower",
        "x",
    ],
)
def test_a_secret_in_place_of_a_reference_is_refused_and_not_repeated(clouds: Actor, secret: str) -> None:
    with pytest.raises(Invalid) as caught:
        saved(clouds, "CloudAccount", "x", {"cloud": "aws", "credentials": secret})
    (field_error,) = caught.value.field_errors
    assert (field_error.pointer, field_error.code) == ("/spec/credentials", "credentials")
    assert "never the secret itself" in field_error.detail
    assert secret == "x" or secret not in field_error.detail


@pytest.mark.parametrize("reference", ["", "env:PROD", "profile:prod", "role:arn:aws:iam::123456789012:role/spillway"])
def test_a_reference_is_stored_as_it_was_written(clouds: Actor, reference: str) -> None:
    assert saved(clouds, "CloudAccount", "x", {"cloud": "aws", "credentials": reference}).credentials == reference


WRONG_STACKS: list[tuple[dict[str, Any], str]] = [
    ({"cloud_region": "global"}, "/spec/cloud_region"),
    ({"region": None}, "/spec/region"),
    ({"network": {"zones": {"us-central1": "us-central1-a"}}}, "/spec/network/zones"),
    ({"network": {"vpc": "default"}}, "/spec/network/vpc"),
    ({"network": {"client_networks": ["10.0.0.1/8"]}}, "/spec/network/client_networks/0"),
    ({"network": {"client_networks": []}}, "/spec/network/client_networks"),
    ({"cloud_account": "nobody"}, "/spec/cloud_account"),
]


@pytest.mark.parametrize(("change", "pointer"), WRONG_STACKS)
def test_a_stack_that_cannot_be_is_refused_by_the_field(clouds: Actor, change: dict[str, Any], pointer: str) -> None:
    assert pointer in codes_of(clouds, "Stack", STACK | {"cloud_region": "eu-west-1"} | change)


def test_a_stack_at_google_stands_for_all_regions(clouds: Actor) -> None:
    saved(clouds, "CloudAccount", "google", {"cloud": "google", "project": "acme-prod-1"})
    spec = {"cloud_account": "google", "cloud_region": "global", "network": {"vpc": "default"}}
    assert saved(clouds, "Stack", "google", spec).region is None
    assert "/spec/region" in codes_of(clouds, "Stack", spec | {"region": "us-central1"}, "google")
    assert "/spec/network/subnets" in codes_of(clouds, "Stack", spec | {"network": NETWORK}, "google")


def test_addresses_are_allotted_from_the_lowest_and_never_the_network_or_its_broadcast(clouds: Actor) -> None:
    found = [saved(clouds, "StaticIP", f"vip-{number}", VIP).address for number in range(6)]
    assert found == [f"203.0.113.{number}" for number in range(1, 7)]
    with pytest.raises(Conflict, match="no free address"):
        saved(clouds, "StaticIP", "one-more", VIP)
    delete_object(actor=clouds, kind="StaticIP", name="vip-2")
    assert saved(clouds, "StaticIP", "again", VIP).address == "203.0.113.3"
    assert codes_of(clouds, "StaticIP", VIP | {"address": "203.0.113.0"}) == {"/spec/address": "pool"}


def test_what_is_allotted_stands_in_the_audit_record_and_stays(clouds: Actor) -> None:
    row = saved(clouds, "StaticIP", "vip", VIP)
    entry = Entry.objects.get(object_kind="StaticIP", object_label="vip")
    assert entry.after is not None
    assert (entry.after["address"], entry.after["router_id"]) == (row.address, row.router_id) == ("203.0.113.1", 1)
    assert saved(clouds, "StaticIP", "vip", VIP).version == row.version


@pytest.mark.parametrize(
    ("blocks", "taken", "expected"),
    [
        (["192.0.2.0/31"], set(), "192.0.2.0"),
        (["192.0.2.7/32"], set(), "192.0.2.7"),
        (["192.0.2.7/32", "192.0.2.8/32"], {"192.0.2.7"}, "192.0.2.8"),
        (["2001:db8::/64"], {"2001:db8::1"}, "2001:db8::2"),
        (["192.0.2.0/30"], {"192.0.2.1", "192.0.2.2"}, None),
    ],
)
def test_the_lowest_free_address_of_a_block(blocks: list[str], taken: set[str], expected: str | None) -> None:
    assert lowest_free(blocks, taken) == expected
    assert expected is None or holds(blocks, expected)


@pytest.mark.both_engines
def test_router_ids_are_unique_in_a_region_and_free_elsewhere(clouds: Actor) -> None:
    first, second = (saved(clouds, "StaticIP", name, VIP) for name in ("a", "b"))
    elsewhere = saved(clouds, "StaticIP", "c", {"kind": "vip", "address": "192.0.2.9", "region": "europe-west1"})
    assert (first.router_id, second.router_id, elsewhere.router_id) == (1, 2, 1)
    assert codes_of(clouds, "StaticIP", VIP | {"router_id": 2}) == {"/spec/router_id": "taken"}


def test_two_pools_never_hold_one_address_and_a_pool_keeps_what_it_allotted(clouds: Actor) -> None:
    assert codes_of(clouds, "AddressPool", {"blocks": ["203.0.113.4/31"]}) == {"/spec/blocks/0": "overlap"}
    assert codes_of(clouds, "AddressPool", {"blocks": ["10.0.0.0/16", "10.0.1.0/24"]}) == {"/spec/blocks/1": "overlap"}
    saved(clouds, "StaticIP", "vip", VIP)
    assert codes_of(clouds, "AddressPool", {"blocks": ["198.51.100.0/28"]}, "addresses") == {"/spec/blocks": "in_use"}
    with pytest.raises(Conflict, match="static IP vip"):
        delete_object(actor=clouds, kind="AddressPool", name="addresses")


def test_no_node_hands_its_own_address_to_others(clouds: Actor) -> None:
    node = Node.objects.filter(fleet__region__name="us-central1").earliest("pk")
    Node.objects.filter(pk=node.pk).update(address="203.0.113.1")
    given = {**VIP, "address": "203.0.113.1"}
    assert codes_of(clouds, "StaticIP", given) == {"/spec/address": "taken"}
    assert codes_of(clouds, "StaticIP", {"kind": "anycast", "address": "203.0.113.1"}) == {"/spec/address": "taken"}
    assert saved(clouds, "StaticIP", "alone", {"kind": "node", "address": "203.0.113.1"}).address == "203.0.113.1"
    moving = saved(clouds, "StaticIP", "vip", VIP).address
    assert moving == "203.0.113.2"
    there = {"fleet": node.fleet.name, "url": "https://192.0.2.77:8443", "address": moving}
    assert codes_of(clouds, "Node", there) == {"/spec/address": "taken"}


def test_a_protected_address_is_neither_deleted_nor_exchanged(clouds: Actor) -> None:
    kept = {"address": "192.0.2.9", "protected": True}
    saved(clouds, "StaticIP", "kept", kept)
    with pytest.raises(Conflict, match="protected: false"):
        delete_object(actor=clouds, kind="StaticIP", name="kept")
    assert codes_of(clouds, "StaticIP", {"address": "192.0.2.10"}, "kept") == {"/spec/address": "protected"}
    saved(clouds, "StaticIP", "kept", {"address": "192.0.2.9"})
    assert StaticIP.objects.get(name="kept").protected, "what is left out stays as it is"
    saved(clouds, "StaticIP", "kept", kept | {"protected": False})
    delete_object(actor=clouds, kind="StaticIP", name="kept")


MISFITS: list[tuple[dict[str, Any], str]] = [
    (front(static_ip="elastic", fleets=("us-central1",)), "kind"),
    (front(static_ip="elastic", stacks=("aws-us",)), "stack"),
    (front(static_ip="vip", stacks=("aws-eu",)), "kind"),
    (front(static_ip="vip", fleets=("us-central1",), stacks=("aws-eu",)), "kind"),
    (front(static_ip="vip", fleets=("europe-west1",)), "region"),
]


@pytest.mark.parametrize(("spec", "code"), MISFITS)
def test_a_listener_takes_an_address_only_where_that_can_be(clouds: Actor, spec: dict[str, Any], code: str) -> None:
    saved(clouds, "Stack", "aws-us", STACK | {"cloud_region": "us-east-1", "region": "us-central1"})
    saved(clouds, "StaticIP", "vip", VIP)
    assert codes_of(clouds, "LoadBalancer", spec, "cloud") == {"/spec/listeners/0/static_ip": code}


def test_an_address_serves_one_load_balancer_and_a_document_moves_it(clouds: Actor) -> None:
    first, second = (front(static_ip=ip, stacks=("aws-eu",)) for ip in ("elastic", None))
    saved(clouds, "LoadBalancer", "second", first)
    assert codes_of(clouds, "LoadBalancer", first, "first") == {"/spec/listeners/0/static_ip": "static_ip_in_use"}
    saved(clouds, "LoadBalancer", "first", second)
    objects = [
        {"kind": "LoadBalancer", "name": name, "spec": spec} for name, spec in (("first", first), ("second", second))
    ]
    apply_document(actor=clouds, objects=objects)
    assert LoadBalancer.objects.get(listeners__static_ip__name="elastic").name == "first"


def test_a_stack_without_a_network_takes_no_load_balancer(clouds: Actor) -> None:
    saved(clouds, "Stack", "bare", STACK | {"cloud_region": "us-east-1", "network": {}})
    assert codes_of(clouds, "LoadBalancer", front(stacks=("bare",)), "cloud") == {"/spec/stacks/0": "network"}


def test_every_change_that_concerns_a_stack_raises_its_generation(clouds: Actor, acme: Actor) -> None:
    give_real_addresses(acme)
    saved(clouds, "LoadBalancer", "cloud", front(stacks=("aws-eu",)))
    shop = spec_of(acme, "shop") | {"load_balancer": "cloud", "assertions": []}
    save_object(actor=acme, kind="Route", name="cloud", spec=shop)

    def raised(act: Any) -> bool:
        before = Stack.objects.get(name="aws-eu").desired_generation
        act()
        return Stack.objects.get(name="aws-eu").desired_generation > before

    pool = spec_of(acme, "shop", "Pool")
    assert raised(lambda: save_object(actor=acme, kind="Route", name="more", spec=shop | {"path": "/more"}))
    assert raised(lambda: save_object(actor=acme, kind="Pool", name="shop", spec=pool | {"balance": "random"}))
    assert raised(lambda: delete_object(actor=acme, kind="Route", name="more"))
    assert raised(
        lambda: saved(clouds, "StaticIP", "elastic", {"kind": "elastic", "stack": "aws-eu", "protected": True})
    )
    assert raised(lambda: saved(clouds, "CloudAccount", "prod", {"cloud": "aws", "credentials": "env:OTHER"}))
    assert not raised(lambda: saved(clouds, "StaticIP", "vip", VIP))


@pytest.mark.both_engines
def test_what_is_used_is_not_deleted(clouds: Actor) -> None:
    for kind, name in (("CloudAccount", "prod"), ("Stack", "aws-eu"), ("Zone", "shared"), ("Region", "europe-west1")):
        with pytest.raises(Conflict, match="in use by"):
            delete_object(actor=clouds, kind=kind, name=name)


def test_customers_define_no_clouds(clouds: Actor, acme: Actor) -> None:
    for kind in ("CloudAccount", "Stack", "AddressPool", "StaticIP", "Zone"):
        with pytest.raises(Forbidden):
            apply_document(actor=acme, objects=[{"kind": kind, "name": "x", "spec": EXAMPLES[kind]}])


EXAMPLES: dict[str, dict[str, Any]] = {
    "CloudAccount": {"cloud": "aws"},
    "Stack": STACK,
    "AddressPool": {"blocks": ["198.51.100.0/28"]},
    "StaticIP": {"address": "192.0.2.9"},
    "Zone": ZONE | {"domain": "x.example.net"},
}


def test_an_address_is_seen_by_the_account_that_it_was_given_to(clouds: Actor, acme: Actor, globex: Actor) -> None:
    saved(clouds, "StaticIP", "given", {"address": "192.0.2.9", "owner": "acme"})
    assert [row.name for row in static_ips(acme)] == ["given"]
    assert list(static_ips(globex)) == []


def test_a_stack_freezes_to_what_the_compiler_takes(
    clouds: Actor, acme: Actor, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    give_real_addresses(acme)
    saved(clouds, "LoadBalancer", "cloud", front(static_ip="elastic", stacks=("aws-eu",)))
    route = spec_of(acme, "shop") | {"load_balancer": "cloud", "assertions": []}
    save_object(actor=acme, kind="Route", name="cloud", spec=route)
    saved(clouds, "Zone", "aws", {"domain": "aws.example.net", "driver": "route53", "stack": "aws-eu"})
    records = {"www": {"type": "A", "load_balancer": "cloud"}, "ip": {"type": "A", "static_ip": "elastic"}}
    for label, spec in records.items():
        saved(clouds, "Record", label, {"zone": "aws", "label": label} | spec)

    stack = Stack.objects.get(name="aws-eu")
    with django_assert_max_num_queries(32):
        snapshot, generation = freeze_stack(stack.pk)
    assert generation == stack.desired_generation
    assert [each.label for each in snapshot.load_balancers] == ["cloud"]
    assert [each.label for each in snapshot.pools] == ["acme/shop"]
    assert snapshot.pools[0].backends[0].region == "europe-west1", "the stack's own region comes first"
    (listener,) = snapshot.load_balancers[0].listeners
    assert listener.address == snapshot.addresses[0].id
    assert {(each.name, bool(each.address_id), bool(each.load_balancer_id)) for each in snapshot.zones[0].records} == {
        ("www", False, True),
        ("ip", True, False),
    }
    compiled = compile_stack(snapshot)
    assert compiled.left_out == ()
    assert compiled.output.resources["aws_lb"]
    assert Zone.objects.get(name="aws").desired_generation > 0


def test_the_example_of_a_cloud_is_applied_and_compiles_without_a_refusal(tutorial_env: Actor) -> None:
    objects = yaml.safe_load(EXAMPLE.read_text())["objects"]
    plan = apply_document(actor=tutorial_env, objects=objects)
    assert plan.counts["create"] == len(objects)
    assert apply_document(actor=tutorial_env, objects=objects).counts["unchanged"] == len(objects)
    snapshot, _ = freeze_stack(Stack.objects.get(name="aws-frankfurt").pk)
    assert compile_stack(snapshot).left_out == ()
    assert StaticIP.objects.get(name="vip-1").address == "203.0.113.1"
