"""A canary on the page of its route: both sides next to each other, and the buttons that end it."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.definitions.models import Route
from apps.definitions.selectors import describe
from apps.definitions.services import save_object
from tests.interfaces.people import client_of

POOL = {"protocol": "http", "backends": []}


@pytest.fixture
def canary(tutorial_env: Actor, acme: Actor) -> Route:
    for name in ("stable", "next"):
        save_object(actor=acme, kind="Pool", name=name, spec=POOL)
    pools = [{"pool": "stable", "weight": 90}, {"pool": "next", "weight": 10}]
    spec = {"load_balancer": "front", "hostname": "shop.acme.example", "path": "/canary", "action": {"pools": pools}}
    row: Route = save_object(actor=acme, kind="Route", name="canary", spec=spec)
    return row


def weights(row: Route) -> dict[str, int]:
    """The stored weight of each pool."""
    shares: list[dict[str, Any]] = describe(Route.objects.get(pk=row.pk))["action"]["pools"]
    return {share["pool"]: share["weight"] for share in shares}


def test_both_sides_stand_next_to_each_other(canary: Route, acme: Actor) -> None:
    shown = client_of(acme).get(reverse("web:route", args=[canary.pk])).content.decode()
    for words in ("p95, ms", "Promote: all requests to next", "Abort: all requests to stable"):
        assert words in shown


@pytest.mark.parametrize(
    ("pool", "found"), [("next", {"stable": 0, "next": 100}), ("stable", {"stable": 100, "next": 0})]
)
def test_a_button_sends_everything_to_one_side(canary: Route, acme: Actor, pool: str, found: dict[str, int]) -> None:
    url = reverse("web:route-weights", args=[canary.pk])
    client_of(acme).post(url, {"pool": pool, "version": canary.version})
    assert weights(canary) == found


@pytest.mark.parametrize("sent", [{"pool": "next", "version": 9}, {"pool": "next"}, {"pool": "shop", "version": 1}])
def test_an_old_page_or_another_pool_changes_nothing(canary: Route, acme: Actor, sent: dict[str, Any]) -> None:
    answer = client_of(acme).post(reverse("web:route-weights", args=[canary.pk]), sent, follow=True)
    assert weights(canary) == {"stable": 90, "next": 10}
    assert answer.context["messages"]
