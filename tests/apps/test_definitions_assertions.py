"""Assertions are kept with their route, refuse changes that break them, and hold back what would."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.errors import Invalid
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Route
from apps.definitions.selectors import describe, routes
from apps.definitions.services import apply_document, delete_object, dry_run, save_object
from apps.fleet.models import Fleet
from apps.rollouts.models import Rollout
from apps.rollouts.push import claims, compiling, guards

TO_SHOP = {"path": "/api", "expect": {"pool": "shop"}}


def spec(**fields: Any) -> dict[str, Any]:
    """A route of a host of acme's own."""
    found = {"load_balancer": "front", "hostname": "new.acme.example", "action": {"pools": [{"pool": "shop"}]}}
    return found | fields


def field_errors(refused: pytest.ExceptionInfo[Invalid]) -> list[tuple[str, str]]:
    return [(field_error.pointer, field_error.code) for field_error in refused.value.field_errors]


def test_assertions_are_stored_shown_and_left_as_they_are_where_left_out(tutorial_env: Actor, acme: Actor) -> None:
    sent = {
        "method": "POST",
        "path": "/api",
        "headers": [{"name": "X-A", "value": "b"}],
        "expect": {"pool": "acme/shop"},
    }
    save_object(actor=acme, kind="Route", name="new", spec=spec(assertions=[sent]))
    save_object(actor=acme, kind="Route", name="new", spec=spec(methods=["POST"]))
    row = routes(acme).get(name="new")
    shown = describe(row)["assertions"]
    assert shown == [sent | {"host": None, "expect": {"pool": "shop"}}]
    version = row.version
    save_object(actor=acme, kind="Route", name="new", spec=spec(methods=["POST"], assertions=[sent]))
    assert routes(acme).get(name="new").version == version
    save_object(actor=acme, kind="Route", name="new", spec=spec(assertions=[]))
    assert Route.objects.get(name="new").assertions == []


@pytest.mark.parametrize(
    ("assertion", "pointer"),
    [
        ({}, "/spec/assertions/0/path"),
        ({"path": "/"}, "/spec/assertions/0/expect"),
        ({"path": "/", "expect": {}}, "/spec/assertions/0/expect"),
        ({"path": "/", "expect": {"status": 200, "route": "x"}}, "/spec/assertions/0/expect"),
        ({"path": "/", "expect": {"status": 99}}, "/spec/assertions/0/expect/status"),
        ({"path": "/", "expect": {"redirect": "javascript:x"}}, "/spec/assertions/0/expect/redirect"),
        ({"path": "/", "expect": {"redirect": False}}, "/spec/assertions/0/expect/redirect"),
        ({"path": "/", "host": "other.example", "expect": {"status": 200}}, "/spec/assertions/0/host"),
        ({"path": "/", "expect": {"status": 200}, "more": 1}, "/spec/assertions/0/more"),
        ({"path": "/\r\n", "expect": {"status": 200}}, "/spec/assertions/0/path"),
    ],
)
def test_what_is_no_assertion_is_refused_by_its_field(
    tutorial_env: Actor, acme: Actor, assertion: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        save_object(actor=acme, kind="Route", name="new", spec=spec(assertions=[assertion]))
    assert pointer in [field_error.pointer for field_error in refused.value.field_errors]


def test_an_assertion_that_its_own_route_breaks_is_refused_with_what_happens_instead(
    tutorial_env: Actor, acme: Actor
) -> None:
    wrong = [TO_SHOP, {"path": "/", "expect": {"status": 404}}]
    with pytest.raises(Invalid) as refused:
        save_object(actor=acme, kind="Route", name="new", spec=spec(assertions=wrong))
    assert field_errors(refused) == [("/spec/assertions/1", "assertion")]
    assert "goes to pool acme/shop by route acme/new" in refused.value.detail
    assert not Route.objects.filter(name="new").exists()


def test_another_route_that_takes_the_request_away_is_refused_in_every_way_in(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="new", spec=spec(assertions=[TO_SHOP]))
    thief = spec(path="/api", action={"redirect": {"code": 302, "path": "/gone"}})
    with pytest.raises(Invalid) as refused:
        save_object(actor=acme, kind="Route", name="thief", spec=thief)
    assert field_errors(refused) == [("/spec", "assertion")]
    assert "Assertion 0 of route acme/new would fail" in refused.value.detail
    with pytest.raises(Invalid):
        dry_run(acme, lambda: save_object(actor=acme, kind="Route", name="thief", spec=thief))
    with pytest.raises(Invalid) as refused:
        apply_document(actor=acme, objects=[{"kind": "Route", "name": "thief", "spec": thief}])
    assert field_errors(refused) == [("/objects", "assertion")]
    save_object(actor=acme, kind="Route", name="bystander", spec=spec(path="/elsewhere"))


def test_a_route_that_an_assertion_needs_is_not_deleted(tutorial_env: Actor, acme: Actor) -> None:
    needed = {"path": "/api", "expect": {"route": "api"}}
    both = [
        {"kind": "Route", "name": "new", "spec": spec(assertions=[needed])},
        {"kind": "Route", "name": "api", "spec": spec(path="/api")},
    ]
    apply_document(actor=acme, objects=both)
    with pytest.raises(Invalid):
        delete_object(actor=acme, kind="Route", name="api")
    delete_object(actor=acme, kind="Route", name="new")
    delete_object(actor=acme, kind="Route", name="api")


def test_a_wildcard_and_a_name_below_it_are_one_neighbourhood(tutorial_env: Actor, acme: Actor) -> None:
    below = {"host": "x.wide.acme.example", "path": "/", "expect": {"pool": "shop"}}
    save_object(actor=acme, kind="Route", name="wide", spec=spec(hostname="*.wide.acme.example", assertions=[below]))
    thief = spec(hostname="x.wide.acme.example", action={"fixed_response": {"status": 503}})
    with pytest.raises(Invalid):
        save_object(actor=acme, kind="Route", name="thief", spec=thief)
    save_object(actor=acme, kind="Route", name="other", spec=thief | {"hostname": "y.wide.acme.example"})


def test_a_revision_in_which_an_assertion_fails_is_refused_before_any_node(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=tutorial_env, account="acme", kind="Route", name="new", spec=spec(assertions=[TO_SHOP]))
    fleet = Fleet.objects.select_related("region").earliest("pk")
    assert guards.failed_assertions(snapshot_of(fleet), ()) == []
    broken: list[dict[str, Any]] = [
        {"method": "GET", "host": None, "path": "/api", "headers": [], "expect": {"status": 204}}
    ]
    Route.objects.filter(name="new").update(assertions=broken)
    [sentence] = guards.failed_assertions(snapshot_of(fleet), ())
    assert sentence == (
        "Assertion 0 of route acme/new fails: GET new.acme.example/api should get status 204, "
        "but it goes to pool acme/shop by route acme/new."
    )
    claim = claims.take(fleet.pk)
    assert claim is not None
    compiling.compile_fleet(claim)
    rollout = Rollout.objects.get()
    assert (rollout.state, rollout.message) == ("failed", f"Rejected before any node: {sentence}")
    assert not rollout.steps.exists()
