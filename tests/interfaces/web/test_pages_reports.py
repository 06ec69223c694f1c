"""The report of a month: each number by itself, unknown where nothing was measured, and nobody else's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from apps.alerts.models import Alert
from apps.capacity.models import Run
from apps.core import clock
from apps.definitions.models import Pool
from apps.observe.models import PoolTally, Sample
from tests.apps.observe_env import Env, make_env
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Env:
    """In the afternoon of a day in November."""
    monkeypatch.setattr(clock, "now", lambda: NOW)
    for module in ("apps.web.reports.month", "apps.web.reports.views", "apps.observe.show.months"):
        monkeypatch.setattr(f"{module}.now", lambda: NOW)
    return make_env()


def rows_of(client: Client, month: str = "2026-11") -> dict[tuple[str, str], Any]:
    found = client.get(f"/reports/{month}").context["pools"]
    return {(row.pool.name, row.region.name): row for row in found}


def sample(env: Env, node: int, minute: int, kind: str, object_id: str, parent: str = "", **counts: Any) -> None:
    at = NOW - timedelta(days=2) + timedelta(minutes=minute)
    Sample.objects.create(
        at=at,
        resolution=60,
        seconds=60,
        node=env.nodes[node],
        kind=kind,
        object_id=object_id,
        parent_id=parent,
        **counts,
    )


@pytest.fixture
def pool(env: Env) -> Pool:
    """Of acme."""
    return next(each for each in env.pools.values() if each.account == env.acme.account)


def key_of(env: Env, pool: Pool, node: int = 0) -> tuple[str, str]:
    return pool.name, env.nodes[node].fleet.region.name


def test_what_was_not_measured_is_unknown_and_not_zero(env: Env, pool: Pool) -> None:
    row = rows_of(client_of(env.acme))[key_of(env, pool)]
    assert (row.served, row.overflow, row.rejected, row.peak, row.used) == ("unknown",) * 5
    assert row.capacity is None
    assert row.known == "0 %"


def test_traffic_is_told_by_pool_and_region(env: Env, pool: Pool) -> None:
    name, region = f"pool-{pool.pk}", env.nodes[0].fleet.region_id
    for minute, requests in ((0, 600), (1, 1200)):
        sample(env, 0, minute, "node", f"node-{env.nodes[0].pk}")
        sample(env, 0, minute, "backend", name, requests=requests)
    sample(env, 0, 1, "flow", f"{name}/to/rgn-{region}/rate", name, requests=7)  # stays in its region
    sample(env, 0, 1, "flow", f"{name}/to/rgn-{region + 1000}/rate", name, requests=300)
    sample(env, 0, 1, "flow", f"{name}/refuse/rgn-{region}/rate", name, requests=60)
    row = rows_of(client_of(env.acme))[key_of(env, pool)]
    assert (row.served, row.overflow, row.rejected) == ("1,800", "300", "60")
    assert row.peak == "26/s", "1,560 requests were wanted in the busiest minute"
    assert row.known == "< 1 %"
    Pool.objects.update(protocol="tcp")
    assert rows_of(client_of(env.acme))[key_of(env, pool)].served == "1,800 connections"


def test_a_watched_region_without_requests_has_none(env: Env, pool: Pool) -> None:
    sample(env, 0, 0, "node", f"node-{env.nodes[0].pk}")
    row = rows_of(client_of(env.acme))[key_of(env, pool)]
    assert (row.served, row.rejected, row.peak) == ("0", "0", "0/s")


def test_the_peak_is_compared_with_the_capacity_that_a_test_of_the_month_found(env: Env, pool: Pool) -> None:
    sample(env, 0, 0, "node", f"node-{env.nodes[0].pk}")
    sample(env, 0, 0, "backend", f"pool-{pool.pk}", requests=1080)
    found = {"capacity": 20.0, "kind": "search", "message": "", "limited_by": "objective"}
    plan, ended = {"target": {"server": ""}}, NOW - timedelta(days=3)
    where = {"account": pool.account, "pool": pool, "region": env.nodes[0].fleet.region}
    run = Run.objects.create(**where, label="x", plan=plan, state="done", actor="x", result=found, ended_at=ended)
    row = rows_of(client_of(env.acme))[key_of(env, pool)]
    assert (row.capacity.capacity, row.used, row.kind) == (20.0, "90 %", "warn")
    Run.objects.filter(pk=run.pk).update(ended_at=NOW - timedelta(days=40))
    assert rows_of(client_of(env.acme))[key_of(env, pool)].capacity is None


def test_an_objective_is_told_with_how_much_of_the_month_is_known(env: Env, pool: Pool) -> None:
    Pool.objects.filter(pk=pool.pk).update(objective={"availability": 99.9})
    at = datetime(2026, 11, 10, tzinfo=UTC)
    PoolTally.objects.create(pool=pool, at=at, whole_day=True, minutes=1440, total=10_000, failed=25)
    PoolTally.objects.create(pool=pool, at=at - timedelta(days=20), whole_day=True, minutes=1440, total=5, failed=5)
    (row,) = client_of(env.acme).get("/reports/2026-11").context["objectives"]
    assert (row.reached, row.missed, row.kind, row.known) == ("99.75 %", "25 of 10,000", "bad", "4 %")
    PoolTally.objects.filter(at=at).update(total=300_000, failed=1)
    (row,) = client_of(env.acme).get("/reports/2026-11").context["objectives"]
    assert (row.reached, row.missed) == ("99.999 %", "1 of 300,000"), "nearly all is not all"
    (row,) = client_of(env.acme).get("/reports/2026-09").context["objectives"]
    assert (row.reached, row.missed, row.known) == ("unknown", "unknown", "0 %")


def test_incidents_of_the_month_are_listed_with_how_long_they_lasted(env: Env) -> None:
    begin = NOW - timedelta(days=1)
    Alert.objects.create(account=env.acme.account, title="Shop is down", severity="page", since=begin, opened_at=begin,
                         resolved_at=begin + timedelta(minutes=17))  # fmt: skip
    Alert.objects.create(account=env.globex.account, title="Secret of Globex", severity="page", since=begin,
                         opened_at=begin)  # fmt: skip
    page = client_of(env.acme).get("/reports/2026-11").content.decode()
    assert "Shop is down" in page
    assert "17 min" in page
    assert "Secret of Globex" not in page
    assert "Shop is down" not in client_of(env.acme).get("/reports/2026-10").content.decode()


def test_nobody_sees_the_pools_of_another_account(env: Env) -> None:
    own = {each.name for each in env.pools.values() if each.account == env.acme.account}
    assert {pool for pool, _ in rows_of(client_of(env.acme))} <= own


def test_the_newest_report_is_of_this_month_and_there_is_none_of_the_next(env: Env) -> None:
    client = client_of(env.acme)
    assert client.get("/reports")["Location"] == "/reports/2026-11"
    assert client.get("/reports/2026-12").status_code == 404
    assert client.get("/reports/2026-13").status_code == 404
    assert "October" in client.get("/reports/2026-11").content.decode()
