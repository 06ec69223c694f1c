"""Of two who write in the same moment, the second knows what the first has done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, transaction

from apps.accounts.actors import Actor
from apps.core.errors import Conflict, Invalid, Stale
from apps.definitions.models import Pool, Route
from apps.definitions.services import delete_object, save_object
from tests.apps.at_once import PATIENCE_S, at_once, wait_for

pytestmark = [pytest.mark.both_engines, pytest.mark.django_db(transaction=True)]


def save(actor: Actor, name: str, balance: str, version: int | None = None) -> None:
    """Save a pool without servers."""
    spec = {"backends": [], "balance": balance}
    save_object(actor=actor, kind="Pool", name=name, spec=spec, expected_version=version)


def one_before_the_other(first: Callable[[], None], second: Callable[[], None]) -> None:
    """The second begins when the first has written, and the first commits when the second waits or is done."""
    first_has_written, second_is_done = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            first()
            first_has_written.set()
            wait_for(second_is_done)

    def quick() -> None:
        first_has_written.wait(PATIENCE_S)
        try:
            second()
        finally:
            second_is_done.set()

    at_once(slow, quick)


def test_of_two_writers_one_takes_the_version(acme: Actor) -> None:
    save(acme, "shop", "leastconn")

    def second() -> None:
        with pytest.raises(Stale):
            save(acme, "shop", "random", version=1)

    one_before_the_other(lambda: save(acme, "shop", "source", version=1), second)
    assert list(Pool.objects.values_list("balance", "version")) == [("source", 2)]


def test_of_two_who_make_something_one_gets_the_last_place_of_the_quota(acme: Actor) -> None:
    acme.account.quotas = {"pools": 1}
    acme.account.save()

    def second() -> None:
        with pytest.raises(Invalid):
            save(acme, "second", "source")

    one_before_the_other(lambda: save(acme, "first", "source"), second)
    assert list(Pool.objects.values_list("name", flat=True)) == ["first"]


def test_the_same_new_route_sent_twice_is_made_once_and_is_no_fault_of_its_path(
    tutorial_env: Actor, acme: Actor
) -> None:
    target = {"pools": [{"pool": "shop"}]}
    spec = {"load_balancer": "front", "hostname": "shop.acme.example", "path": "/new", "action": target}

    def send() -> None:
        save_object(actor=acme, kind="Route", name="new", spec=spec)

    def again() -> None:
        with suppress(Conflict):  # with SQLite it waits from the beginning, and finds it as wanted
            send()

    one_before_the_other(send, again)
    assert Route.objects.filter(name="new").count() == 1


LEADS = {
    "load_balancer": "front",
    "hostname": "shop.acme.example",
    "path": "/new",
    "action": {"pools": [{"pool": "p"}]},
}
OFFICES = ("acme", "NetworkList", "offices", {"entries": [{"network": "192.0.2.0/24"}]})
SPARE = ("operator", "Region", "spare", {"title": "Spare"})
FLEET = ("operator", "Fleet", "few", {"region": "europe-west1"})
# What is named, and who names it: account, kind, name and spec of each.
NAMED: dict[str, Any] = {
    "a list by a policy": (OFFICES, ("acme", "Policy", "inside", {"rules": {"access": {"allow": ["offices"]}}})),
    "a list by a route": (OFFICES, ("acme", "Route", "new", LEADS | {"rules": {"access": {"deny": ["offices"]}}})),
    "a list by a listener": (
        ("operator", *OFFICES[1:]),
        (
            *("operator", "LoadBalancer", "back"),
            {
                "fleets": ["europe-west1"],
                "listeners": [{"name": "l", "protocol": "http", "port": 8999, "access": {"allow": ["offices"]}}],
            },
        ),
    ),
    "a region by a pool": (SPARE, ("acme", "Pool", "new", {"backends": [], "overflow": {"order": ["spare"]}})),
    "a region by a policy": (SPARE, ("acme", "Policy", "new", {"rules": {"overflow": {"order": ["spare"]}}})),
    "a fleet by a schedule": (
        FLEET,
        ("operator", "Schedule", "nightly", {"when": {"cron": "0 3 * * *"}, "target": {"rollout": {"fleet": "few"}}}),
    ),
    "a pool by a route": (("acme", "Pool", "p", {"backends": []}), ("acme", "Route", "new", LEADS)),
}


@pytest.mark.parametrize("case", NAMED)
def test_what_somebody_names_meanwhile_is_not_deleted(
    tutorial_env: Actor, acme: Actor, operator: Actor, case: str
) -> None:
    named, user = _prepared(case, acme, operator)

    def second() -> None:
        with pytest.raises(Conflict, match="in use by") as raised:
            _delete(named)
        assert user[2] in raised.value.detail or "back" in raised.value.detail

    one_before_the_other(lambda: _save(user), second)


@pytest.mark.parametrize("case", NAMED)
def test_what_is_deleted_meanwhile_cannot_be_named(
    tutorial_env: Actor, acme: Actor, operator: Actor, case: str
) -> None:
    named, user = _prepared(case, acme, operator)

    def second() -> None:
        with pytest.raises(Invalid) as raised:
            _save(user)
        assert [each.code for each in raised.value.field_errors] == ["unknown"]
        assert raised.value.field_errors[0].pointer.startswith("/spec/")
        assert raised.value.field_errors[0].detail.startswith("There is no ")

    one_before_the_other(lambda: _delete(named), second)


def test_those_who_name_the_same_do_not_wait_for_each_other(acme: Actor, operator: Actor) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    _save((operator, *SPARE[1:]))
    ordered = {"backends": [], "overflow": {"order": ["spare"]}}
    with transaction.atomic():
        _save((acme, "Pool", "first", ordered))
        at_once(lambda: _save((operator, "Pool", "second", ordered)))
    assert Pool.objects.count() == 2


def _prepared(case: str, acme: Actor, operator: Actor) -> Any:
    """What is named, stored, and who will name it; each begins with its actor."""
    actors = {"acme": acme, "operator": operator}
    named, user = ((actors[account], *rest) for account, *rest in NAMED[case])
    if case.endswith("route"):
        save_object(actor=acme, kind="Pool", name="p", spec={"backends": []})
    _save(named)
    return named, user


def _save(wanted: tuple[Actor, str, str, dict[str, Any]]) -> None:
    actor, kind, name, spec = wanted
    save_object(actor=actor, kind=kind, name=name, spec=spec)


def _delete(named: tuple[Actor, str, str, dict[str, Any]]) -> None:
    actor, kind, name, _ = named
    delete_object(actor=actor, kind=kind, name=name)
