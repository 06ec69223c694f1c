"""What the clouds of a load balancer cannot do is refused where it is written, with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.errors import Invalid
from apps.definitions.models import LoadBalancer, Route
from apps.definitions.previewing.portability import portability_of
from apps.definitions.services import apply_document, save_object
from tests.apps.clouds_env import give_real_addresses, operator_of, remembered, spec_of

pytestmark = pytest.mark.django_db
ABSENT = {"headers": [{"name": "X-Beta", "match": "absent"}], "path": "/beta"}


def add_load_balancer(operator: Actor, acme: Actor) -> None:
    """One in a stack at AWS; servers of shop are no loopback."""
    give_real_addresses(acme)
    listener = {"name": "web", "protocol": "http", "port": 80}
    spec = {"stacks": ["aws-eu"], "listeners": [listener]}
    save_object(actor=operator, kind="LoadBalancer", name="cloud", spec=spec)


CLOUD = remembered(add_load_balancer)


@pytest.fixture
def operator(db: None) -> Actor:
    """The operator, with a load balancer in a stack at AWS."""
    return operator_of(CLOUD)


@pytest.fixture
def cloud(operator: Actor) -> Actor:
    """The same."""
    return operator


def route(acme: Actor, **change: Any) -> dict[str, Any]:
    """The tutorial's route to shop with some fields changed."""
    return spec_of(acme, "shop") | {"assertions": []} | change


def errors_of(caught: pytest.ExceptionInfo[Invalid]) -> dict[str, str]:
    """Pointer → code."""
    return {field_error.pointer: field_error.code for field_error in caught.value.field_errors}


def test_a_route_that_an_alb_cannot_have_is_refused_by_its_field(cloud: Actor, acme: Actor) -> None:
    with pytest.raises(Invalid) as caught:
        save_object(actor=acme, kind="Route", name="beta", spec=route(acme, load_balancer="cloud", **ABSENT))
    assert errors_of(caught) == {"/spec/headers": "header_absent"}
    assert "X-Beta" in caught.value.field_errors[0].detail
    assert not Route.objects.filter(name="beta").exists()


def test_the_same_route_stands_on_fleets(cloud: Actor, acme: Actor) -> None:
    assert save_object(actor=acme, kind="Route", name="beta", spec=route(acme, load_balancer="front", **ABSENT))


def test_in_a_document_the_error_names_the_object(cloud: Actor, acme: Actor) -> None:
    good = {"kind": "Route", "name": "good", "spec": route(acme, load_balancer="cloud", path="/good")}
    bad = {"kind": "Route", "name": "bad", "spec": route(acme, load_balancer="cloud", path="/b", prefix_rewrite="/c")}
    with pytest.raises(Invalid) as caught:
        apply_document(actor=acme, objects=[good, bad])
    assert errors_of(caught) == {"/objects/1/spec/prefix_rewrite": "prefix_rewrite"}


def test_a_load_balancer_does_not_come_to_a_stack_with_routes_that_cannot(cloud: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="beta", spec=route(acme, load_balancer="front", **ABSENT))
    spec = spec_of(cloud, "front", "LoadBalancer") | {"stacks": ["aws-eu"]}
    with pytest.raises(Invalid) as caught:
        save_object(actor=cloud, kind="LoadBalancer", name="front", spec=spec)
    found = [field_error for field_error in caught.value.field_errors if field_error.code == "header_absent"]
    assert {field_error.pointer for field_error in found} == {"/spec/stacks"}
    assert any("acme/beta" in field_error.detail for field_error in found)
    assert not LoadBalancer.objects.get(name="front").stacks.exists()


def test_a_report_says_it_before_anything_moves_and_customers_read_their_own(
    cloud: Actor, acme: Actor, globex: Actor
) -> None:
    save_object(actor=acme, kind="Route", name="beta", spec=route(acme, load_balancer="front", **ABSENT))
    front = LoadBalancer.objects.get(name="front").pk
    found = {(each.label, each.code) for each in portability_of(cloud, front, "aws") if each.refused}
    assert ("acme/beta", "header_absent") in found
    assert {each.label.partition("/")[0] for each in portability_of(acme, front)} == {"acme"}
    assert ("acme/beta", "header_absent") not in {(each.label, each.code) for each in portability_of(globex, front)}
    assert {each.target for each in portability_of(cloud, front, "google")} <= {"google"}
