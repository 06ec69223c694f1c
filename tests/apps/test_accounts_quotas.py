"""Quotas of accounts hold at creation, for whole documents, and for many who create at once."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.core.errors import Invalid
from apps.definitions.models import Pool, Route, Server
from apps.definitions.services import apply_document, delete_object, save_object, write_batch
from apps.definitions.writing.kinds.hostnames import claim
from apps.definitions.writing.rules import quotas
from apps.fleet.models import Region
from tests.apps.at_once import PATIENCE_S, at_once

POOL: dict[str, Any] = {"backends": []}


def limited(actor: Actor, **quotas: int) -> Actor:
    """The actor, whose account may have no more than this."""
    actor.account.quotas = quotas
    actor.account.save()
    return actor


def pool(actor: Actor, name: str) -> None:
    """Save an empty pool."""
    save_object(actor=actor, kind="Pool", name=name, spec=POOL)


def pools(*names: str) -> list[dict[str, Any]]:
    """A document of empty pools."""
    return [{"kind": "Pool", "name": name, "spec": POOL} for name in names]


def route(hostname: str) -> dict[str, Any]:
    """A route that needs no pool."""
    return {"load_balancer": "front", "hostname": hostname, "action": {"fixed_response": {"status": 200}}}


def test_one_more_than_the_quota_is_refused_in_words_and_the_rest_can_be_edited(acme: Actor) -> None:
    limited(acme, pools=2)
    pool(acme, "a")
    pool(acme, "b")
    with pytest.raises(Invalid) as refused:
        pool(acme, "c")
    field_error = refused.value.field_errors[0]
    assert (field_error.pointer, field_error.code) == ("/name", "quota")
    assert field_error.detail.startswith("The quota of Acme is 2 pools; this would make 3.")
    assert Pool.objects.count() == 2
    limited(acme, pools=1)
    save_object(actor=acme, kind="Pool", name="a", spec=POOL | {"connect_timeout_ms": 7})
    delete_object(actor=acme, kind="Pool", name="b")
    with pytest.raises(Invalid):
        pool(acme, "b")


def where(raised: pytest.ExceptionInfo[Invalid]) -> list[str]:
    """The pointers of what was refused for a quota, and of nothing else."""
    assert {each.code for each in raised.value.field_errors} == {"quota"}
    return [each.pointer for each in raised.value.field_errors]


def test_the_first_that_is_too_many_is_named_wherever_it_stands(acme: Actor) -> None:
    limited(acme, pools=3, network_lists=0)
    pool(acme, "a")
    with pytest.raises(Invalid) as refused:
        apply_document(actor=acme, objects=pools("b", "a", "c", "d", "e"))
    assert where(refused) == ["/objects/3/name"]
    items = [{"action": "create", "name": name, "spec": POOL} for name in "bcde"]
    with pytest.raises(Invalid) as refused:
        write_batch(actor=acme, kind="Pool", items=items, atomic=True)
    assert where(refused) == ["/items/2/name"]
    with pytest.raises(Invalid, match="is 0 network lists; this would make 1") as refused:
        save_object(actor=acme, kind="NetworkList", name="offices", spec={"entries": []})
    assert where(refused) == ["/name"]


def test_an_objective_too_many_is_named_where_it_is_set(acme: Actor) -> None:
    limited(acme, objectives=0)
    with pytest.raises(Invalid) as refused:
        save_object(actor=acme, kind="Pool", name="a", spec=POOL | {"objective": {"availability": 99.0}})
    assert where(refused) == ["/spec/objective"]


def test_a_document_is_counted_as_a_whole_after_what_it_deletes(acme: Actor) -> None:
    limited(acme, pools=2)
    apply_document(actor=acme, objects=pools("a", "b"), manager="ci")
    with pytest.raises(Invalid):
        apply_document(actor=acme, objects=pools("c"), manager="ci")
    apply_document(actor=acme, objects=pools("c", "d"), manager="ci", prune=True)
    assert set(Pool.objects.values_list("name", flat=True)) == {"c", "d"}


def test_a_document_that_is_too_large_for_the_quota_is_refused_before_an_object_of_it_is_made(acme: Actor) -> None:
    limited(acme, pools=3)

    def made(*names: str, prune: bool = False) -> tuple[bool, int]:
        """Whether it was taken, and how many statements made a pool."""
        with CaptureQueriesContext(connection) as queries:
            try:
                apply_document(actor=acme, objects=pools(*names), manager="ci", prune=prune)
                taken = True
            except Invalid:
                taken = False
        return taken, sum('INSERT INTO "definitions_pool"' in each["sql"] for each in queries)

    assert made("a", "b") == (True, 2)
    assert made("c", "d") == (False, 0)
    assert made("a", "b", "c", "d", prune=True) == (False, 0)
    assert made("c", "d", "e", prune=True) == (True, 3), "those before are gone in the end"
    limited(acme, pools=1)
    assert made("c", "d", "e") == (True, 0), "what is there may be said again"
    assert made("c", "x", prune=True) == (True, 1), "fewer than before are no growth"


def test_an_operator_who_writes_for_a_customer_is_bound_by_its_quota_but_not_for_the_platform(
    operator: Actor, acme: Actor
) -> None:
    limited(acme, pools=0)
    with pytest.raises(Invalid):
        save_object(actor=operator, kind="Pool", name="a", account="acme", spec=POOL)
    limited(operator, pools=0)
    pool(operator, "a")


def test_hostnames_count_when_a_route_brings_a_new_one(tutorial_env: Actor, acme: Actor) -> None:
    have = Hostname.objects.filter(account=acme.account).count()
    limited(acme, hostnames=have + 1)
    save_object(actor=acme, kind="Route", name="one", spec=route("one.acme.example"))
    with pytest.raises(Invalid, match="hostnames") as refused:
        save_object(actor=acme, kind="Route", name="two", spec=route("two.acme.example"))
    assert where(refused) == ["/spec/hostname"]
    save_object(actor=acme, kind="Route", name="two", spec=route("one.acme.example") | {"path": "/two"})
    with pytest.raises(Invalid, match="hostnames"):
        save_object(actor=acme, kind="Route", name="two", spec=route("two.acme.example"))
    assert Route.objects.get(name="two").hostname.name == "one.acme.example"


def test_a_claim_of_a_hostname_counts_as_well(acme: Actor) -> None:
    limited(acme, hostnames=1)
    claim(actor=acme, name="one.acme.example")
    claim(actor=acme, name="one.acme.example")
    with pytest.raises(Invalid, match="hostnames"):
        claim(actor=acme, name="two.acme.example")
    assert Hostname.objects.get().name == "one.acme.example"


@pytest.mark.exhaustive  # of two at once: test_definitions_at_once
@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_of_many_who_create_at_once_as_many_succeed_as_the_quota_allows(acme: Actor) -> None:
    limited(acme, pools=5)

    def create(number: int) -> bool:
        try:
            pool(acme, f"p{number}")
        except Invalid:
            return False
        return True

    made = at_once(*(partial(create, number) for number in range(40)))
    assert made.count(True) == Pool.objects.count() == 5


@pytest.mark.django_db(transaction=True)
def test_without_the_lock_two_at_once_would_both_get_the_last_place(
    acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    limited(acme, pools=1)
    gate, count = threading.Barrier(2), quotas._counted

    def counted(*arguments: Any) -> Any:
        found = count(*arguments)
        gate.wait(PATIENCE_S)  # nobody commits before both have counted
        return found

    monkeypatch.setattr(quotas, "lock_quotas", lambda *_: gate.wait(PATIENCE_S))
    monkeypatch.setattr(quotas, "_counted", counted)

    at_once(*(partial(pool, acme, f"p{number}") for number in range(2)))
    assert Pool.objects.count() == 2


@pytest.fixture
def us(operator: Actor) -> Region:
    row: Region = save_object(actor=operator, kind="Region", name="us-central1", spec={"title": "US"})
    return row


def with_servers(name: str, *, count: int, first: int = 0) -> dict[str, Any]:
    """A pool of a document with so many servers."""
    servers = [{"name": f"s{at}", "address": f"192.0.2.{at + 1}", "port": 80} for at in range(first, first + count)]
    return {"kind": "Pool", "name": name, "spec": {"backends": [{"region": "us-central1", "servers": servers}]}}


def save_pool(actor: Actor, document: dict[str, Any]) -> None:
    """Save one pool by itself."""
    save_object(actor=actor, kind="Pool", name=document["name"], spec=document["spec"])


def test_servers_of_all_pools_are_counted_and_a_pool_over_the_quota_can_shrink(acme: Actor, us: Region) -> None:
    limited(acme, servers=3)
    save_pool(acme, with_servers("a", count=2))
    with pytest.raises(Invalid, match="is 3 servers; this would make 4") as refused:
        save_pool(acme, with_servers("b", count=2))
    assert where(refused) == ["/spec/backends/0/servers/1"]
    save_pool(acme, with_servers("b", count=1))
    limited(acme, servers=1)
    save_pool(acme, with_servers("a", count=1))
    save_pool(acme, with_servers("a", count=1, first=5))
    with pytest.raises(Invalid):
        save_pool(acme, with_servers("a", count=2))
    assert Server.objects.count() == 2


def test_a_document_of_too_many_servers_is_refused_before_one_is_written(acme: Actor, us: Region) -> None:
    limited(acme, servers=3)
    save_pool(acme, with_servers("a", count=3))
    with CaptureQueriesContext(connection) as asked, pytest.raises(Invalid, match="this would make 5") as refused:
        apply_document(actor=acme, objects=[with_servers("b", count=2)])
    assert where(refused) == ["/objects/0/spec/backends/0/servers/0"]
    assert not [each for each in asked if each["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    apply_document(actor=acme, objects=[with_servers("a", count=1), with_servers("b", count=2)])
    assert Server.objects.count() == 3


def test_hostnames_of_new_routes_are_counted_before_the_first_is_written(
    acme: Actor, operator: Actor, us: Region
) -> None:
    save_object(actor=operator, kind="Fleet", name="us", spec={"region": us.name})
    front = {"fleets": ["us"], "listeners": [{"name": "web", "protocol": "http", "port": 80}]}
    save_object(actor=operator, kind="LoadBalancer", name="front", spec=front)
    limited(acme, hostnames=2)
    routes = [{"kind": "Route", "name": f"r{at}", "spec": route(f"h{at}.acme.test")} for at in range(3)]
    with CaptureQueriesContext(connection) as asked, pytest.raises(Invalid, match="this would make 3") as refused:
        apply_document(actor=acme, objects=routes)
    assert where(refused) == ["/objects/2/spec/hostname"]
    assert not [each for each in asked if each["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    apply_document(actor=acme, objects=routes[:2])
    same = [{"kind": "Route", "name": "again", "spec": route("h0.acme.test") | {"path": "/again"}}]
    apply_document(actor=acme, objects=same)
    assert Hostname.objects.filter(account=acme.account, released_at=None).count() == 2
