"""The mirror of a route by page: greyed with its reason where the load balancer cannot, shown where it is used."""

from __future__ import annotations

import re
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.models import Pool, Route
from tests.apps.clouds_env import operator_of
from tests.apps.mirror_env import GOOGLE, mirrored
from tests.interfaces.people import client_of
from tests.interfaces.web.test_pages_routes import text, typed

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(db: None) -> Actor:
    """The operator, with load balancers on every target."""
    return operator_of(GOOGLE)


def field(page: str) -> str:
    """The part of a page that holds the field."""
    found = re.search(r'<label for="id_mirror".*?<div class="capability" id="told-mirror".*?</div>', page, re.DOTALL)
    assert found is not None
    return found[0]


def sent(**changes: str) -> dict[str, str]:
    """A form of a new route with a mirror."""
    return typed(mirror="shop-next", **changes)


@pytest.mark.parametrize(
    ("load_balancer", "why"),
    [("front", "HAProxy copies requests only"), ("cloud", "Neither an ALB"), ("everywhere", "")],
)
def test_the_field_is_greyed_with_its_reason(operator: Actor, acme: Actor, load_balancer: str, why: str) -> None:
    client = client_of(acme)
    shown = field(text(client.get(f"/routes/new?load_balancer={load_balancer}")))
    assert (" disabled" in shown, "Not on this load balancer." in shown) == (bool(why), bool(why))
    assert why in shown
    for mirror, state in (("", "greyed"), ("shop-next", "kept")):
        typed_so_far = sent(load_balancer=load_balancer) | {"mirror": mirror}
        said = text(client.post("/routes/new?partial=capabilities", typed_so_far))
        assert f'id="told-mirror" data-told="{state if why else ""}"' in said
        assert why in said


def test_a_mirror_that_is_sent_nevertheless_is_refused_beside_the_field(operator: Actor, acme: Actor) -> None:
    answer: Any = client_of(acme).post("/routes/new", sent(load_balancer="front"))
    assert answer.status_code == 422
    assert 'class="error">HAProxy copies requests only' in field(text(answer))
    assert not Route.objects.filter(name="news").exists()


def test_a_mirror_is_typed_shown_and_taken_away(operator: Actor, acme: Actor) -> None:
    client = client_of(acme)
    assert client.post("/routes/new", sent(load_balancer="everywhere")).status_code == 302
    row = Route.objects.get(name="news")
    copies = Pool.objects.get(name="shop-next")
    assert row.mirror == copies
    assert f'<dt>Mirror to</dt><dd><a href="/pools/{copies.pk}">shop-next</a>' in text(client.get(f"/routes/{row.pk}"))
    assert 'value="shop-next"' in field(text(client.get(f"/routes/{row.pk}/edit")))
    changed = typed(load_balancer="everywhere", version=str(row.version), mirror="")
    assert client.post(f"/routes/{row.pk}/edit", changed).status_code == 302
    assert Route.objects.get(name="news").mirror is None


def test_the_page_of_a_pool_names_routes_that_mirror_to_it(operator: Actor, acme: Actor) -> None:
    row = mirrored(acme)
    shown = text(client_of(acme).get(f"/pools/{Pool.objects.get(name='shop-next').pk}"))
    assert re.search(rf'href="/routes/{row.pk}">mirrored</a>.*?>copies</td>', shown, re.DOTALL)


def test_weights_of_a_route_leave_its_mirror_alone(operator: Actor, acme: Actor) -> None:
    shares = [{"pool": "shop", "weight": 95}, {"pool": "spare", "weight": 5}]
    row = mirrored(acme, action={"pools": shares})
    answer = client_of(acme).post(f"/routes/{row.pk}/weights", {"version": str(row.version), "pool": "spare"})
    assert answer.status_code == 302
    after = Route.objects.get(pk=row.pk)
    assert {share.pool.name: share.weight for share in after.shares} == {"shop": 0, "spare": 100}
    assert after.mirror == Pool.objects.get(name="shop-next")
