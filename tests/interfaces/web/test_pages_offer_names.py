"""Fields that name an object offer names while somebody types; forms of a copy begin with what another object says."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.models import LoadBalancer, Pool, Route
from apps.fleet.models import Fleet
from tests.conftest import actor_of
from tests.interfaces.forms import untouched
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


def filled(answer: Any) -> dict[str, str]:
    """What a browser would send of the form of a page."""
    page = answer.content.decode()
    start = page.index('<form class="form"')
    return untouched(page[start : page.index("</form>", start)])


def offered(actor: Actor, kind: str, text: str) -> str:
    """What a field with this text in it is offered."""
    return client_of(actor).get(f"/options/{kind}", {"pools-0-pool": text}).content.decode()


def test_a_name_is_offered_with_its_owner_and_how_it_is(tutorial_env: Actor) -> None:
    found = offered(tutorial_env, "pools", "next")
    assert '<option value="acme/shop-next" label="Acme' in found
    assert found.count("<option") == 1
    assert offered(tutorial_env, "pools", "acme/shop").count("<option") >= 2
    assert offered(tutorial_env, "pools", "nobody/shop").count("<option") == 0
    assert 'value="front"' not in offered(tutorial_env, "accounts", "front")
    assert 'value="acme"' in offered(tutorial_env, "accounts", "acm")


def test_names_of_others_are_not_offered(tutorial_env: Actor) -> None:
    stranger = actor_of("stranger", Account.Kind.CUSTOMER)
    for kind in ("pools", "hostnames", "accounts", "certificates"):
        assert "acme" not in offered(stranger, kind, ""), kind
    assert client_of(stranger).get("/options/people").status_code == 404


def test_a_copied_pool_has_the_servers_and_the_owner_of_the_other(tutorial_env: Actor) -> None:
    client, pool = client_of(tutorial_env), Pool.objects.get(name="shop")
    form = filled(client.get(f"/pools/new?copy={pool.pk}"))
    assert form["/account"] == "acme"
    assert form.get("/name", "") == ""
    client.post(f"/pools/new?copy={pool.pk}", form | {"/name": "twin"})
    twin = Pool.objects.get(name="twin")

    def servers(each: Pool) -> list[tuple[str, str, int]]:
        rows = each.backends.values_list("region__name", "servers__address", "servers__port")
        return sorted(rows)

    assert servers(twin) == servers(pool)
    assert twin.account == pool.account


def test_a_copied_route_asks_for_a_name_alone(tutorial_env: Actor) -> None:
    client, route = client_of(tutorial_env), Route.objects.get(name="checkout")
    form = filled(client.get(f"/routes/new?copy={route.pk}"))
    client.post(f"/routes/new?copy={route.pk}", form | {"name": "twin", "path": "/twin"})
    twin = Route.objects.get(name="twin")
    assert [(share.pool, share.weight) for share in twin.shares] == [
        (share.pool, share.weight) for share in route.shares
    ]


def test_a_copied_fleet_and_load_balancer_begin_as_the_other(tutorial_env: Actor) -> None:
    client, fleet = client_of(tutorial_env), Fleet.objects.earliest("pk")
    form = filled(client.get(f"/fleets/new?copy={fleet.pk}"))
    assert (form["/spec/region"], form.get("/name", "")) == (fleet.region.name, "")
    client.post(f"/fleets/new?copy={fleet.pk}", form | {"/name": "twin"})
    assert Fleet.objects.get(name="twin").region == fleet.region
    front = LoadBalancer.objects.get(name="front")
    assert (
        f'href="/load-balancers/new?copy={front.pk}"' in client.get(f"/load-balancers/{front.pk}/edit").content.decode()
    )
    assert client.get("/fleets/new?copy=999999").status_code == 404
