"""Who uses an object stands on its page, as far as the viewer sees it, and the refusal to delete it says the same."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname
from apps.core.errors import Conflict
from apps.definitions.models import CapacityTest, Listener, LoadBalancer, NetworkList, Policy, Pool, Route, RoutePool
from apps.definitions.services import delete_object
from apps.definitions.writing.rules import usage
from apps.fleet.models import Fleet, Region
from apps.web.finding import used_by
from apps.web.finding.kinds import KINDS, OF_MODEL
from tests.breadth import first_of
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


def card(actor: Actor, path: str) -> str:
    """The card of a page."""
    answer = client_of(actor).get(path)
    assert answer.status_code == 200, path
    page = answer.content.decode()
    start = page.index('id="used-by"')
    return page[start : page.index("</section>", start)]


def copies_of(route: Route, number: int, pool: Pool, account: Account) -> None:
    """More routes that lead to the pool, of an account."""
    for at in range(number):
        made = Route.objects.create(
            account=account,
            name=f"copy-{at:03}",
            load_balancer=route.load_balancer,
            hostname=route.hostname,
            path=f"/copy/{at}",
        )
        RoutePool.objects.create(route=made, pool=pool)


def test_a_pool_names_its_routes_with_their_share_and_its_tests(tutorial_env: Actor) -> None:
    said = card(tutorial_env, f"/pools/{Pool.objects.get(name='shop').pk}")
    route = Route.objects.get(name="checkout")
    assert f'href="/routes/{route.pk}"' in said
    assert f"{route.hostname.name}{route.path}" in said
    assert "100 %" in said or "90 %" in said
    test = CapacityTest.objects.earliest("pk")
    assert f'href="/capacity-tests/{test.pk}"' in said
    assert "1 capacity test" in said


def test_what_is_deleted_while_used_names_the_same_users(tutorial_env: Actor) -> None:
    pool = Pool.objects.get(name="shop")
    shown = used_by.users_shown(tutorial_env, pool).shown
    with pytest.raises(Conflict) as caught:
        delete_object(actor=tutorial_env, kind="Pool", name="shop", account="acme")
    assert len(shown) >= 2
    for each in shown[: usage.SHOWN]:
        assert f"{each.word} {each.name}" in str(caught.value)


def test_a_hostname_that_is_released_while_used_names_its_routes(tutorial_env: Actor, acme: Actor) -> None:
    host = Hostname.objects.get(name="shop.acme.example")
    answer = client_of(acme).post(f"/hostnames/{host.pk}/release", {"confirm": host.name}, follow=True)
    assert "route checkout" in answer.content.decode()
    assert "checkout" in card(acme, f"/hostnames/{host.pk}")


def test_the_first_twenty_stand_there_and_all_are_in_a_table_a_page_at_a_time(tutorial_env: Actor) -> None:
    pool, route = Pool.objects.get(name="shop"), Route.objects.get(name="checkout")
    copies_of(route, 60, pool, route.account)
    said = card(tutorial_env, f"/pools/{pool.pk}")
    assert said.count("row-link") == used_by.SHOWN
    count = used_by.users_shown(tutorial_env, pool).count
    assert f'<a href="/used-by/pool/{pool.pk}">All {count} in the table</a>' in said
    client, after, names = client_of(tutorial_env), "", []
    for _ in range(5):
        context: Any = client.get(f"/used-by/pool/{pool.pk}", {"after": after}).context
        names += [(each.word, each.name) for each in context["users"]]
        after = context["next_after"]
        if not after:
            break
    assert len(names) == len(set(names)) == count


@pytest.mark.parametrize("odd", first_of(3, ["x", "99/1", "a\0b", "1/", "/", "0/999999", "-1/2", "\u00b2/1", "9" * 30]))
def test_a_cursor_that_is_none_means_the_first_page(tutorial_env: Actor, odd: str) -> None:
    pool = Pool.objects.get(name="shop")
    first: Any = client_of(tutorial_env).get(f"/used-by/pool/{pool.pk}").context
    answer: Any = client_of(tutorial_env).get(f"/used-by/pool/{pool.pk}", {"after": odd})
    assert answer.context["users"] == first["users"]


def test_others_are_counted_for_the_owner_and_named_to_operators_alone(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    pool, route = Pool.objects.get(name="shop"), Route.objects.get(name="api")
    copies_of(route, 2, pool, globex.account)
    said = card(acme, f"/pools/{pool.pk}")
    assert "copy-" not in said
    assert "2 of other accounts." in said
    assert "copy-" in card(tutorial_env, f"/pools/{pool.pk}")
    assert "copy-" not in client_of(acme).get(f"/used-by/pool/{pool.pk}").content.decode()
    front = LoadBalancer.objects.get(name="front").pk
    said = card(acme, f"/load-balancers/{front}")
    assert "checkout" in said
    for stranger in ("copy-", "api.globex.example", "other accounts"):
        assert stranger not in said
    assert client_of(globex).get(f"/used-by/pool/{pool.pk}").status_code == 404
    assert client_of(acme).get("/used-by/nothing/1").status_code == 404
    assert client_of(acme).get("/used-by/stack/1").status_code == 404


def test_a_list_names_the_policy_and_the_policy_its_route(tutorial_env: Actor, acme: Actor) -> None:
    listed = NetworkList.objects.create(account=acme.account, name="office")
    policy = Policy.objects.create(account=acme.account, name="inside", rules={"access": {"allow": ["office"]}})
    assert "Nothing uses this policy." in card(acme, f"/policies/{policy.pk}")
    assert f'href="/policies/{policy.pk}"' in card(acme, f"/network-lists/{listed.pk}")
    Route.objects.get(name="checkout").policy_links.create(policy=policy)
    assert "checkout" in card(acme, f"/policies/{policy.pk}")


def test_a_region_names_fleets_and_pools_and_whose_overflow_order_it_is_in(tutorial_env: Actor) -> None:
    region = Region.objects.get(name="us-central1")
    Pool.objects.filter(name="shop-next").update(overflow_order=["us-central1"])
    said = card(tutorial_env, f"/regions/{region.name}")
    for words in ("1 fleet", "3 pools", "overflow order of 1 pool", "1 capacity test"):
        assert words in said
    fleet = Fleet.objects.get(region=region)
    assert "us-1" in card(tutorial_env, f"/fleets/{fleet.pk}")


@pytest.mark.parametrize("kind", usage.USED)
def test_every_kind_that_is_used_has_words_and_so_has_every_user(kind: Any) -> None:
    assert kind in OF_MODEL
    assert {user for user, _ in usage._paths(kind)} <= set(usage.USERS) <= set(OF_MODEL)


def test_no_foreign_key_that_protects_an_object_is_forgotten() -> None:
    """A kind that others point to, and that is not said to be used, would be deleted under its users: named here."""
    owners = {Account}  # whose history keeps it
    for kind in {each.model for each in KINDS.values()} - set(usage.USED) - owners:
        assert not usage._paths(kind), kind
    assert {user for user, _ in usage._paths(Pool)} == {Route, Listener, CapacityTest}  # control: they are found
