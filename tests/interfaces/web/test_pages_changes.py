"""Changes are listed with what differs, and taken back whole by whoever may write, unless something moved since."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.audit.models import Entry
from apps.audit.selectors import entries_of_change
from apps.audit.services import record
from apps.core.errors import NotFound
from apps.definitions.models import Backend, CapacityTest, LoadBalancer, Pool, Schedule, Server
from apps.fleet.models import Node, Region
from apps.web.finding.kinds import kind_of
from tests.conftest import actor_of
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(tutorial_env: Actor) -> Client:
    return client_of(tutorial_env)


@pytest.fixture
def pool(operator: Client) -> Pool:
    return Pool.objects.get(name="shop")


def limit(pool: Pool) -> int | None:
    """Of the pool in us-central1."""
    return Backend.objects.get(pool=pool, region__name="us-central1").limit_value


def set_limit(client: Client, pool: Pool, value: int) -> Entry:
    """By the small form of the page; the entry that says so."""
    version = Pool.objects.get(pk=pool.pk).version
    sent = {"region": "us-central1", "kind": "rate", "value": value, "scope": "backend", "accept": "1"}
    client.post(f"/pools/{pool.pk}/limit", sent | {"version": version})
    return Entry.objects.filter(object_kind="Backend").latest("id")


def test_a_limit_is_reverted_from_the_list_of_changes_and_only_once(operator: Client, pool: Pool) -> None:
    before = limit(pool)
    entry = set_limit(operator, pool, 77)
    page = operator.get("/changes").content.decode()
    assert f"limit, value: {before} → 77" in page
    assert f'href="/changes/{entry.pk}#revert"' in page
    assert "Revert this change" in operator.get(f"/changes/{entry.pk}").content.decode()
    said = operator.post(f"/changes/{entry.pk}/revert", follow=True).content.decode()
    assert "Reverted: Limit of acme/shop in us-central1 changed." in said
    assert limit(pool) == before
    said = operator.post(f"/changes/{entry.pk}/revert", follow=True).content.decode()
    assert "has changed since. Nothing was reverted" in said
    assert limit(pool) == before


def test_what_moved_since_is_not_reverted(operator: Client, pool: Pool) -> None:
    entry = set_limit(operator, pool, 77)
    set_limit(operator, pool, 78)
    assert "has changed since" in operator.post(f"/changes/{entry.pk}/revert", follow=True).content.decode()
    assert limit(pool) == 78


def test_servers_that_were_drained_together_come_back_together(operator: Client, pool: Pool) -> None:
    servers = list(Server.objects.filter(backend__pool=pool, backend__region__name="us-central1")[:2])
    operator.post(f"/pools/{pool.pk}/servers", {"server": [each.pk for each in servers], "do": "drain"})
    assert [Server.objects.get(pk=each.pk).state for each in servers] == ["drain", "drain"]
    entry = Entry.objects.filter(object_kind="Server").latest("id")
    operator.post(f"/changes/{entry.pk}/revert")
    assert [Server.objects.get(pk=each.pk).state for each in servers] == ["ready", "ready"]


def test_a_server_that_is_gone_is_one_that_moved(operator: Client, pool: Pool) -> None:
    server = Server.objects.filter(backend__pool=pool).latest("id")
    operator.post(f"/pools/{pool.pk}/servers", {"server": [server.pk], "do": "drain"})
    entry = Entry.objects.filter(object_kind="Server").latest("id")
    server.delete()
    assert "has changed since" in operator.post(f"/changes/{entry.pk}/revert", follow=True).content.decode()


def test_an_object_as_a_whole_is_reverted_by_somebody_else_than_who_changed_it(operator: Client, pool: Pool) -> None:
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    client_of(acme).post("/network-lists/new", {"/name": "office", "/spec/entries": "192.0.2.0/24"})
    entry = Entry.objects.filter(object_kind="NetworkList").latest("id")
    assert entry.action == "create"
    operator.post(f"/changes/{entry.pk}/revert")
    assert Entry.objects.filter(object_kind="NetworkList").latest("id").action == "delete"


def test_a_change_of_which_one_sees_only_a_part_is_shown_so_far_and_cannot_be_reverted(
    operator: Client, pool: Pool
) -> None:
    acme, house = actor_of("acme", Account.Kind.CUSTOMER), actor_of("operator", Account.Kind.OPERATOR)
    common = {"actor": "somebody", "request_id": "both-of-them", "action": "update", "object_kind": "Pool"}
    mine = Entry.objects.create(account=acme.account, object_id=pool.pk, object_label="acme/shop", **common)
    Entry.objects.create(account=house.account, object_label="operator/y", **common | {"actor": "somebody else"})
    assert entries_of_change(acme, "both-of-them", mine) == [mine]  # whoever chose the same id of a request
    revert = f'href="/changes/{mine.pk}#revert"'
    assert revert in client_of(acme).get("/changes").content.decode()
    Entry.objects.create(account=house.account, object_id=99, object_label="operator/x", **common)
    with pytest.raises(NotFound):
        entries_of_change(acme, "both-of-them", mine)
    assert revert not in client_of(acme).get("/changes").content.decode()
    shown = client_of(acme).get(f"/changes/{mine.pk}").content.decode()
    assert "acme/shop" in shown
    assert "operator/x" not in shown
    assert "Revert this change" not in shown


@pytest.mark.parametrize(("objects", "folded"), [(3, 0), (4, 4)])
def test_a_change_of_many_objects_is_a_list_of_them_that_opens(operator: Client, objects: int, folded: int) -> None:
    house = actor_of("operator", Account.Kind.OPERATOR)
    common = {"account": house.account, "actor": "somebody", "request_id": "all-of-them", "action": "create"}
    for number in range(objects):
        label = f"operator/x-{number}"
        entry = Entry.objects.create(object_kind="Pool", object_id=900 + number, object_label=label, **common)
    page = operator.get(f"/changes/{entry.pk}").content.decode()
    assert page.count('<details class="card drawer" id="object-') == folded
    assert page.count("<h2>Pool operator/x-") == objects


def card(client: Client, path: str) -> str:
    """The card of changes on the page of an object; empty where it has none."""
    return client.get(path).content.decode().partition('id="changes"')[2].partition("</section>")[0]


def test_a_pool_lists_its_versions_and_the_changes_of_its_limits_each_with_revert(operator: Client, pool: Pool) -> None:
    before, entry = limit(pool), set_limit(operator, pool, 77)
    said = card(operator, f"/pools/{pool.pk}")
    assert '<span class="badge">v1</span>' in said
    assert "Limit of acme/shop in us-central1 changed" in said
    assert f"limit, value: {before} → 77" in said
    assert f'href="/changes/{entry.pk}#revert"' in said
    assert "globex" not in said


def test_the_newest_changes_stand_on_the_page_and_the_others_are_named(operator: Client, pool: Pool) -> None:
    for value in range(60, 70):
        set_limit(operator, pool, value)
    said = card(operator, f"/pools/{pool.pk}")
    assert said.count("<li>") == 8
    assert "limit, value: 68 → 69" in said
    assert "Showing the newest 8." in said


def test_viewers_read_changes_and_are_offered_no_revert(operator: Client, pool: Pool) -> None:
    entry = Entry.objects.filter(object_kind="Pool", object_id=pool.pk).latest("id")
    viewer = client_of(actor_of("acme", Account.Kind.CUSTOMER), Membership.Role.VIEWER)
    said = card(viewer, f"/pools/{pool.pk}")
    assert f'href="/changes/{entry.pk}"' in said
    assert "#revert" not in said


def test_changes_of_what_is_only_shared_are_its_owners_business(operator: Client) -> None:
    front = LoadBalancer.objects.get(name="front")
    assert "create" in card(operator, f"/load-balancers/{front.pk}")
    assert card(client_of(actor_of("acme", Account.Kind.CUSTOMER)), f"/load-balancers/{front.pk}") == ""


@pytest.mark.parametrize("model", [Region, Node, Schedule, CapacityTest])
def test_every_object_has_its_changes_on_its_page(operator: Client, model: type[Any]) -> None:
    row = model.objects.earliest("pk")
    assert "create" in card(operator, kind_of(row)[1].url(row))


def test_who_looked_as_somebody_else_changed_nothing(operator: Client, acme: Actor, tutorial_env: Actor) -> None:
    record(
        actor=tutorial_env, action="impersonate", kind="Account", object_id=acme.account.pk, label="acme",
        account=acme.account, before=None, after=None, version=None, reason="",
    )  # fmt: skip
    assert "impersonate" not in client_of(acme).get("/changes").content.decode()
    assert "impersonate" in client_of(acme).get("/audit").content.decode()
