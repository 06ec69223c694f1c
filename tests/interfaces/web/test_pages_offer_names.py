"""Fields that name an object offer names while somebody types; forms of a copy begin with what another object says."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Grant, Hostname
from apps.definitions.models import LoadBalancer, Pool, Route, RoutePool
from apps.fleet.models import Fleet
from apps.web.capacity import form as capacity_form
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
    assert 'data-value="acme/shop-next"' in found
    assert "Acme" in found
    assert 'class="status idle"' in found  # nobody has observed it yet
    assert found.count("<li") == 1
    assert offered(tutorial_env, "pools", "acme/shop").count("<li") >= 2
    assert offered(tutorial_env, "pools", "nobody/shop").count("<li") == 0
    assert 'data-value="front"' not in offered(tutorial_env, "accounts", "front")
    assert 'data-value="acme"' in offered(tutorial_env, "accounts", "acm")


def test_names_of_others_are_not_offered(tutorial_env: Actor) -> None:
    stranger = actor_of("stranger", Account.Kind.CUSTOMER)
    for kind in ("pools", "hostnames", "accounts", "certificates", "hostnames-to-load"):
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


def with_route(pool: Pool, name: str) -> Hostname:
    """One more verified name, which sorts last and has a route to the pool."""
    host = Hostname.objects.create(account=pool.account, name=name, verification="operator")
    route = Route.objects.earliest("pk")
    made = Route.objects.create(
        account=pool.account, name=f"to-{pool.name}", load_balancer=route.load_balancer, hostname=host, path="/"
    )
    RoutePool.objects.create(route=made, pool=pool)
    return host


def form_of_test(actor: Actor, pool: str) -> str:
    """The form of a new capacity test of the pool."""
    return client_of(actor).get("/capacity-tests/new", {"pool": pool}).content.decode()


def test_a_capacity_test_offers_the_names_that_lead_to_its_pool_behind_however_many_others(
    tutorial_env: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = with_route(Pool.objects.get(name="shop-next"), "zz.acme.example")
    monkeypatch.setattr(capacity_form, "CHOICES_SHOWN", 2)
    page = form_of_test(tutorial_env, "acme/shop-next")
    assert f'<option value="{last.name}"' in page
    assert "api.globex.example" not in page
    assert 'hx-get="/options/pools"' in page  # three pools are more than two
    assert 'value="acme/shop-next"' in page
    monkeypatch.setattr(capacity_form, "CHOICES_SHOWN", 0)
    assert 'hx-get="/options/hostnames-to-load"' in form_of_test(tutorial_env, "acme/shop-next")


def test_without_a_pool_a_long_form_asks_for_it_before_the_region(
    tutorial_env: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity_form, "CHOICES_SHOWN", 0)
    assert "Choose the pool first" in form_of_test(tutorial_env, "")
    assert "Choose the pool first" not in form_of_test(tutorial_env, "acme/shop")


def to_load(actor: Actor, pool: str, text: str = "") -> str:
    """What the hostname of a capacity test of the pool is offered."""
    query = {"/spec/target/hostname": text, "/spec/target/pool": pool}
    return client_of(actor).get("/options/hostnames-to-load", query).content.decode()


def test_hostnames_to_load_are_those_that_lead_to_the_pool_beside_the_field(tutorial_env: Actor) -> None:
    last = with_route(Pool.objects.get(name="shop-next"), "zz.acme.example")
    assert f'value="{last.name}"' in to_load(tutorial_env, "acme/shop-next")
    assert "api.globex.example" not in to_load(tutorial_env, "acme/shop-next")
    assert "<li" not in to_load(tutorial_env, "acme/shop-next", "nowhere")
    assert "api.globex.example" in to_load(tutorial_env, "", "globex")
    for odd in ("a\0b", "/", "%", "\u202e", "9" * 5000):
        assert client_of(tutorial_env).get("/options/hostnames-to-load", {"/spec/target/pool": odd}).status_code == 200


def test_an_account_is_offered_no_name_of_another_and_none_that_it_may_not_load(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    host = with_route(Pool.objects.get(name="shop-next"), "zz.acme.example")
    assert host.name in to_load(acme, "shop-next")
    assert "acme" not in to_load(globex, "acme/shop-next")
    Hostname.objects.filter(pk=host.pk).update(verification="grant")  # and no grant lets the account load it
    assert host.name not in to_load(acme, "shop-next")
    Grant.objects.create(account=acme.account, name="tests", hostname="*.acme.example")
    assert host.name in to_load(acme, "shop-next")
