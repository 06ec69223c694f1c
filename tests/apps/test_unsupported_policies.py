"""What clouds cannot do of a policy is refused when it is saved or attached; what stood there before stays editable."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import LoadBalancer, Policy, Route, RoutePolicy
from apps.definitions.services import apply_document, save_object
from tests.apps.clouds_env import give_real_addresses, operator_of, remembered, spec_of
from tests.conftest import actor_of

pytestmark = pytest.mark.django_db
LIMIT = {"client_limit": {"requests": 5}}
OFF = {"maintenance": {"enabled": False}}
HEADERS = {"request_headers": {"set": {"X-A": "1"}}}
WHY = "Limits per client on an ALB need AWS WAF, which Spillway does not configure. Serve the route from a fleet."


def make_cloud(operator: Actor, acme: Actor) -> None:
    """A load balancer at AWS with a route of acme on it, which names a policy that asks for nothing."""
    give_real_addresses(acme)
    spec: dict[str, Any] = {
        "stacks": ["aws-eu"],
        "listeners": [{"name": "web", "protocol": "http", "port": 80}],
    }
    save_object(actor=operator, kind="LoadBalancer", name="cloud", spec=spec)
    save_object(actor=acme, kind="Policy", name="web", spec={"rules": OFF})
    save_object(actor=acme, kind="Route", name="there", spec=on_cloud(acme, policies=["web"]))


def on_cloud(acme: Actor, **change: Any) -> dict[str, Any]:
    """The tutorial's route to shop, at AWS, with some fields changed."""
    return spec_of(acme, "shop") | {"assertions": [], "load_balancer": "cloud", "path": "/there"} | change


CLOUD = remembered(make_cloud)


@pytest.fixture
def operator(db: None) -> Actor:
    """The operator, with all of it."""
    return operator_of(CLOUD)


@pytest.fixture
def customer(operator: Actor) -> Actor:
    """Whose route it is."""
    return actor_of("acme", Account.Kind.CUSTOMER)


def refused(actor: Actor, kind: str, name: str, **spec: Any) -> list[FieldError]:
    """What is refused of an object, which is not stored."""
    with pytest.raises(Invalid) as caught:
        save_object(actor=actor, kind=kind, name=name, spec=spec)
    return list(caught.value.field_errors)


def violate(policy: str, rules: dict[str, Any]) -> None:
    """As it was stored before anybody checked."""
    assert Policy.objects.filter(name=policy).update(rules=rules)


def test_a_setting_that_a_cloud_of_a_route_cannot_do_is_refused_to_the_policy(customer: Actor) -> None:
    (error,) = refused(customer, "Policy", "web", rules=LIMIT)
    assert (error.pointer, error.code) == ("/spec/rules/client_limit", "policy_target")
    where = "Not on AWS (load balancer cloud)."
    assert error.detail == f"{where} {WHY} client_limit would hold for route acme/there."
    assert Policy.objects.get(name="web").rules == OFF


def test_the_same_policy_is_taken_where_no_route_stands_in_a_cloud(customer: Actor) -> None:
    save_object(actor=customer, kind="Policy", name="fleets", spec={"rules": LIMIT})
    spec = spec_of(customer, "shop") | {"policies": ["fleets"]}
    save_object(actor=customer, kind="Route", name="shop", spec=spec)
    save_object(actor=customer, kind="Policy", name="fleets", spec={"rules": LIMIT | HEADERS})


def test_a_page_of_maintenance_is_refused_while_it_is_shown(customer: Actor) -> None:
    save_object(
        actor=customer,
        kind="Policy",
        name="web",
        spec={"rules": OFF | {"maintenance": {"enabled": False, "status": 503}}},
    )
    (error,) = refused(customer, "Policy", "web", rules={"maintenance": {"enabled": True}})
    assert error.pointer == "/spec/rules/maintenance"


@pytest.mark.parametrize("default", [{"account": True}, {"hostnames": ["shop.acme.example"]}])
def test_a_default_is_refused_when_it_comes_to_routes_in_a_cloud(customer: Actor, default: dict[str, Any]) -> None:
    if "hostnames" in default:
        default = {"hostnames": [Route.objects.get(name="there").hostname.name]}
    save_object(actor=customer, kind="Policy", name="limits", spec={"rules": LIMIT})  # nobody follows it yet
    (error,) = refused(customer, "Policy", "limits", rules=LIMIT, default_for=default)
    assert error.pointer == "/spec/default_for"
    assert error.detail.endswith("client_limit would hold for route acme/there.")


def test_a_default_of_a_load_balancer_is_refused_also_where_no_route_is_yet(operator: Actor) -> None:
    default = {"load_balancers": ["cloud"]}
    (error,) = refused(operator, "Policy", "all", rules=LIMIT, default_for=default)
    assert error.pointer == "/spec/rules/client_limit"
    assert error.detail.endswith("client_limit would hold for route acme/there.")
    Route.objects.filter(name="there").delete()
    (error,) = refused(operator, "Policy", "all", rules=LIMIT, default_for=default)
    assert error.detail.endswith("client_limit would hold for each route there.")


def test_a_route_is_refused_what_its_policy_says_by_the_name_of_the_policy(customer: Actor) -> None:
    save_object(actor=customer, kind="Policy", name="limits", spec={"rules": LIMIT})
    (error,) = refused(customer, "Route", "there", **on_cloud(customer, policies=["limits"]))
    assert (error.pointer, error.code) == ("/spec/policies", "client_limit")
    assert error.detail == f"Policy limits says client_limit. {WHY}"
    (error,) = refused(customer, "Route", "there", **on_cloud(customer, rules=LIMIT))
    assert (error.pointer, error.detail) == ("/spec/rules/client_limit", WHY)


def test_a_route_that_comes_to_a_cloud_is_refused_what_a_default_says(customer: Actor) -> None:
    Route.objects.filter(name="there").delete()
    save_object(actor=customer, kind="Policy", name="own", spec={"rules": LIMIT, "default_for": {"account": True}})
    (error,) = refused(customer, "Route", "there", **on_cloud(customer))
    assert error.pointer == "/spec/load_balancer"
    assert error.detail.startswith("Policy own, a default of this route, says client_limit. ")


def test_what_violates_already_stays_editable_and_only_what_is_new_is_refused(customer: Actor) -> None:
    violate("web", LIMIT)
    save_object(actor=customer, kind="Policy", name="web", spec={"rules": {"client_limit": {"requests": 9}}})
    save_object(actor=customer, kind="Route", name="there", spec=on_cloud(customer, policies=["web"], path="/b"))
    (error,) = refused(customer, "Policy", "web", rules=LIMIT | HEADERS)
    assert error.pointer == "/spec/rules/request_headers"
    save_object(actor=customer, kind="Policy", name="web", spec={"rules": OFF})
    assert refused(customer, "Policy", "web", rules=LIMIT)  # the control: it is new again


def test_a_route_that_violates_already_is_refused_elsewhere(customer: Actor, operator: Actor) -> None:
    violate("web", LIMIT)
    spec = spec_of(operator, "cloud", "LoadBalancer")
    save_object(actor=operator, kind="LoadBalancer", name="second", spec=spec)
    (error,) = refused(customer, "Route", "there", **on_cloud(customer, policies=["web"], load_balancer="second"))
    assert error.pointer == "/spec/policies"


def test_in_a_document_policy_and_route_are_looked_at_together(customer: Actor) -> None:
    objects = [
        {"kind": "Route", "name": "there", "spec": on_cloud(customer, policies=["late"])},
        {"kind": "Policy", "name": "late", "spec": {"rules": LIMIT}},
    ]
    with pytest.raises(Invalid) as caught:
        apply_document(actor=customer, objects=objects)
    assert {each.pointer for each in caught.value.field_errors} == {"/objects/0/spec/policies"}
    assert not Policy.objects.filter(name="late").exists()


def test_routes_of_others_are_never_named_to_a_customer(operator: Actor, globex: Actor) -> None:
    LoadBalancer.objects.filter(name="cloud").update(account=globex.account)
    default = {"load_balancers": ["cloud"]}
    (error,) = refused(globex, "Policy", "all", rules=LIMIT, default_for=default)
    assert error.detail.endswith("client_limit would hold for each route there.")
    assert "acme" not in error.detail
    spec = {"rules": LIMIT, "default_for": default}
    with pytest.raises(Invalid) as caught:  # the control: an operator reads the name
        save_object(actor=operator, kind="Policy", name="all", account="globex", spec=spec)
    assert "acme/there" in caught.value.field_errors[0].detail


def test_a_policy_of_many_routes_costs_as_few_statements_as_that_of_one(customer: Actor) -> None:
    def cost(requests: int) -> int:
        with CaptureQueriesContext(connection) as found:
            save_object(
                actor=customer, kind="Policy", name="web", spec={"rules": {"client_limit": {"requests": requests}}}
            )
        return len(found)

    violate("web", LIMIT)
    one = cost(6)
    there = Route.objects.get(name="there")
    policy = Policy.objects.get(name="web")
    for number in range(60):
        there.pk, there.name, there.path = None, f"r{number}", f"/r{number}"
        there.save()
        RoutePolicy.objects.create(route=there, policy=policy)
    assert cost(7) == one
    with CaptureQueriesContext(connection) as found:
        (error,) = refused(customer, "Policy", "web", rules=LIMIT | HEADERS)
    assert error.detail.endswith("for routes acme/there, acme/r0, acme/r1 and others.")
    assert len(found) <= one + 2
