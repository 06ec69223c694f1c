"""What the clouds of a load balancer cannot do is refused where it is written, with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.errors import Invalid
from apps.definitions.models import LoadBalancer, Route
from apps.definitions.previewing import portability_report as reports
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


def said(report: reports.Report) -> set[tuple[str, int, str]]:
    """Of each group: the target, how many objects, the first of them."""
    return {(each.target, each.count, each.objects[0][1]) for each in report.groups}


def test_a_report_says_once_what_holds_for_many(cloud: Actor, acme: Actor) -> None:
    for name in ("one", "two", "three"):
        spec = route(acme, load_balancer="front", **ABSENT | {"path": f"/{name}"})
        save_object(actor=acme, kind="Route", name=name, spec=spec)
    front = LoadBalancer.objects.get(name="front").pk
    groups = [each for each in reports.portability_report(cloud, front, "aws").groups if "X-Beta" in each.message]
    assert [(each.refused, each.count, {label for _, label in each.objects}) for each in groups] == [
        (True, 3, {"acme/one", "acme/two", "acme/three"})
    ]
    assert sum(each.count for each in reports.portability_report(cloud, front).groups) == len(
        portability_of(cloud, front)
    )


def test_of_many_routes_a_worker_leaves_the_report_and_each_account_reads_its_own(
    cloud: Actor, acme: Actor, globex: Actor, monkeypatch: pytest.MonkeyPatch, live_redis: str
) -> None:
    save_object(actor=acme, kind="Route", name="beta", spec=route(acme, load_balancer="front", **ABSENT))
    front = LoadBalancer.objects.get(name="front").pk
    actors = (cloud, acme, globex)
    at_once = [said(reports.portability_report(actor, front)) for actor in actors]
    monkeypatch.setattr(reports, "AT_ONCE", 1)
    assert reports.portability_report(cloud, front).at is None
    reports.examine(front)
    made = [reports.portability_report(actor, front) for actor in actors]
    assert [said(each) for each in made] == at_once
    assert all(each.in_background and each.at for each in made)
    named = {label for each in made[2].groups for _, label in each.objects}
    assert named
    assert not [label for label in named if not label.startswith("globex/")]
