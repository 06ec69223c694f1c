"""A canary on pages: the form with its steps, how far it is, and what can be decided."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.canaries.models import Canary
from apps.definitions.models import Route
from apps.definitions.services import save_object
from tests.interfaces.people import client_of

POOL = {"protocol": "http", "backends": []}
STEPS = {"/steps/0/percent": "5", "/steps/0/for_s": "10", "/steps/2/percent": "25", "/steps/2/for_s": "30"}


@pytest.fixture
def route(tutorial_env: Actor, acme: Actor) -> Route:
    for name in ("stable", "next"):
        save_object(actor=acme, kind="Pool", name=name, spec=POOL)
    pools = [{"pool": "stable", "weight": 100}, {"pool": "next", "weight": 0}]
    spec = {"load_balancer": "front", "hostname": "shop.acme.example", "path": "/canary", "action": {"pools": pools}}
    row: Route = save_object(actor=acme, kind="Route", name="canary", spec=spec)
    return row


def test_the_form_offers_the_smallest_pool_and_three_steps(route: Route, acme: Actor) -> None:
    form = client_of(acme).get(reverse("web:route-canary", args=[route.pk])).context["form"]
    assert [value for value, _ in form["/pool"].field.widget.choices] == ["next", "stable"]
    assert [each.value() for each in form.steps()[1]] == ["25", "30"]


def test_lines_that_are_empty_are_no_steps_and_minutes_are_seconds(route: Route, acme: Actor) -> None:
    sent = {"/pool": "next", "reason": "version 2", **STEPS}
    answer = client_of(acme).post(reverse("web:route-canary", args=[route.pk]), sent)
    row = Canary.objects.get()
    assert answer.headers["Location"] == reverse("web:canary", args=[row.pk])
    assert row.plan["steps"] == [{"percent": 5, "for_s": 600}, {"percent": 25, "for_s": 1800}]
    assert (row.reason, row.weights) == ("version 2", {"stable": 95, "next": 5})
    shown = client_of(acme).get(reverse("web:canary", args=[row.pk])).content.decode()
    for words in ("5 %", "25 %", "100 %", "weight 95", "Hold canary", "Abort canary"):
        assert words in shown
    on_route = client_of(acme).get(reverse("web:route", args=[route.pk])).content.decode()
    assert f"Canary {row.pk} to next is running." in on_route
    assert "Begin canary" not in on_route


def test_what_is_wrong_stands_at_its_field(route: Route, acme: Actor) -> None:
    sent = {"/pool": "next", **STEPS, "/steps/0/percent": "100", "/max_slower": "0"}
    answer = client_of(acme).post(reverse("web:route-canary", args=[route.pk]), sent)
    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {"/steps/0/percent", "/max_slower"}
    assert not Canary.objects.exists()


@pytest.mark.parametrize(("act", "state"), [("hold", "held"), ("promote", "promoted"), ("abort", "aborted")])
def test_buttons_do_what_they_say(route: Route, acme: Actor, act: str, state: str) -> None:
    client = client_of(acme)
    client.post(reverse("web:route-canary", args=[route.pk]), {"/pool": "next", **STEPS})
    row = Canary.objects.get()
    client.post(reverse(f"web:canary-{act}", args=[row.pk]))
    row.refresh_from_db()
    assert row.state == state
    shown = client.get(reverse("web:canary", args=[row.pk])).content.decode()
    assert ("Resume canary" in shown, "Promote canary" in shown) == ((True, True) if act == "hold" else (False, False))


def test_a_route_with_one_pool_is_told_what_it_needs(route: Route, acme: Actor) -> None:
    spec = {
        "load_balancer": "front",
        "hostname": "shop.acme.example",
        "path": "/one",
        "action": {"pools": [{"pool": "next"}]},
    }
    row = save_object(actor=acme, kind="Route", name="one", spec=spec)
    shown = client_of(acme).get(reverse("web:route-canary", args=[row.pk])).content.decode()
    assert "Add the pool of the new version with weight 0" in shown
    assert "Begin canary" not in shown
