"""Whatever way a definition is changed, it is one change: the manager is asked, and version, record and push follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Sum

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.core.errors import Invalid, Managed, SpillwayError
from apps.definitions import selectors, services
from apps.definitions.models import LoadBalancer, Pool, Schedule
from apps.definitions.reading.describing import describe
from apps.definitions.reading.documents import read_object
from apps.definitions.services import KINDS, managing
from apps.definitions.writing import objects
from apps.definitions.writing.change_set import Affected, ScheduledChange
from apps.definitions.writing.rules.managed import said
from apps.definitions.writing.transactions import change_for_schedule
from apps.fleet.models import Fleet, Region
from apps.schedules import services as schedules
from tests.breadth import first_of

pytestmark = pytest.mark.django_db
FINE, WRONG = {"balance": "random"}, {"balance": "luck", "connect_timeout_ms": -1}


def pool() -> Pool:
    return Pool.objects.get(name="shop", account__name="acme")


def spec_of(actor: Actor, wrong: bool) -> dict[str, Any]:
    """The pool's document with one good change, or with two that are wrong."""
    return describe(selectors.pools(actor).get(pk=pool().pk)) | (WRONG if wrong else FINE)


def document(actor: Actor, wrong: bool) -> dict[str, Any]:
    return {"kind": "Pool", "name": "shop", "account": "acme", "spec": spec_of(actor, wrong)}


def by_put(actor: Actor, wrong: bool) -> None:
    services.save_object(actor=actor, **document(actor, wrong))


def by_apply(actor: Actor, wrong: bool) -> None:
    services.apply_document(actor=actor, objects=[document(actor, wrong)])


def by_batch(actor: Actor, wrong: bool) -> None:
    item = {"action": "update", "name": "shop", "account": "acme", "spec": spec_of(actor, wrong)}
    error = services.write_batch(actor=actor, kind="Pool", items=[item], atomic=False).results[0].error
    if error:
        raise error


def by_limit(actor: Actor, wrong: bool) -> None:
    sent: dict[str, Any] = {"value": 0, "scope": "moon"} if wrong else {"value": 77}
    services.set_limit(actor=actor, pool_id=pool().pk, region="us-central1", **sent)


def by_server(actor: Actor, wrong: bool) -> None:
    sent: dict[str, Any] = {"state": "asleep", "weight": 999} if wrong else {"state": "drain", "weight": 7}
    server = selectors.servers(actor).filter(backend__pool=pool()).first()
    assert server is not None
    services.set_server(actor=actor, server_id=server.pk, **sent)


def by_drain(actor: Actor, wrong: bool) -> None:
    services.drain_region(actor=actor, region="us-central1", drained=True)


def by_distance(actor: Actor, wrong: bool) -> None:
    services.set_latency(actor=actor, from_region="us-central1", to_region="europe-west1", ms=90)


def by_move(actor: Actor, wrong: bool) -> None:
    names = ["never", "there"] if wrong else None
    services.move_static_ip(actor=actor, name="home", load_balancer="front", listeners=names)


def by_pause(actor: Actor, wrong: bool) -> None:
    schedules.pause(actor=actor, schedule_id=Schedule.objects.get(name="weekly").pk)


def by_schedule(actor: Actor, wrong: bool) -> None:
    booked = ScheduledChange("", actor.account, "weekly", document(actor, wrong), "ci" if said().break_glass else "")
    with transaction.atomic():
        change_for_schedule(booked, read_object(document(actor, wrong)))


@dataclass(frozen=True)
class Way:
    """How something is changed, and the row that gets a new version.

    `field_errors` are named at once of a wrong one, `pushes` says that fleets must be pushed to, `glass` that people
    do it.
    """

    change: Callable[[Actor, bool], None]
    row: Callable[[], Any] = pool
    field_errors: int = 2
    pushes: bool = True
    glass: bool = True


def region() -> Region:
    return Region.objects.get(name="us-central1")


WAYS = {
    "a replaced object": Way(by_put),
    "an applied document": Way(by_apply),
    "a batch": Way(by_batch),
    "a limit": Way(by_limit),
    "a server": Way(by_server),
    "a drain": Way(by_drain, region, field_errors=0),
    "a distance": Way(by_distance, region, field_errors=0, pushes=False),
    "an address": Way(by_move, lambda: LoadBalancer.objects.get(name="front")),
    "a pause": Way(by_pause, lambda: Schedule.objects.get(name="weekly"), field_errors=0, pushes=False),
    "a change by a schedule": Way(by_schedule, glass=False),
}


@pytest.fixture
def actor(tutorial_env: Actor) -> Actor:
    """The operator, in an environment with an address and a schedule."""
    about = {"kind": "anycast", "address": "192.0.2.10"}
    services.save_object(actor=tutorial_env, kind="StaticIP", name="home", spec=about)
    weekly = {"when": {"cron": "0 4 * * 1"}, "target": {"change": {"object": document(tutorial_env, wrong=False)}}}
    services.save_object(actor=tutorial_env, kind="Schedule", name="weekly", account="acme", spec=weekly)
    return tutorial_env


def error_of(way: Way, actor: Actor, *, wrong: bool = False, glass: bool = False) -> SpillwayError | None:
    """What the change raises, if anything."""
    try:
        with managing(break_glass=glass):
            way.change(actor, wrong)
    except SpillwayError as error:
        return error
    return None


def pushed() -> int:
    found: int = Fleet.objects.aggregate(all=Sum("desired_generation"))["all"]
    return found


def missing(way: Way, actor: Actor) -> list[str]:
    """What does not hold of this way."""
    found = []
    wrong = error_of(way, actor, wrong=True) if way.field_errors else None
    if way.field_errors and (not isinstance(wrong, Invalid) or len(wrong.field_errors) < way.field_errors):
        found.append(f"errors at once: {wrong}")
    for kind in KINDS.values():
        kind.model._default_manager.update(manager="ci")
    version, entries, generations = way.row().version, Entry.objects.count(), pushed()
    with transaction.atomic():
        refused = error_of(way, actor)
        if not isinstance(refused, Managed) or way.row().version != version or Entry.objects.count() != entries:
            found.append(f"manager: {refused}")
        transaction.set_rollback(True)
    if error := error_of(way, actor, glass=True):
        found.append(f"broken glass: {error}")
    if way.row().version != version + 1:
        found.append("version")
    last = Entry.objects.order_by("-pk").first()
    if Entry.objects.count() == entries or last is None or last.reason.startswith("Break glass (ci)") != way.glass:
        found.append("record")
    if way.pushes and pushed() == generations:
        found.append("push")
    return found


@pytest.mark.parametrize("name", WAYS)
def test_every_way_asks_the_manager_takes_a_version_records_and_pushes(actor: Actor, name: str) -> None:
    assert missing(WAYS[name], actor) == []


def nothing(*_: object, **__: object) -> None:
    """What a path does that leaves a rule out."""


@pytest.mark.parametrize(
    ("owner", "rule", "without"),
    [
        (objects, "check_manager", "manager"),
        (objects, "_take_version", "version"),
        (objects, "_record", "record"),
        (Affected, "request_push", "push"),
    ],
)
@pytest.mark.parametrize("name", first_of(1, ["a replaced object", "a limit", "a drain"]))
def test_a_way_that_leaves_a_rule_out_is_seen(
    actor: Actor, monkeypatch: pytest.MonkeyPatch, owner: Any, rule: str, without: str, name: str
) -> None:
    monkeypatch.setattr(owner, rule, nothing)
    assert any(each.startswith(without) for each in missing(WAYS[name], actor))
