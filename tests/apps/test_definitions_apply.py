"""A whole document at once: idempotent, all or nothing, planned without storing, pruned by manager."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.audit.models import Entry
from apps.core.errors import Invalid
from apps.definitions.models import Pool, Route
from apps.definitions.services import apply_document, plan_document
from apps.fleet.models import Fleet

Objects = list[dict[str, Any]]


def test_the_tutorial_is_stored_and_wants_a_push_of_both_fleets(operator: Actor, tutorial_document: Objects) -> None:
    plan = apply_document(actor=operator, objects=tutorial_document)
    assert plan.counts == {"create": len(tutorial_document), "update": 0, "delete": 0, "unchanged": 0}
    assert set(plan.generations) == {"us-central1", "europe-west1"}
    assert Route.objects.count() == 5


def test_applying_the_same_again_changes_nothing(operator: Actor, tutorial_document: Objects) -> None:
    apply_document(actor=operator, objects=tutorial_document)
    before = dict(Fleet.objects.values_list("name", "desired_generation")), Entry.objects.count()
    plan = apply_document(actor=operator, objects=list(reversed(tutorial_document)))
    assert plan.counts["unchanged"] == len(tutorial_document)
    assert (dict(Fleet.objects.values_list("name", "desired_generation")), Entry.objects.count()) == before


def test_a_plan_stores_nothing(operator: Actor, tutorial_document: Objects) -> None:
    plan = plan_document(actor=operator, objects=tutorial_document)
    assert plan.counts["create"] == len(tutorial_document)
    assert not plan.stored
    assert (Route.objects.count(), Hostname.objects.count(), Fleet.objects.count(), Entry.objects.count()) == (
        0,
        0,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("kind", "spec", "other"),
    [
        ("Pool", {"backends": [], "balance": "source"}, {"balance": "random"}),
        ("Region", {"title": "One", "latitude": None, "longitude": None}, {"title": "Two"}),
    ],
)
def test_an_object_is_in_a_document_once_however_its_account_is_written(
    operator: Actor, kind: str, spec: dict[str, Any], other: dict[str, Any]
) -> None:
    first = {"kind": kind, "name": "same", "spec": spec}
    second = {"kind": kind, "name": "same", "account": operator.account.name, "spec": spec | other}
    for apply in (plan_document, apply_document):
        with pytest.raises(Invalid) as refused:
            apply(actor=operator, objects=[first, second])
        assert [(each.pointer, each.code) for each in refused.value.field_errors] == [("/objects/1/name", "twice")]


def test_objects_of_one_name_in_two_accounts_are_two(operator: Actor, acme: Actor, globex: Actor) -> None:
    for balances in (("source", "random"), ("random", "source")):
        objects = [
            {
                "kind": "Pool",
                "name": "same",
                "account": actor.account.name,
                "spec": {"backends": [], "balance": balance},
            }
            for actor, balance in zip((acme, globex), balances, strict=True)
        ]
        apply_document(actor=operator, objects=objects)
        assert tuple(Pool.objects.order_by("account__name").values_list("balance", flat=True)) == balances


def test_a_new_route_with_a_new_name_asks_six_times(tutorial_env: Actor) -> None:
    def routes(start: int, count: int) -> Objects:
        spec = {"load_balancer": "front", "action": {"fixed_response": {"status": 200}}}
        return [
            {"kind": "Route", "name": f"n{each}", "spec": spec | {"hostname": f"n{each}.example.net"}}
            for each in range(start, start + count)
        ]

    asked = []
    for start, count in ((0, 5), (100, 25)):
        with CaptureQueriesContext(connection) as queries:
            apply_document(actor=tutorial_env, objects=routes(start, count))
        asked.append(sum("advisory" not in each["sql"] for each in queries.captured_queries))
    assert (asked[1] - asked[0]) / 20 <= 6


def test_two_routes_of_a_new_name_that_match_the_same_are_refused(tutorial_env: Actor) -> None:
    spec = {"load_balancer": "front", "hostname": "new.example.net", "action": {"fixed_response": {"status": 200}}}
    objects: Objects = [{"kind": "Route", "name": name, "spec": spec} for name in ("one", "two")]
    with pytest.raises(Invalid) as refused:
        apply_document(actor=tutorial_env, objects=objects)
    assert [each.code for each in refused.value.field_errors] == ["identical_route"]
    assert not Hostname.objects.filter(name="new.example.net").exists()
