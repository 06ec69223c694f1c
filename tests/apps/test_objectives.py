"""Objectives of pools: what samples become, what is left of an error budget, and when somebody is told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.alerts.models import Finding
from apps.core import events
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.models import Pool
from apps.definitions.services import save_object
from apps.definitions.shapes.servers.objective import LATENCIES_MS
from apps.fleet.models import Node
from apps.observe import services
from apps.observe.collect import tallies
from apps.observe.collect.deltas import Counts
from apps.observe.collect.percentiles import BOUNDS
from apps.observe.models import PoolTally
from apps.observe.show.objectives import WHOLE, Share, standings
from tests.apps.alerts_env import Installation
from tests.interfaces.api.test_api_objects import Api
from tests.interfaces.people import client_of

OBJECTIVE = {"availability": 99.0, "latency_ms": 100, "latency_share": 90}


@pytest.fixture
def installation(tutorial_env: Actor) -> Installation:
    """The tutorial's installation, an hour ago."""
    return Installation()


def make(actor: Actor, objective: Mapping[str, Any] | None = OBJECTIVE, name: str = "cart", **spec: Any) -> Pool:
    pool: Pool = save_object(actor=actor, kind="Pool", name=name, spec={"objective": objective, **spec})
    return pool


def answered(pool: Pool, at: datetime, good: int, bad: int = 0, *, slow: int = 0, resolution: int = 10) -> None:
    """What a node counted of a pool in the bucket from `at`."""
    second = int(at.timestamp()) // resolution * resolution
    latency = {100: good + bad - slow, 200: slow // 2, -1: slow - slow // 2}
    counts = Counts(seconds=10, requests=good + bad, status_2xx=good, status_5xx=bad, latency=latency)
    node = Node.objects.order_by("pk")[0]
    services.store_buckets(resolution, [(second, node.pk, ("backend", f"pool-{pool.pk}"), counts)])


def refused(pool: Pool, at: datetime, count: int) -> None:
    node = Node.objects.order_by("pk")[0]
    flow = ("flow", f"pool-{pool.pk}/refuse/rgn-1/rate")
    services.store_buckets(10, [(int(at.timestamp()), node.pk, flow, Counts(seconds=10, requests=count))])


def test_the_bounds_of_objectives_are_those_that_nodes_count_up_to() -> None:
    assert (*LATENCIES_MS, -1) == BOUNDS


def test_shares_say_what_is_left_and_nothing_where_nothing_is_known() -> None:
    half = Share(total=1000, bad=5, target=99)
    assert half.percent == 99.5
    assert half.left == pytest.approx(50)
    assert half.burn == pytest.approx(0.5)
    assert Share(1000, 20, 99).left == pytest.approx(-100)
    nothing = Share(0, 0, 99)
    assert (nothing.percent, nothing.left, nothing.burn) == (None, None, None)
    assert Share(19, 19, 99).burn is None


def test_what_ended_badly_was_refused_or_slow_is_counted_once_by_pool(installation: Installation, acme: Actor) -> None:
    pool, other, at = make(acme), make(acme, name="other"), now()
    answered(pool, at - timedelta(minutes=2), 95, 3, slow=20)
    refused(pool, at - timedelta(minutes=2), 2)
    answered(other, at - timedelta(minutes=2), 10)
    for _ in range(2):  # again makes no difference
        tallies.count_pools(at)
    standing = standings([pool, other], at)[pool.pk]
    availability, latency = (aim.shares[WHOLE] for aim in standing.aims)
    assert (availability.total, availability.bad) == (100, 5)
    assert (latency.total, latency.bad) == (98, 20)
    assert 0 < standing.known < 0.1


def test_a_new_objective_and_another_bound_look_back_as_far_as_there_are_samples(
    installation: Installation, acme: Actor
) -> None:
    at, pool = now(), make(acme, None)
    answered(pool, at - timedelta(days=3), 100, slow=40, resolution=60)
    answered(pool, at - timedelta(minutes=7), 100)
    tallies.count_pools(at)
    assert not PoolTally.objects.exists()
    assert standings([pool], at) == {}
    pool = make(acme)
    PoolTally.objects.create(
        pool=pool, whole_day=True, at=at - timedelta(days=20), total=50, latency_ms=1, timed=50, slow=50
    )
    tallies.count_pools(at)
    availability, latency = (aim.shares[WHOLE] for aim in standings([pool], at)[pool.pk].aims)
    assert (availability.total, latency.total, latency.bad) == (250, 200, 40)
    pool = make(acme, OBJECTIVE | {"latency_ms": 200})
    tallies.count_pools(at)
    assert standings([pool], at)[pool.pk].aims[1].shares[WHOLE].bad == 20


def test_what_burns_is_told_its_account_and_ends_soon_after(
    installation: Installation, acme: Actor, globex: Actor
) -> None:
    def firing() -> list[tuple[str, str, str]]:
        rows = Finding.objects.filter(watches__startswith="objective", gone_at=None).exclude(alert=None)
        return sorted(rows.values_list("account__name", "rule", "title"))

    pool, calm = make(acme), make(globex, name="calm")
    begin = installation.at
    for minute in range(60):
        answered(pool, begin + timedelta(minutes=minute), 80, 20)
        answered(calm, begin + timedelta(minutes=minute), 100)
    installation.at = begin + timedelta(minutes=60)
    tallies.count_pools(installation.at)
    installation.tick(2)
    mine = [each for each in firing() if each[0] == "acme"]
    assert mine == [
        ("acme", "objective-burning", "Pool cart uses up its error budget"),
        ("acme", "objective-burning-fast", "Pool cart uses up its error budget"),
        ("acme", "objective-burning-slowly", "Pool cart uses up its error budget"),
    ]
    assert "globex" not in str(firing())
    assert "20.0 times" in Finding.objects.filter(account=acme.account, rule="objective-burning-fast").get().detail
    for minute in range(60, 75):
        answered(pool, begin + timedelta(minutes=minute), 100)
    installation.at = begin + timedelta(minutes=75)
    tallies.count_pools(installation.at)
    installation.tick(62)
    assert "objective-burning-fast" not in str(firing())  # the hour still has it, the last minutes do not


def test_what_is_not_known_begins_and_ends_nothing(installation: Installation, acme: Actor) -> None:
    pool = make(acme)
    for minute in range(60):
        answered(pool, installation.at + timedelta(minutes=minute), 10, 90)
    installation.at += timedelta(minutes=60)
    tallies.count_pools(installation.at)
    installation.tick(2)
    before = Finding.objects.filter(watches="objective_burning_fast", ended_at=None).count()
    assert before
    installation.watched = False
    installation.tick(61, times=10)
    assert Finding.objects.filter(watches="objective_burning_fast", ended_at=None).count() == before


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"objective": {"availability": 99, "latency_ms": 150}}, "/spec/objective/latency_ms"),
        ({"objective": {"availability": 100}}, "/spec/objective/availability"),
        ({"objective": {}}, "/spec/objective/availability"),
        ({"objective": {"availability": 99}, "protocol": "tcp"}, "/spec/objective"),
    ],
)
def test_an_objective_that_nobody_can_measure_is_refused(
    tutorial_env: Actor, acme: Actor, spec: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        save_object(actor=acme, kind="Pool", name="cart", spec=spec)
    assert refusal.value.field_errors[0].pointer == pointer


def test_the_page_says_what_is_left_and_unknown_where_nothing_is_known(installation: Installation, acme: Actor) -> None:
    pool, plain, at = make(acme), make(acme, None, name="plain"), now()
    address = f"/pools/{pool.pk}?partial=objective"
    page = client_of(acme).get(address).content.decode()
    assert page.count("unknown") == 10
    answered(pool, at - timedelta(minutes=2), 2, 0)
    answered(pool, at - timedelta(minutes=8), 995, 5)
    tallies.count_pools(at)
    events.publish("samples", at=1)  # until then, the part is the one of before
    page = client_of(acme).get(address).content.decode()
    assert "99.5 %" in page
    assert "5 of 1,002 requests missed it" in page
    assert "Error budget left: 50 %" in page
    assert "Objective</h2>" not in client_of(acme).get(f"/pools/{plain.pk}?partial=objective").content.decode()


def test_who_only_shares_a_pool_does_not_see_what_others_ask_of_it(
    installation: Installation, operator: Actor, acme: Actor
) -> None:
    pool = make(operator, tags={"kind": "shared"})
    save_object(actor=operator, kind="Grant", name="shared", spec={"account": "acme", "tag": "kind=shared"})
    address = f"/pools/{pool.pk}?partial=objective"
    assert "Objective</h2>" in client_of(operator).get(address).content.decode()
    shared = client_of(acme).get(address)
    assert shared.status_code == 200
    assert "Objective</h2>" not in shared.content.decode()
    assert Api(operator)("GET", f"pools/{pool.pk}/objective").json()["counted_in"] == "node_counters"
    assert Api(acme)("GET", f"pools/{pool.pk}").status_code == 200
    assert Api(acme)("GET", f"pools/{pool.pk}/objective").status_code == 404
