"""A dry run says what a plan of a stack would hold and what a zone would serve, to each what is theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.definitions.models import LoadBalancer, Record, Zone
from apps.definitions.services import DryRun, apply_document, delete_object, dry_run, save_object
from apps.definitions.writing.dry_runs import fleet_differences as sentences
from apps.definitions.writing.dry_runs import zone_differences
from apps.definitions.writing.dry_runs.stack_differences import STACKS
from apps.definitions.writing.dry_runs.zone_differences import ZONES
from apps.fleet.models import Stack
from apps.stacks.models import StackSync
from apps.stacks.review.replacements import NOTICED
from apps.stacks.run import compiling
from apps.stacks.state import revision_store
from tests.apps.clouds_env import RECORD, STACK, give_real_addresses, operator_of, remembered, spec_of

pytestmark = pytest.mark.django_db
FRONT = {"stacks": ["aws-eu"], "listeners": [{"name": "web", "protocol": "http", "port": 80}]}
Change = Callable[[], object]


def add_cart(operator: Actor, acme: Actor) -> None:
    """A load balancer at AWS and a route of acme in it, sixty to forty between two pools."""
    give_real_addresses(acme)
    save_object(actor=acme, kind="Pool", name="shop-two", spec=spec_of(acme, "shop", "Pool"))
    save_object(actor=operator, kind="LoadBalancer", name="cloud", spec=FRONT)
    save_object(actor=acme, kind="Route", name="cart", spec=cart(acme, 60))


CLOUD = remembered(add_cart)


@pytest.fixture
def operator(db: None) -> Actor:
    """The operator, with a load balancer at AWS that serves acme's cart."""
    return operator_of(CLOUD)


@pytest.fixture
def cloud(operator: Actor) -> Actor:
    """The same."""
    return operator


def cart(acme: Actor, weight: int, **more: Any) -> dict[str, Any]:
    """The route to shop at this weight, and to its double with what is left of a hundred."""
    pools = [{"pool": "shop", "weight": weight}, {"pool": "shop-two", "weight": 100 - weight}]
    return spec_of(acme, "shop") | {"assertions": [], "load_balancer": "cloud", "action": {"pools": pools}} | more


def shifting(acme: Actor, weight: int) -> Change:
    """The route's shares become others."""
    return partial(save_object, actor=acme, kind="Route", name="cart", spec=cart(acme, weight))


def losing(acme: Actor) -> Change:
    """The route goes."""
    return partial(delete_object, actor=acme, kind="Route", name="cart")


def approve(operator: Actor, approval: str) -> None:
    """Whom the stack's plans wait for."""
    save_object(actor=operator, kind="Stack", name="aws-eu", spec=STACK | {"approval": approval})


def keep_applied() -> None:
    """The cloud has what is wanted now."""
    stack = Stack.objects.get(name="aws-eu")
    found = compiling.compiled(stack.pk)
    revision = revision_store.store(
        stack_id=stack.pk,
        generation=found.generation,
        compilation=found.compilation,
        secrets=found.secrets,
        labels=found.labels,
        summary="",
        actor="somebody",
    )
    StackSync.objects.update_or_create(stack=stack, defaults={"applied": revision, "wanted": revision})


def test_weights_are_told_as_shares_of_pools_and_nothing_is_stored(cloud: Actor, acme: Actor) -> None:
    before = Stack.objects.get(name="aws-eu").desired_generation
    (found,) = dry_run(cloud, shifting(acme, 50)).stacks
    assert found.changes == (
        "route acme/cart: weight of acme/shop in europe-west1: 60 % → 50 %",
        "route acme/cart: weight of acme/shop-two in europe-west1: 40 % → 50 %",
    )
    assert (found.stack, found.target, found.to_add, found.to_change, found.to_delete) == ("aws-eu", "aws", 0, 1, 0)
    assert (found.decision, found.refused, found.warnings) == ("person", (), ())
    assert Stack.objects.get(name="aws-eu").desired_generation == before


def test_objects_that_come_and_go_are_told_with_the_resources_behind_them(cloud: Actor, acme: Actor) -> None:
    (gone,) = dry_run(cloud, losing(acme)).stacks
    assert "route acme/cart: deleted (aws_lb_listener_rule)" in gone.changes
    assert "backend acme/shop in europe-west1: deleted (aws_lb_target_group)" in gone.changes
    assert (gone.to_add, gone.to_delete > 4) == (0, True)
    more = partial(save_object, actor=acme, kind="Route", name="more", spec=cart(acme, 60, path="/more"))
    (made,) = dry_run(cloud, more).stacks
    assert made.changes == ("route acme/more: added (aws_lb_listener_rule)",)
    assert (made.to_add, made.to_delete) == (1, 0)


def test_what_the_cloud_cannot_change_where_it_stands_is_told_as_made_anew_with_what_clients_notice(
    cloud: Actor,
) -> None:
    """Bound to addresses, the ALB gets another one before it and stands inside, which it cannot become."""
    approve(cloud, "automatic_safe")
    keep_applied()
    listeners = [FRONT["listeners"][0] | {"static_ip": "elastic"}]  # type: ignore[index]
    change = partial(save_object, actor=cloud, kind="LoadBalancer", name="cloud", spec=FRONT | {"listeners": listeners})
    (found,) = dry_run(cloud, change).stacks
    assert f"load balancer cloud: {NOTICED['aws_lb']}" in found.changes
    assert "load balancer cloud: internal: False → True" in found.changes
    assert "route acme/cart: replaced (aws_lb_listener_rule)" in found.changes
    assert (found.to_replace, found.decision) == (3, "person"), "the balancer, its listener, the listener's rule"
    assert found.reason == "A person must approve it: 3 resources would be replaced."


def test_another_vpc_makes_anew_what_stands_in_it(cloud: Actor) -> None:
    network = STACK["network"] | {"vpc": "vpc-0f0f0f0f"}
    change = partial(save_object, actor=cloud, kind="Stack", name="aws-eu", spec=STACK | {"network": network})
    (found,) = dry_run(cloud, change).stacks
    assert f"load balancer cloud: {NOTICED['aws_lb']}" in found.changes
    assert "backend acme/shop in europe-west1: replaced (aws_lb_target_group)" in found.changes
    assert (found.to_add, found.to_delete) == (0, 0)


def test_at_google_routes_are_told_by_name_though_they_share_a_resource(cloud: Actor, acme: Actor) -> None:
    account = {"cloud": "google", "project": "acme-prod-1"}
    save_object(actor=cloud, kind="CloudAccount", name="google", spec=account)
    zones = {"europe-west1": "europe-west1-b", "us-central1": "us-central1-a"}
    stack = {"cloud_account": "google", "cloud_region": "global", "network": {"vpc": "default", "zones": zones}}
    save_object(actor=cloud, kind="Stack", name="google", spec=stack)
    save_object(actor=cloud, kind="LoadBalancer", name="cloud", spec=FRONT | {"stacks": ["google"]})
    (found,) = dry_run(cloud, shifting(acme, 50)).stacks
    assert (found.stack, found.to_change) == ("google", 1)
    assert found.changes == (
        "route shop.acme.example /: pool acme/shop weight 60 → 50",
        "route shop.acme.example /: pool acme/shop-two weight 40 → 50",
    )


def test_a_change_that_concerns_no_cloud_tells_of_none(cloud: Actor, acme: Actor) -> None:
    spec = spec_of(acme, "shop") | {"methods": ["GET"]}
    found = dry_run(cloud, partial(save_object, actor=acme, kind="Route", name="shop", spec=spec))
    assert (found.stacks, found.zones) == ((), ())
    assert found.fleets


def test_a_change_that_means_nothing_to_the_cloud_says_so(cloud: Actor) -> None:
    change = partial(save_object, actor=cloud, kind="Stack", name="aws-eu", spec=STACK | {"approval": "automatic"})
    (found,) = dry_run(cloud, change).stacks
    assert (found.decision, found.changes) == ("nothing", ())


@pytest.mark.parametrize(
    ("approval", "shift", "loss"),
    [
        ("automatic_safe", "policy", "person"),
        ("automatic", "policy", "policy"),
    ],
)
def test_who_would_approve_follows_from_the_stacks_policy(
    cloud: Actor, acme: Actor, approval: str, shift: str, loss: str
) -> None:
    approve(cloud, approval)
    assert [each.decision for each in dry_run(cloud, shifting(acme, 50)).stacks] == [shift]
    assert [each.decision for each in dry_run(cloud, losing(acme)).stacks] == [loss]


def test_what_waits_already_goes_out_with_the_change_and_is_decided_with_it(cloud: Actor, acme: Actor) -> None:
    approve(cloud, "automatic_safe")
    save_object(actor=acme, kind="Route", name="more", spec=cart(acme, 60, path="/more"))
    keep_applied()
    assert [each.decision for each in dry_run(cloud, shifting(acme, 50)).stacks] == ["policy"]
    delete_object(actor=acme, kind="Route", name="more")
    (found,) = dry_run(cloud, shifting(acme, 50)).stacks
    assert (found.decision, found.to_delete) == ("person", 0)
    assert "1 resource would be deleted" in found.reason


def test_what_the_cloud_does_otherwise_is_told_when_it_is_new(cloud: Actor, acme: Actor) -> None:
    pool = spec_of(acme, "shop", "Pool")
    save_object(actor=acme, kind="Pool", name="third", spec=pool)
    pools = [{"pool": "shop", "weight": 1}, {"pool": "third", "weight": 1}]
    spec = cart(acme, 60) | {"action": {"pools": pools}}
    (found,) = dry_run(cloud, partial(save_object, actor=acme, kind="Route", name="cart", spec=spec)).stacks
    assert found.warnings
    assert all(warning.startswith("acme/third: ") for warning in found.warnings), "those of acme/shop stood there"


def test_customers_read_what_the_cloud_makes_of_their_own_objects_and_nothing_of_stacks(
    cloud: Actor, acme: Actor, globex: Actor
) -> None:
    """Each reads the same change, which is the operator's: it brings the whole load balancer into a stack."""
    save_object(actor=cloud, kind="CloudAccount", name="second", spec={"cloud": "aws", "credentials": ""})
    stack = STACK | {"cloud_account": "second"}
    save_object(actor=cloud, kind="Stack", name="aws-two", spec=stack)
    both = FRONT | {"stacks": ["aws-eu", "aws-two"]}
    change = partial(save_object, actor=cloud, kind="LoadBalancer", name="cloud", spec=both)
    told = {actor.account.name: dry_run(actor, change).stacks for actor in (cloud, acme, globex)}
    (own,) = told["acme"]
    assert (own.stack, own.target, own.changes, own.decision, own.to_add) == ("", "aws", (), None, 0)
    assert own.warnings
    assert all(warning.startswith("acme/") for warning in own.warnings)
    assert told["globex"] == ()
    assert "aws-two" not in str(told["acme"])
    theirs = next(each for each in told["operator"] if each.stack == "aws-two")
    assert any(warning.startswith("cloud: ") for warning in theirs.warnings), "operators read all of it"
    assert set(own.warnings) < set(theirs.warnings)


def zone_of(found: DryRun[Any]) -> list[tuple[Any, ...]]:
    """What becomes of the one zone's records."""
    (zone,) = found.zones
    return [
        (each.action, each.name, each.type, each.before and each.before.values, each.after and each.after.values)
        for each in zone.changes
    ]


def test_records_that_come_change_and_go_are_told_with_their_values(cloud: Actor, acme: Actor) -> None:
    www = "www.shared.example.net"
    make = partial(save_object, actor=acme, kind="Record", name="www", spec=RECORD)
    assert zone_of(dry_run(acme, make)) == [("create", www, "A", None, ("192.0.2.80",))]
    assert not Record.objects.filter(name="www").exists()
    make()
    other = RECORD | {"values": ["192.0.2.81"]}
    change = partial(save_object, actor=acme, kind="Record", name="www", spec=other)
    assert zone_of(dry_run(acme, change)) == [("update", www, "A", ("192.0.2.80",), ("192.0.2.81",))]
    gone = partial(delete_object, actor=acme, kind="Record", name="www")
    assert zone_of(dry_run(acme, gone)) == [("delete", www, "A", ("192.0.2.80",), None)]


def test_records_that_follow_an_address_are_told_and_customers_read_their_own(cloud: Actor, acme: Actor) -> None:
    given = {"address": "192.0.2.9", "owner": "acme"}
    save_object(actor=cloud, kind="StaticIP", name="given", spec=given)
    follow = {"values": [], "static_ip": "given"}
    save_object(actor=acme, kind="Record", name="www", spec=RECORD | follow)
    save_object(actor=cloud, kind="Record", name="own", spec=RECORD | follow | {"zone": "shared", "label": "own"})
    spec = given | {"address": "192.0.2.11"}
    change = partial(save_object, actor=cloud, kind="StaticIP", name="given", spec=spec)
    www, own = (
        ("update", f"{label}.shared.example.net", "A", ("192.0.2.9",), ("192.0.2.11",)) for label in ("www", "own")
    )
    assert zone_of(dry_run(acme, change)) == [www]
    assert zone_of(dry_run(cloud, change)) == [own, www], "operators read all of it"


def test_a_zone_in_which_a_customer_has_no_part_is_not_named_to_it(cloud: Actor, acme: Actor, globex: Actor) -> None:
    make = partial(save_object, actor=acme, kind="Record", name="www", spec=RECORD)
    assert dry_run(globex, make).zones == ()
    assert dry_run(acme, make).zones


def test_a_record_without_an_address_yet_says_what_it_waits_for(cloud: Actor) -> None:
    spec = RECORD | {"zone": "shared", "label": "ip", "values": [], "static_ip": "elastic"}
    (zone,) = dry_run(cloud, partial(save_object, actor=cloud, kind="Record", name="ip", spec=spec)).zones
    (change,) = zone.changes
    assert change.after is not None
    assert change.after.values == ()
    assert "elastic has no address of type A yet" in change.note


def test_a_zone_that_goes_with_its_records_is_warned_of(cloud: Actor) -> None:
    apply_document(actor=cloud, manager="ci", objects=[
        {"kind": "Zone", "name": "lost", "spec": {"domain": "lost.example.net", "driver": "memory"}},
        {"kind": "Record", "name": "lost", "spec": RECORD | {"zone": "lost"}},
    ])  # fmt: skip
    (zone,) = dry_run(cloud, partial(apply_document, actor=cloud, manager="ci", prune=True, objects=[])).zones
    assert (zone.zone, zone.changes) == ("lost", ())
    assert "keeps serving" in zone.warnings[0]


def test_long_lists_are_cut_and_say_how_many_more_there_are(
    cloud: Actor, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zone_differences, "MAX_RECORDS", 2)
    monkeypatch.setattr(sentences, "MAX_SENTENCES", 1)
    records = [
        {"kind": "Record", "name": f"r{number}", "spec": RECORD | {"zone": "shared", "label": f"r{number}"}}
        for number in range(5)
    ]
    (zone,) = dry_run(cloud, partial(apply_document, actor=cloud, objects=records)).zones
    assert (len(zone.changes), zone.more) == (2, 3)
    (stack,) = dry_run(cloud, shifting(acme, 50)).stacks
    assert stack.changes == ("route acme/cart: weight of acme/shop in europe-west1: 60 % → 50 %", "… and 1 more.")


def queries_of(freeze: Change) -> int:
    """How many queries it takes."""
    with CaptureQueriesContext(connection) as found:
        freeze()
    return len(found)


def test_the_number_of_queries_does_not_depend_on_the_number_of_rows(cloud: Actor, acme: Actor) -> None:
    zone = Zone.objects.get(name="shared")
    looks = (partial(ZONES.frozen, [zone.domain]), partial(STACKS.frozen, ["aws-eu"]))

    def grow(number: int) -> None:
        front = LoadBalancer.objects.create(account=cloud.account, name=f"front-{number}")
        usual: dict[str, Any] = {"account": cloud.account, "zone": zone, "load_balancer": front}
        for kind in ("A", "CNAME"):
            Record.objects.create(name=f"{kind.lower()}-{number}", label=f"{kind.lower()}{number}", type=kind, **usual)
        save_object(actor=acme, kind="Route", name=f"r{number}", spec=cart(acme, 60, path=f"/{number}"))

    grow(1)
    before = [queries_of(look) for look in looks]
    for number in range(2, 6):
        grow(number)
    assert [queries_of(look) for look in looks] == before
