"""Load balancers by page: operators see addresses, numbers and everybody's routes; customers their part of it."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import LoadBalancer
from apps.definitions.selectors import describe, load_balancers, only
from apps.definitions.services import save_object
from apps.fleet.models import Node
from apps.observe.models import Sample
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


def page(actor: Actor, path: str) -> str:
    """What somebody of this account reads there."""
    return client_of(actor).get(path).content.decode()


def test_operators_see_where_clients_reach_each_node(tutorial_env: Actor) -> None:
    balancer = LoadBalancer.objects.get(name="front")
    shown = page(tutorial_env, f"/load-balancers/{balancer.pk}")
    for url in ("http://127.0.0.1:8080", "http://127.0.0.1:8180", "http://127.0.0.1:8280", "http://127.0.0.1:8380"):
        assert url in shown
    assert "5 routes" in shown
    assert "/routes?load_balancer=front" in shown


def test_connections_that_a_listener_rejected_are_counted_for_operators(tutorial_env: Actor, acme: Actor) -> None:
    balancer = LoadBalancer.objects.get(name="front")
    listener, node = balancer.listeners.get(), Node.objects.first()
    told = {"at": now(), "resolution": 10, "node": node, "kind": "rejected", "object_id": f"lst-{listener.pk}"}
    Sample.objects.create(**told, connections=1200)
    assert "1,200 connections rejected" in page(tutorial_env, f"/load-balancers/{balancer.pk}")
    assert "rejected" not in page(acme, f"/load-balancers/{balancer.pk}")


def test_customers_count_their_own_routes_and_see_no_nodes(tutorial_env: Actor, acme: Actor) -> None:
    balancer = LoadBalancer.objects.get(name="front")
    shown = page(acme, f"/load-balancers/{balancer.pk}")
    assert "3 routes" in shown
    assert "127.0.0.1" not in shown
    assert "Your routes" in page(acme, "/load-balancers")


def test_customers_do_not_read_whose_pool_answers_without_a_route(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    balancer = only(load_balancers(tutorial_env), LoadBalancer.objects.get(name="front").pk)
    spec = describe(balancer)
    spec["listeners"][0]["default_pool"] = "acme/shop"
    save_object(actor=tutorial_env, kind="LoadBalancer", name="front", spec=spec)
    path = f"/load-balancers/{balancer.pk}"
    assert "/pools/" in page(acme, path).split("Unmatched requests")[2]
    assert "handled by the operator" in page(globex, path)


def test_without_any_the_list_says_what_to_do(operator: Actor, acme: Actor) -> None:
    assert "Import configuration" in page(operator, "/load-balancers").partition("No load balancers yet")[2]
    assert "The operator creates load balancers" in page(acme, "/load-balancers")


def test_an_unknown_load_balancer_is_not_found(operator: Actor) -> None:
    assert client_of(operator).get("/load-balancers/99").status_code == 404


def test_operators_read_what_a_listener_was_told_and_customers_do_not(tutorial_env: Actor, acme: Actor) -> None:
    balancer = only(load_balancers(tutorial_env), LoadBalancer.objects.get(name="front").pk)
    path = f"/load-balancers/{balancer.pk}"
    assert "Settings of" not in page(tutorial_env, path)
    spec = describe(balancer)
    told = {
        "client_address": {"forwarded_from": ["192.0.2.0/24", "198.51.100.0/24"]},
        "connections": {"keep_alive": "clients", "max_connections": 20_000},
        "monitor_path": "/up",
    }
    spec["listeners"][0] |= told
    save_object(actor=tutorial_env, kind="LoadBalancer", name="front", spec=spec)
    shown = page(tutorial_env, path)
    for label, value in (
        ("Client address: X-Forwarded-For from", "192.0.2.0/24, 198.51.100.0/24"),
        ("Connections: Keep open", "Clients only"),
        ("Connections: Max. connections", "20,000"),
        ("Monitor path", "/up"),
    ):
        assert f'<th scope="row">{label}</th><td data-label="Value">{value}</td>' in shown
    assert "Settings of" not in page(acme, path)
