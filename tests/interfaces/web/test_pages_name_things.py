"""No page calls a thing by Python text, an internal id or a digest, after changes of every kind were pushed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from apps.audit.models import Entry
from apps.definitions.models import CapacityTest, Listener, LoadBalancer, Pool, Route, Server
from apps.definitions.services import delete_object, drain_region, save_object, set_limit, set_server
from apps.fleet.models import Fleet, Node
from apps.rollouts.models import Rollout
from apps.webhooks.events import body_of
from tests.apps.pushed import Env, add_route, pool_spec, put_env, remembered, remove_route, route
from tests.interfaces.people import client_of
from tests.said import unsaid, words_of_json, words_of_page

pytestmark = [pytest.mark.django_db, pytest.mark.slow(reason="every page of an environment with changes of every kind")]


def change_everything(env: Env) -> None:
    """Changes of every kind, each pushed by itself."""
    operator, blue = env.operator, Pool.objects.get(name="blue")
    region = {"kind": "Region", "name": "there", "spec": {"title": "There"}}
    fleet = {"kind": "Fleet", "name": "there", "spec": {"region": "there"}}
    node = {"kind": "Node", "name": "m1", "spec": {"fleet": "there", "url": "memory://there-m1"}}
    for each in (region, fleet, node):
        save_object(actor=operator, kind=str(each["kind"]), name=str(each["name"]), spec=each["spec"])
    servers = [{"name": "far", "address": "10.0.1.1", "port": 8080}]
    both = pool_spec()
    both["backends"].append({"region": "there", "servers": servers, "limit": {"kind": "rate", "value": 5}})
    check = {"path": "/health", "interval_ms": 1000}
    steps: tuple[Any, ...] = (
        lambda: save_object(actor=operator, kind="Pool", name="blue", spec=both | {"health_check": check}),
        lambda: set_limit(actor=operator, pool_id=blue.pk, region="here", kind="rate", value=9),
        lambda: set_limit(actor=operator, pool_id=blue.pk, region="there", value=7),
        lambda: drain_region(actor=operator, region="there", drained=True, reason="switches"),
        lambda: set_server(actor=operator, server_id=Server.objects.earliest("id").pk, state="drain", weight=None),
        lambda: add_route(operator, "home", "/", "green"),
        lambda: add_route(operator, "gone", "/gone"),
        lambda: remove_route(operator, "gone"),
        lambda: save_object(
            actor=operator,
            kind="Route",
            name="home",
            spec=route("/") | {"action": {"redirect": {"code": 302, "host": "b.example"}}},
        ),
        lambda: delete_object(actor=operator, kind="Pool", name="green"),
    )
    for step in steps:
        step()
        env.reconcile()


CHANGED = remembered(change_everything)


@pytest.fixture
def env(db: None) -> Env:
    """A fleet to which all of that was pushed."""
    return put_env(CHANGED)


def pages() -> list[str]:
    """Every page that tells of what there is and what was done."""
    lists = ("/", "/rollouts", "/audit", "/routes", "/pools", "/load-balancers", "/regions", "/fleets", "/overflow")
    found = [*lists, "/regions/here", "/regions/there", "/regions/here/drain", "/overflow?factor=2", "/sizing"]
    rows = {"rollouts": Rollout, "audit": Entry, "routes": Route, "pools": Pool, "load-balancers": LoadBalancer}
    found += [
        f"/{name}/{pk}" for name, model in rows.items() for pk in model._default_manager.values_list("pk", flat=True)
    ]
    return found + [f"/nodes/{pk}" for pk in Node.objects.values_list("pk", flat=True)]


def found_on_pages(client: Any, paths: Iterable[str]) -> dict[str, list[str]]:
    """Pages with what must not stand there."""
    found = {}
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        if hits := unsaid([words_of_page(answer.content.decode())]):
            found[path] = hits[:5]
    return found


def test_no_page_names_a_thing_by_what_only_we_know(env: Env) -> None:
    assert Rollout.objects.count() >= 9
    assert Entry.objects.count() >= 10
    assert (Fleet.objects.count(), Listener.objects.count(), CapacityTest.objects.count()) == (2, 1, 0)
    assert found_on_pages(client_of(env.operator), pages()) == {}


def test_no_event_that_webhooks_tell_does_either(env: Env) -> None:
    bodies = [json.loads(body_of(entry)) for entry in Entry.objects.all()]
    assert len(bodies) >= 20
    assert unsaid([text for body in bodies for text in words_of_json(body)]) == []


def test_control_a_summary_with_python_in_it_is_found(env: Env) -> None:
    rollout = Rollout.objects.latest("pk")
    rollout.message = "pool pool-1: elsewhere region_id=rgn-1 limit=Limit(kind=<LimitKind.RATE: 'rate'>)"
    rollout.save()
    found = found_on_pages(client_of(env.operator), [f"/rollouts/{rollout.pk}"])
    assert any({"pool-1", "rgn-1", "=Limit("} <= set(hits) for hits in found.values())
