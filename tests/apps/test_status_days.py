"""What days of status pages were like: counted once, and unknown where too little was measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Route
from apps.fleet.models import Node
from apps.observe import services as observe
from apps.observe.collect.deltas import Counts
from apps.status import days, services
from apps.status.models import Incident, PoolDay
from tests.apps.alerts_env import Installation, make_pool
from tests.apps.status_env import (
    DEGRADED,
    FINE,
    FIRST,
    MAJOR,
    PARTIAL,
    UNKNOWN,
    at,
    checkout,
    day,
    installation,
    make_page,
    minute,
    pools_behind,
)

__all__ = ["installation"]


def test_minutes_of_a_pool_that_nothing_checks_count_where_enough_responses_tell(
    installation: Installation, acme: Actor
) -> None:
    make_page(acme)
    (pool,) = pools_behind(acme)
    pool.health_check.delete()
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
    minute(pool, noon, 0)
    minute(pool, noon + timedelta(minutes=1), 40)
    minute(pool, noon + timedelta(minutes=2), 0, 40)
    days.count_days(noon + timedelta(minutes=20))
    row = PoolDay.objects.get(pool=pool, day=noon.date())
    assert (row.minutes, row.down) == (2, 1)


def test_minutes_become_days_and_are_never_counted_twice(installation: Installation, acme: Actor) -> None:
    make_page(acme)
    (pool,) = pools_behind(acme)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
    for number in range(10):
        minute(pool, noon + timedelta(minutes=number))
    minute(pool, noon + timedelta(minutes=10), 90, 10)
    minute(pool, noon + timedelta(minutes=11), 10, 90)
    minute(pool, noon + timedelta(minutes=12), 0, 3)  # too few to say anything
    minute(pool, noon + timedelta(minutes=13), 0, 0, status="DOWN")
    minute(pool, noon + timedelta(minutes=14), 0, 0, status="DOWN")
    minute(pool, noon + timedelta(minutes=14), 9, 0, node=1)  # another node had servers
    refused = ("flow", f"pool-{pool.pk}/refuse/rgn-1/rate")
    second = int((noon + timedelta(minutes=15)).timestamp())
    node = Node.objects.order_by("pk")[0].pk
    observe.store_buckets(60, [(second, node, refused, Counts(seconds=60, requests=30))])
    end = noon + timedelta(minutes=20)
    for _ in range(3):
        days.count_days(end)
    row = PoolDay.objects.get(pool=pool, day=noon.date())
    assert (row.minutes, row.down, row.failing) == (16, 3, 1)
    minute(pool, noon + timedelta(minutes=30))
    days.count_days(end + timedelta(minutes=20))
    row.refresh_from_db()
    assert (row.minutes, row.down, row.failing) == (17, 3, 1)
    assert not PoolDay.objects.exclude(pool=pool).exists()  # other pools stand on no page


def test_a_process_that_counted_too_late_counts_nothing(
    installation: Installation, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_page(acme)
    (pool,) = pools_behind(acme)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
    minute(pool, noon)
    end = noon + timedelta(minutes=20)
    real = days._minutes

    def slowly(*args: Any) -> Any:
        found = real(*args)
        monkeypatch.setattr(days, "_minutes", real)
        days.count_days(end)  # the other process, meanwhile
        return found

    monkeypatch.setattr(days, "_minutes", slowly)
    days.count_days(end)
    assert PoolDay.objects.get(day=noon.date()).minutes == 1


def test_a_day_without_data_is_unknown_and_little_data_is_not_well(installation: Installation, acme: Actor) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    day(pool, 1)
    day(pool, 2, 600)
    day(pool, 3, down=14)
    day(pool, 4, failing=150)
    day(pool, 5, 10, down=5)
    day(pool, 7, 1200)
    found = checkout(page).days
    assert len(found) == 90
    by_back = {back: found[-1 - back] for back in range(90)}
    states = [by_back[back].state for back in range(1, 9)]
    assert states == [FINE, UNKNOWN, MAJOR, DEGRADED, MAJOR, UNKNOWN, FINE, UNKNOWN]
    assert {each.state for back, each in by_back.items() if back > 8} == {UNKNOWN}
    assert by_back[1].words == "nothing wrong"
    assert by_back[2].words == "nothing wrong seen, measured for 10 h"
    assert by_back[3].words == "out for 14 min"
    assert by_back[4].words == "errors for 2 h"
    assert by_back[6].words == "not measured"
    assert checkout(page).worked == "99.69"
    assert checkout(page).bad_days[0].words == "out for 14 min"


def test_a_share_is_never_rounded_up_to_all_and_nothing_measured_has_none(
    installation: Installation, acme: Actor
) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    assert checkout(page).worked == ""
    for back in range(1, 80):
        day(pool, back)
    assert checkout(page).worked == "100"
    PoolDay.objects.filter(pk=PoolDay.objects.earliest("day").pk).update(down=1)
    assert checkout(page).worked == "99.99"


def test_a_component_of_two_pools_is_measured_as_far_as_both_are_and_out_where_both_were(
    installation: Installation, acme: Actor
) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    other = make_pool(acme, "other", "10.1.0.1")
    Route.objects.get(account=acme.account, name="shop").pools.create(pool=other, weight=1)
    day(pool, 1)
    day(pool, 2)
    day(other, 2)
    day(pool, 3, down=9)
    day(other, 3)
    day(pool, 4, down=9)
    day(other, 4, down=3)
    found = checkout(page).days
    assert [found[-1 - back].state for back in (1, 2, 3, 4)] == [UNKNOWN, FINE, PARTIAL, MAJOR]


def test_what_was_reported_counts_on_its_days_also_where_nothing_was_measured(
    installation: Installation, acme: Actor
) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    day(pool, 2)
    spec = FIRST | {"impact": "partial_outage", "status": "resolved", "begins_at": at(days=-3)}
    services.open_incident(actor=acme, page_id=page.pk, spec=spec)
    Incident.objects.update(resolved_at=now() - timedelta(days=2))
    found = checkout(page).days
    assert [found[-1 - back].state for back in (1, 2, 3, 4)] == [UNKNOWN, PARTIAL, PARTIAL, UNKNOWN]
    assert found[-4].words == "partial outage reported, not measured"
