"""Grants give hostnames and share pools by tag; nothing is pulled from under a route that uses it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Grant, Hostname
from apps.accounts.rights import may_load_test
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.definitions import selectors
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Pool, Route
from apps.definitions.reading.describing import describe, document
from apps.definitions.reading.documents import read_spec
from apps.definitions.services import apply_document, delete_object, save_object, set_limit, set_server
from apps.definitions.sharing import seen_pools
from apps.definitions.writing.kinds import hostnames
from apps.fleet.models import Fleet
from apps.observe.selectors import pool_numbers, server_rows
from apps.overflow.selectors import flow_of
from tests.apps.at_once import PATIENCE_S, at_once, wait_for

SPEC = {"backends": [{"region": "us-central1", "servers": [{"name": "one", "address": "127.0.0.1", "port": 9301}]}]}


def answer(hostname: str, **fields: Any) -> dict[str, Any]:
    """A route that needs no pool."""
    fixed = {"action": {"fixed_response": {"status": 200}}}
    return {"load_balancer": "front", "hostname": hostname} | fixed | fields


def to_pool(pool: str, hostname: str = "shop.acme.example") -> dict[str, Any]:
    """A route to a pool, beside those of the tutorial."""
    return answer(hostname, path="/shared", action={"pools": [{"pool": pool}]})


def grant(operator: Actor, name: str = "for-acme", **spec: Any) -> Grant:
    """A grant to acme."""
    saved: Grant = save_object(actor=operator, kind="Grant", name=name, spec={"account": "acme"} | spec)
    return saved


def text(days: int) -> str:
    """A moment so many days from now, as documents have it."""
    return (now() + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def search(tutorial_env: Actor) -> Pool:
    """A pool of the operator that carries a tag."""
    spec = SPEC | {"tags": {"customer": "acme", "tier": "1"}}
    saved: Pool = save_object(actor=tutorial_env, kind="Pool", name="search", spec=spec)
    return saved


def field_errors(caught: pytest.ExceptionInfo[Invalid]) -> dict[str, str]:
    """Pointer → code of each error."""
    return {field_error.pointer: field_error.code for field_error in caught.value.field_errors}


def served(name: str) -> bool:
    """Whether a route of this name is in the snapshot of a fleet."""
    front = snapshot_of(Fleet.objects.get(name="us-central1")).load_balancers[0]
    return any(route.label.endswith(f"/{name}") for route in front.routes)


def test_a_grant_and_tags_are_documents_that_read_back_as_they_are_described(search: Pool, operator: Actor) -> None:
    rows: list[Grant | Pool] = [
        grant(operator, "a", tag="customer=acme", expires_at=text(3)),
        grant(operator, "b", hostname="*.a.example"),
    ]
    for row in (*rows, selectors.pools(operator).get(pk=search.pk)):
        assert document(read_spec(type(row).__name__, describe(row))) == describe(row)
    assert describe(search)["tags"] == {"customer": "acme", "tier": "1"}


@pytest.mark.parametrize(
    ("spec", "pointer", "code"),
    [
        ({}, "/spec", "one_of"),
        ({"hostname": "a.example", "tag": "a=b"}, "/spec", "one_of"),
        ({"tag": "customer"}, "/spec/tag", "tag"),
        ({"tag": "customer=acme=x"}, "/spec/tag", "tag"),
        ({"tag": "Customer=acme"}, "/spec/tag", "tag"),
        ({"tag": "a=b\n"}, "/spec/tag", "tag"),
        ({"hostname": "A.example"}, "/spec/hostname", "upper_case"),
        ({"tag": "a=b", "expires_at": "2027-02-30T00:00:00Z"}, "/spec/expires_at", "instant"),
        ({"tag": "a=b", "expires_at": "9999-01-01T00:00:00Z"}, "/spec/expires_at", "instant"),
        ({"tag": "a=b", "expires_at": "2027-01-01"}, "/spec/expires_at", "instant"),
        ({"tag": "a=b", "may_load_test": 1}, "/spec/may_load_test", "not_boolean"),
        ({"tag": "a=b", "account": "nobody"}, "/spec/account", "unknown"),
        ({"tag": "a=b", "account": "operator"}, "/spec/account", "operator"),
        ({"tag": "a=b", "version": 3}, "/spec/version", "unknown_field"),
    ],
)
def test_what_is_no_grant_is_refused_by_field(
    tutorial_env: Actor, spec: dict[str, Any], pointer: str, code: str
) -> None:
    with pytest.raises(Invalid) as caught:
        grant(tutorial_env, **spec)
    assert field_errors(caught)[pointer] == code
    assert not Grant.objects.exists()


@pytest.mark.parametrize(
    ("tags", "pointer"),
    [
        ({"Customer": "acme"}, "/spec/tags/Customer"),
        ({"customer": ""}, "/spec/tags/customer"),
        ({"customer": 7}, "/spec/tags/customer"),
        ({"a" * 64: "x"}, f"/spec/tags/{'a' * 63}"),
        ({'a": "b", "c': "x"}, '/spec/tags/a": "b", "c'),
        ([], "/spec/tags"),
        ({f"k{number}": "v" for number in range(21)}, "/spec/tags"),
    ],
)
def test_tags_are_plain_words(tutorial_env: Actor, tags: object, pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        save_object(actor=tutorial_env, kind="Pool", name="tagged", spec=SPEC | {"tags": tags})
    assert pointer in field_errors(caught)


def test_only_operators_grant(tutorial_env: Actor, acme: Actor) -> None:
    for spec in ({"account": "acme", "hostname": "victim.example"}, {"account": "acme", "tag": "a=b"}):
        with pytest.raises(Forbidden):
            save_object(actor=acme, kind="Grant", name="mine", spec=spec)
    grant(tutorial_env, tag="a=b")
    with pytest.raises(Forbidden):
        delete_object(actor=acme, kind="Grant", name="for-acme")


def test_a_granted_hostname_is_verified_at_once_with_all_names_below(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="waits", spec=answer("early.granted.example"))
    save_object(actor=acme, kind="Route", name="other", spec=answer("elsewhere.example"))
    assert not served("waits")
    before = Fleet.objects.get(name="us-central1").desired_generation
    grant(tutorial_env, hostname="*.granted.example")
    save_object(actor=acme, kind="Route", name="later", spec=answer("late.granted.example"))
    assert Hostname.objects.get(name="early.granted.example").verification == "grant"
    assert Fleet.objects.get(name="us-central1").desired_generation == before + 2
    assert [served(name) for name in ("waits", "later", "other")] == [True, True, False]


def test_a_grant_of_one_account_verifies_nothing_for_another(tutorial_env: Actor, globex: Actor) -> None:
    grant(tutorial_env, hostname="*.granted.example")
    save_object(actor=globex, kind="Route", name="sly", spec=answer("sly.granted.example"))
    assert not served("sly")


def test_a_hostname_of_one_customer_is_not_granted_to_another(tutorial_env: Actor, globex: Actor) -> None:
    save_object(actor=globex, kind="Route", name="waits", spec=answer("waits.example"))
    grant(tutorial_env, "of-waits", hostname="waits.example")
    save_object(actor=tutorial_env, kind="Route", name="mine", account="globex", spec=answer("mine.example"))
    with pytest.raises(Invalid) as caught:
        grant(tutorial_env, hostname="mine.example")
    assert field_errors(caught) == {"/spec/hostname": "hostname_taken"}
    grant(tutorial_env, hostname="free.example")
    with pytest.raises(Invalid) as caught:
        grant(tutorial_env, "second", account="globex", hostname="free.example")
    assert field_errors(caught) == {"/spec/hostname": "granted"}


def test_a_grant_that_verifies_the_name_of_a_route_stays_until_the_route_is_gone(
    tutorial_env: Actor, acme: Actor
) -> None:
    grant(tutorial_env, hostname="granted.example")
    save_object(actor=acme, kind="Route", name="user", spec=answer("granted.example"))
    with pytest.raises(Conflict, match="acme/user"):
        delete_object(actor=tutorial_env, kind="Grant", name="for-acme")
    with pytest.raises(Conflict, match="acme/user"):
        grant(tutorial_env, hostname="another.example")
    grant(tutorial_env, "wider", hostname="*.example.org")
    grant(tutorial_env, "twin", hostname="granted.example")
    delete_object(actor=tutorial_env, kind="Grant", name="for-acme")  # the twin holds the name
    delete_object(actor=acme, kind="Route", name="user")
    delete_object(actor=tutorial_env, kind="Grant", name="twin")
    claim = Hostname.objects.filter(name="granted.example").first()
    assert claim is None or claim.verification == ""


def test_a_name_that_a_grant_verified_waits_again_as_long_as_a_new_one_once_the_grant_is_gone(
    tutorial_env: Actor, acme: Actor
) -> None:
    grant(tutorial_env, hostname="*.granted.example")
    claim = hostnames.claim(actor=acme, name="a.granted.example")
    Hostname.objects.filter(pk=claim.pk).update(created_at=now() - timedelta(days=30))
    delete_object(actor=tutorial_env, kind="Grant", name="for-acme")
    hostnames.sweep(now())
    assert Hostname.objects.get(pk=claim.pk).verification == ""
    assert claim.pk in hostnames.due(now())
    hostnames.sweep(now() + timedelta(days=13))
    assert Hostname.objects.filter(pk=claim.pk).exists()
    hostnames.sweep(now() + timedelta(days=15))
    assert not Hostname.objects.filter(pk=claim.pk).exists()


@pytest.mark.parametrize("ended", [True, False])
def test_a_released_name_comes_back_unverified_where_its_grant_is_gone(
    ended: bool, tutorial_env: Actor, acme: Actor
) -> None:
    grant(tutorial_env, hostname="*.granted.example")
    claim = hostnames.claim(actor=acme, name="a.granted.example")
    hostnames.release(actor=acme, hostname_id=claim.pk)
    if ended:
        grant(tutorial_env, hostname="*.granted.example", expires_at=text(-1))
    else:
        delete_object(actor=tutorial_env, kind="Grant", name="for-acme")
    save_object(actor=acme, kind="Route", name="again", spec=answer("a.granted.example"))
    assert not served("again")
    assert claim.pk in hostnames.due(now())
    grant(tutorial_env, hostname="*.granted.example")
    assert served("again")


def test_a_released_name_comes_back_verified_while_its_grant_is_there(tutorial_env: Actor, acme: Actor) -> None:
    grant(tutorial_env, hostname="*.granted.example")
    claim = hostnames.claim(actor=acme, name="a.granted.example")
    hostnames.release(actor=acme, hostname_id=claim.pk)
    save_object(actor=acme, kind="Route", name="again", spec=answer("a.granted.example"))
    assert served("again")


def test_an_ended_grant_verifies_nothing_new_and_its_routes_go_on(tutorial_env: Actor, acme: Actor) -> None:
    grant(tutorial_env, hostname="*.granted.example")
    save_object(actor=acme, kind="Route", name="old", spec=answer("old.granted.example"))
    grant(tutorial_env, hostname="*.granted.example", expires_at=text(-1))
    save_object(actor=acme, kind="Route", name="new", spec=answer("new.granted.example"))
    assert (served("old"), served("new")) == (True, False)


@pytest.mark.both_engines
def test_a_pool_is_shared_by_its_tag_and_nothing_else_is(search: Pool, operator: Actor, acme: Actor) -> None:
    other = save_object(actor=operator, kind="Pool", name="other", spec=SPEC | {"tags": {"customer": "acme-two"}})
    own = {pool.name for pool in selectors.pools(acme)}
    assert search.name not in own
    grant(operator, tag="customer=acme")
    assert {pool.name for pool in selectors.pools(acme)} == own | {"search"}
    assert other.pk not in {pool.pk for pool in seen_pools(acme)}
    assert set(pool_numbers(acme, [search.pk, other.pk])) == {search.pk}
    assert {row.server_id for row in server_rows(acme, search.pk)}
    assert not server_rows(acme, other.pk)
    assert [use.name for use in flow_of(acme, search).regions] == ["us-central1"]


@pytest.mark.both_engines
def test_a_tag_of_another_customer_shares_nothing(search: Pool, operator: Actor, acme: Actor, globex: Actor) -> None:
    grant(operator, tag="customer=acme")
    save_object(actor=globex, kind="Pool", name="bait", spec=SPEC | {"tags": {"customer": "acme"}})
    assert "bait" not in {pool.name for pool in selectors.pools(acme)}
    assert "search" not in {pool.name for pool in selectors.pools(globex)}
    with pytest.raises(Invalid):
        save_object(actor=acme, kind="Route", name="caught", spec=to_pool("globex/bait"))


@pytest.mark.both_engines
def test_numbers_and_words_of_json_are_tags_like_others(operator: Actor, tutorial_env: Actor, acme: Actor) -> None:
    for number, key in enumerate(("0", "contains", "isnull", "7")):
        save_object(actor=operator, kind="Pool", name=f"p{number}", spec=SPEC | {"tags": {key: "1"}})
        grant(operator, f"g{number}", tag=f"{key}=1")
        assert f"p{number}" in {pool.name for pool in selectors.pools(acme)}


def test_a_shared_pool_is_named_in_routes_and_changed_by_nobody_but_its_owner(
    search: Pool, operator: Actor, acme: Actor
) -> None:
    with pytest.raises(Invalid) as caught:
        save_object(actor=acme, kind="Route", name="user", spec=to_pool("operator/search"))
    assert field_errors(caught) == {"/spec/action/pools/0/pool": "unknown"}
    grant(operator, tag="customer=acme")
    save_object(actor=acme, kind="Route", name="user", spec=to_pool("operator/search"))
    server = search.backends.get().servers.get()
    with pytest.raises(NotFound):
        set_server(actor=acme, server_id=server.pk, state="drain")
    with pytest.raises(Forbidden):
        set_limit(actor=acme, pool_id=search.pk, region="us-central1", kind="rate", value=1)
    with pytest.raises(Invalid):
        save_object(actor=acme, kind="Pool", name="search", account="operator", spec=SPEC)
    with pytest.raises(Invalid):
        delete_object(actor=acme, kind="Pool", name="search", account="operator")


def test_neither_grant_nor_tag_is_taken_away_by_accident_while_a_route_uses_the_pool(
    search: Pool, operator: Actor, acme: Actor
) -> None:
    grant(operator, tag="customer=acme")
    save_object(actor=acme, kind="Route", name="user", spec=to_pool("operator/search"))
    ways: dict[str, Callable[[], object]] = {
        "acme/for-acme": lambda: delete_object(actor=operator, kind="Grant", name="for-acme"),
        "confirm=acme/for-acme": lambda: grant(operator, tag="customer=other"),
        "operator/search": lambda: save_object(
            actor=operator, kind="Pool", name="search", spec=SPEC | {"tags": {"tier": "1"}}
        ),
    }
    for name, way in ways.items():
        with pytest.raises(Invalid) as caught:
            way()
        (error,) = caught.value.field_errors
        assert error.code == "would_empty"
        assert "1 route of 1 account would lose a shared pool" in error.detail
        assert "acme/user" in error.detail
        assert error.detail.endswith(name)
    assert Grant.objects.get().tag == "customer=acme"
    grant(operator, "by-tier", tag="tier=1")
    save_object(actor=operator, kind="Pool", name="search", spec=SPEC | {"tags": {"tier": "1"}})
    delete_object(actor=operator, kind="Grant", name="for-acme")
    delete_object(actor=acme, kind="Route", name="user")
    delete_object(actor=operator, kind="Grant", name="by-tier")


def test_one_document_may_move_a_route_away_and_take_the_grant(search: Pool, operator: Actor, acme: Actor) -> None:
    grant(operator, tag="customer=acme")
    save_object(actor=acme, kind="Route", name="user", spec=to_pool("operator/search"))
    route = {"kind": "Route", "account": "acme", "name": "user", "spec": to_pool("shop")}
    moved = {"kind": "Grant", "name": "for-acme", "spec": {"account": "acme", "tag": "nothing=here"}}
    apply_document(actor=operator, objects=[moved, route])
    assert "search" not in {pool.name for pool in selectors.pools(acme)}


def test_after_a_grant_ended_its_routes_can_be_edited_and_no_new_one_uses_the_pool(
    search: Pool, operator: Actor, acme: Actor
) -> None:
    grant(operator, tag="customer=acme")
    save_object(actor=acme, kind="Route", name="user", spec=to_pool("operator/search"))
    grant(operator, tag="customer=acme", expires_at=text(-1))
    assert "search" in {pool.name for pool in selectors.pools(acme)}
    save_object(actor=acme, kind="Route", name="user", spec=to_pool("operator/search") | {"methods": ["GET"]})
    with pytest.raises(Invalid):
        save_object(actor=acme, kind="Route", name="new", spec=to_pool("operator/search", "new.acme.example"))
    delete_object(actor=acme, kind="Route", name="user")
    assert "search" not in {pool.name for pool in selectors.pools(acme)}
    assert not Route.objects.filter(name="new").exists()


def test_a_grant_stays_with_its_account_and_stands_in_the_record_of_it(tutorial_env: Actor, acme: Actor) -> None:
    grant(tutorial_env, tag="customer=acme")
    with pytest.raises(Invalid) as caught:
        grant(tutorial_env, account="globex", tag="customer=acme")
    assert field_errors(caught) == {"/spec/account": "account"}
    delete_object(actor=tutorial_env, kind="Grant", name="for-acme")
    rows = Entry.objects.filter(object_kind="Grant").order_by("id").values_list("account__name", "action")
    assert list(rows) == [("acme", "create"), ("acme", "delete")]


def uses_left_without_a_grant(operator: Actor, acme: Actor) -> int:
    """How many routes use the pool after a route and the end of its grant looked before either was committed."""
    used, is_gone = threading.Event(), threading.Event()

    def use() -> None:
        with transaction.atomic():
            save_object(actor=acme, kind="Route", name="user", spec=to_pool("operator/search"))
            used.set()
            wait_for(is_gone)

    def take_away() -> None:
        used.wait(PATIENCE_S)
        with suppress(Invalid):
            delete_object(actor=operator, kind="Grant", name="for-acme")
        is_gone.set()

    at_once(use, take_away)
    return 0 if Grant.objects.exists() else Route.objects.filter(name="user").count()


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_a_route_and_the_end_of_its_grant_cannot_pass_each_other(search: Pool, operator: Actor, acme: Actor) -> None:
    grant(operator, tag="customer=acme")
    assert uses_left_without_a_grant(operator, acme) == 0


@pytest.mark.django_db(transaction=True)
def test_without_the_lock_they_would_pass_each_other(
    search: Pool, operator: Actor, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time: there is no lock to take away")
    grant(operator, tag="customer=acme")
    monkeypatch.setattr("apps.definitions.sharing.lock_words", list)
    assert uses_left_without_a_grant(operator, acme) == 1


def test_load_may_be_tested_where_a_name_is_verified_or_a_grant_says_so(tutorial_env: Actor, acme: Actor) -> None:
    account = Account.objects.get(name="acme")
    assert may_load_test(account, "shop.acme.example")  # an operator's document verified it
    save_object(actor=acme, kind="Route", name="waits", spec=answer("waiting.example"))
    assert not may_load_test(account, "waiting.example")
    grant(tutorial_env, hostname="*.granted.example", may_load_test=False)
    save_object(actor=acme, kind="Route", name="granted", spec=answer("a.granted.example"))
    assert not may_load_test(account, "a.granted.example")
    grant(tutorial_env, hostname="*.granted.example")
    assert may_load_test(account, "a.granted.example")
    assert not may_load_test(Account.objects.get(name="globex"), "a.granted.example")
    grant(tutorial_env, hostname="*.granted.example", expires_at=text(-1))
    assert not may_load_test(account, "a.granted.example")
