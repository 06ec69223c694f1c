"""Of two who write in the same moment, the second knows what the first has done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.db import transaction

from apps.accounts.actors import Actor
from apps.core.errors import Conflict, Invalid, Stale
from apps.definitions.models import Pool, Route
from apps.definitions.services import save_object
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
