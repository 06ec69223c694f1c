"""Mirrors as they are written: who may be one, who uses whom, and on which load balancers."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.compiler.compile import compile_stack
from apps.compiler.questions.trace import Question
from apps.core.errors import Conflict, Invalid
from apps.definitions.freezing.stack_snapshot import freeze_stack
from apps.definitions.listing import listed
from apps.definitions.models import Pool, Route, RoutePool
from apps.definitions.previewing.capabilities import rows_of, standings_of, told_of
from apps.definitions.previewing.preview import preview_route
from apps.definitions.previewing.tracing import trace_request
from apps.definitions.selectors import describe, only, pools, routes
from apps.definitions.services import delete_object, save_object
from apps.definitions.writing.rules.emptying import confirming
from apps.fleet.models import Stack
from tests.apps.clouds_env import operator_of, spec_of
from tests.apps.mirror_env import GOOGLE, mirrored

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(db: None) -> Actor:
    """The operator, with load balancers on every target."""
    return operator_of(GOOGLE)


def refusals(caught: pytest.ExceptionInfo[Invalid]) -> dict[str, str]:
    """Pointer → code."""
    return {field_error.pointer: field_error.code for field_error in caught.value.field_errors}


def compiled_mirror() -> str | None:
    """The ID of the pool to which the stack mirrors the only route, while that route goes to other pools."""
    snapshot, _ = freeze_stack(Stack.objects.get(name="everywhere").pk)
    (found,) = snapshot.load_balancers[0].routes
    assert found.pools
    return found.mirror_pool_id


@pytest.mark.both_engines
def test_a_mirror_is_stored_described_listed_and_compiled(operator: Actor, acme: Actor) -> None:
    row = mirrored(acme)
    stored = only(routes(acme), row.pk)
    assert describe(stored)["mirror"] == "shop-next"
    assert [share["pool"] for share in describe(stored)["action"]["pools"]] == ["shop"]
    assert describe(listed(Route.objects.filter(pk=row.pk))[0]) == describe(stored)
    snapshot, _ = freeze_stack(Stack.objects.get(name="everywhere").pk)
    compiled = compile_stack(snapshot)
    assert compiled.left_out == ()
    assert compiled_mirror() == f"pool-{Pool.objects.get(name='shop-next').pk}"
    assert "request_mirror_policy" in str(compiled.output.resources["google_compute_url_map"])


def test_a_route_without_a_mirror_does_not_speak_of_it(operator: Actor, acme: Actor) -> None:
    assert "mirror" not in describe(only(routes(acme), mirrored(acme, None).pk))


def test_a_pool_changes_between_share_and_mirror(operator: Actor, acme: Actor) -> None:
    row = mirrored(acme)
    mirrored(acme, "shop", action={"pools": [{"pool": "shop-next"}]})
    assert set(RoutePool.objects.filter(route=row).values_list("pool__name", "mirror", "weight")) == {
        ("shop", True, 0),
        ("shop-next", False, 100),
    }
    mirrored(acme, None)
    assert list(RoutePool.objects.filter(route=row).values_list("pool__name", "mirror")) == [("shop", False)]


def test_saving_the_same_again_changes_nothing(operator: Actor, acme: Actor) -> None:
    first = mirrored(acme)
    assert mirrored(acme, "acme/shop-next").version == first.version


@pytest.mark.parametrize(
    ("mirror", "code"),
    [
        ("shop", "mirror"),
        ("acme/shop", "mirror"),
        ("lines", "protocol"),
        ("nobody", "unknown"),
        ("globex/api", "unknown"),
    ],
)
def test_who_cannot_be_a_mirror_is_refused_by_its_field(operator: Actor, acme: Actor, mirror: str, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        mirrored(acme, mirror)
    assert refusals(caught) == {"/spec/mirror": code}


def test_only_a_route_to_pools_mirrors(operator: Actor, acme: Actor) -> None:
    with pytest.raises(Invalid) as caught:
        mirrored(acme, action={"fixed_response": {"status": 204}})
    assert refusals(caught) == {"/spec/mirror": "mirror"}


def test_a_shared_pool_can_be_a_mirror_as_long_as_it_is_shared(operator: Actor, acme: Actor) -> None:
    with pytest.raises(Invalid) as caught:
        mirrored(acme, "operator/shadow")
    assert refusals(caught) == {"/spec/mirror": "unknown"}
    save_object(actor=operator, kind="Grant", name="shadows", spec={"account": "acme", "tag": "kind=shadow"})
    row = mirrored(acme, "operator/shadow")
    assert compiled_mirror() == f"pool-{Pool.objects.get(name='shadow').pk}"
    with pytest.raises(Invalid, match="acme/mirrored"):
        delete_object(actor=operator, kind="Grant", name="shadows")
    assert "shadow" in {pool.name for pool in pools(acme)}
    with confirming({"acme/shadows"}):
        delete_object(actor=operator, kind="Grant", name="shadows")
    assert compiled_mirror() is None
    assert describe(only(routes(acme), row.pk))["mirror"] == "operator/shadow"


@pytest.mark.both_engines
def test_a_pool_stays_while_it_is_a_mirror(operator: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Pool", name="copies", spec={"protocol": "http", "backends": []})
    mirrored(acme, "copies")
    with pytest.raises(Conflict, match="route mirrored"):
        delete_object(actor=acme, kind="Pool", name="copies")
    mirrored(acme, None)
    delete_object(actor=acme, kind="Pool", name="copies")


@pytest.mark.parametrize(("load_balancer", "word"), [("front", "HAProxy"), ("cloud", "ALB")])
def test_a_target_that_cannot_refuses_the_route(operator: Actor, acme: Actor, load_balancer: str, word: str) -> None:
    with pytest.raises(Invalid) as caught:
        mirrored(acme, load_balancer=load_balancer)
    assert refusals(caught) == {"/spec/mirror": "mirror"}
    assert word in caught.value.field_errors[0].detail
    assert mirrored(acme, None, load_balancer=load_balancer)


@pytest.mark.parametrize(("where", "name"), [("fleets", "us-central1"), ("stacks", "aws-eu")])
def test_a_load_balancer_does_not_come_to_a_target_that_cannot(
    operator: Actor, acme: Actor, where: str, name: str
) -> None:
    mirrored(acme, load_balancer="nowhere")
    spec = spec_of(operator, "nowhere", "LoadBalancer") | {where: [name]}
    with pytest.raises(Invalid) as caught:
        save_object(actor=operator, kind="LoadBalancer", name="nowhere", spec=spec)
    assert refusals(caught) == {f"/spec/{where}": "mirror"}
    assert "acme/mirrored" in caught.value.field_errors[0].detail
    mirrored(acme, None, load_balancer="nowhere")
    assert save_object(actor=operator, kind="LoadBalancer", name="nowhere", spec=spec)


def test_each_load_balancer_says_whether_it_can(operator: Actor) -> None:
    (row,) = rows_of("Route", "mirror")
    names = ("front", "cloud", "everywhere", "nowhere", "none", "")
    told = [told_of(row, standings_of(name), alone=True) for name in names]
    assert [bool(each.refused) for each in told] == [True, True, False, False, False, False]


def test_a_trace_tells_of_the_copy(operator: Actor, acme: Actor) -> None:
    mirrored(acme)
    (found,) = trace_request(acme, Question("shop.acme.example", "/m"), "everywhere")
    assert found.mirror == "acme/shop-next"
    assert found.sentence.endswith("and a copy to pool acme/shop-next.")
    assert [pool for pool, _ in found.pools] == ["acme/shop"]


def test_the_preview_on_a_fleet_says_why_not(operator: Actor, acme: Actor) -> None:
    spec = {"load_balancer": "front", "hostname": "shop.acme.example", "action": {"pools": [{"pool": "shop"}]}}
    assert any("SPOE" in each for each in preview_route(acme, spec | {"mirror": "shop-next"}, "m")["warnings"])
    there = spec | {"mirror": "shop-next", "load_balancer": "everywhere"}
    assert preview_route(acme, there, "m")["warnings"] == []
