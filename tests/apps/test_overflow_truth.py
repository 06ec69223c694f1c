"""What overflow says must be true of each pool by itself, of what waits, of what is down, and of since when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from apps.compiler.limits import usable
from apps.core.clock import now
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.models import Backend, Pool, Server
from apps.definitions.services import set_limit
from apps.definitions.serving import usable as usable_rows
from apps.definitions.serving import usable_in
from apps.fleet.models import Region
from apps.observe.collect.buckets import LONG, SHORT
from apps.observe.evaluate import limit_use
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.families import pools as pool_families
from apps.observe.models import Condition, Sample
from apps.observe.services import store_verdicts
from apps.observe.show.flows import overflowing_since
from apps.overflow import reasons, selectors
from apps.overflow.facts import gather
from apps.overflow.flows import Flow, WhatIf
from apps.overflow.preview import overloads
from tests.apps.observe_env import Env
from tests.apps.overflow_env import make_spilling

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(live_redis: object, still_clock: None) -> Env:
    """us (limit 10) is offered 19.9/s, eu (limit 10) serves 2 of its own and what comes."""
    return make_spilling()


def lower(env: Env) -> partial[Backend]:
    """A limit of 4 in us: more goes to eu than it has room for."""
    return partial(set_limit, actor=env.operator, pool_id=env.pools["acme"].pk, region="us", value=4)


def add_idle_pool(env: Env, kind: str, value: int) -> None:
    """The pool of globex gets servers in eu, and no traffic."""
    pool = env.pools["globex"]
    backend = Backend.objects.create(
        account=pool.account, pool=pool, region=env.regions[0], limit_kind=kind, limit_value=value
    )
    Server.objects.create(account=pool.account, backend=backend, name="idle", address="10.0.0.9", port=9000)


def set_server_conditions(env: Env, *, down: str) -> None:
    """Servers of acme in the region `down` fail their checks; all others pass."""
    for server in Server.objects.select_related("backend__region"):
        fails = server.backend.pool_id == env.pools["acme"].pk and server.backend.region.name == down
        reason = Reason.CHECK_FAILS if fails else Reason.CHECK_PASSES
        store_verdicts([Verdict("server", server.pk, Type.UP, not fails, reason, "Said by a test.")], now())


def kept_in_us(flow: Flow) -> list[int]:
    """What us serves of its own."""
    return [round(use.local_rps) for use in flow.regions if use.name == "us"]


@pytest.mark.parametrize(("kind", "value"), [("rate", 500), ("none", 0)])
def test_the_room_of_another_pool_hides_no_overload(env: Env, kind: str, value: int) -> None:
    add_idle_pool(env, kind, value)
    found = overloads(env.operator, lower(env))
    assert any(text.startswith("eu would be at ") and text.endswith(" of acme-web.") for text in found)


def test_what_waits_for_a_slot_is_not_called_refused(env: Env) -> None:
    Pool.objects.filter(pk=env.pools["acme"].pk).update(when_full="queue")
    flow = selectors.predicted(env.operator, env.pools["acme"])
    (us,) = (use for use in flow.regions if use.name == "us")
    assert (flow.rejected_rps, us.rejected_rps) == (0, 0)
    assert us.queued_rps == pytest.approx(1.9, abs=0.2)
    assert us.demand_rps == pytest.approx(19.9, abs=0.2)
    assert "wait for a free slot" in us.sentences[0]
    assert "refused" not in us.sentences[0]


def test_a_change_that_makes_more_wait_is_warned_of(env: Env) -> None:
    before = selectors.predicted(env.operator, env.pools["acme"]).regions
    after = [replace(use, queued_rps=3.0) if use.name == "us" else use for use in before]
    assert reasons.overloads(before, after) == ("3 more requests/s would wait for a free slot.",)


def test_a_pool_without_servers_up_is_down_though_another_pool_is_up_there(env: Env) -> None:
    set_server_conditions(env, down="us")
    assert kept_in_us(selectors.predicted(env.operator, env.pools["acme"])) == [0]
    assert kept_in_us(selectors.predicted(env.operator, None)) == [0]


def test_traffic_that_leaves_failing_servers_is_not_said_to_be_drained(env: Env) -> None:
    set_server_conditions(env, down="us")
    Backend.objects.filter(region__name="eu").update(limit_value=100)
    (lane,) = selectors.predicted(env.operator, env.pools["acme"]).lanes
    assert (lane.source, lane.reason) == ("us", "down")


def test_another_limit_does_not_open_a_drained_region(env: Env) -> None:
    Region.objects.filter(name="eu").update(drained=True)
    eu = f"rgn-{env.regions[0].pk}"
    _, then, _ = selectors.what_if(env.operator, env.pools["acme"], WhatIf(limits={eu: 50}))
    assert [use.served_rps for use in then.regions if use.region_id == eu] == [0]


def spill_for(env: Env, hours: int) -> str:
    """us sends traffic away for so long, until now; the name of the pool."""
    pool, begin = f"pool-{env.pools['acme'].pk}", now() - timedelta(hours=hours)
    flow = {"node": env.nodes[2], "kind": "flow", "parent_id": pool, "requests": 99}
    name = f"{pool}/to/rgn-{env.regions[0].pk}/rate"
    for resolution, seconds in ((SHORT, min(hours, 2) * 3600), (LONG, hours * 3600)):
        first = hours * 3600 - seconds
        rows = [
            Sample(at=begin + timedelta(seconds=at), resolution=resolution, object_id=name, seconds=resolution, **flow)
            for at in range(first, hours * 3600, resolution)
        ]
        Sample.objects.bulk_create(rows, ignore_conflicts=True)
    return pool


def test_overflow_that_began_hours_ago_did_not_begin_an_hour_ago(env: Env) -> None:
    pool = spill_for(env, 3)
    since = overflowing_since([pool])[pool, f"rgn-{env.regions[1].pk}", "rate"]
    assert abs(now() - timedelta(hours=3) - since) <= timedelta(minutes=2)


def test_overflow_of_more_than_a_day_has_no_time_of_day(env: Env) -> None:
    assert overflowing_since([spill_for(env, 26)]) == {}


# Of two: how each stands besides what `make_env` made of it, and for how many servers nodes count them.
STANDINGS: list[tuple[dict[str, object], dict[str, object], int]] = [
    ({}, {}, 2),
    ({}, {"state": "drain"}, 1),
    ({}, {"state": "maintenance"}, 1),
    ({}, {"leaving": True}, 1),
    ({}, {"weight": 0}, 1),
    ({}, {"backup": True}, 1),
    ({"backup": True}, {"state": "drain"}, 1),
    ({"backup": True}, {"backup": True}, 2),
    ({"backup": True, "leaving": True}, {"weight": 0}, 0),
]


@pytest.mark.parametrize(("first", "second", "counted"), STANDINGS)
def test_whoever_says_a_limit_per_server_counts_the_servers_that_nodes_count(
    env: Env, first: dict[str, object], second: dict[str, object], counted: int
) -> None:
    eu, us = env.regions
    pool = env.pools["acme"]
    Backend.objects.filter(pool=pool).update(limit_scope="server")
    servers = Server.objects.filter(backend__pool=pool)
    for name, standing in (("us-1", first), ("us-2", second)):
        servers.filter(name=name).update(**standing)
    here, away = (
        next(each for each in freeze(region.fleets.get().pk)[0].pools if each.id == f"pool-{pool.pk}")
        for region in (us, eu)
    )
    assert usable(here.servers) == counted
    (share,) = (each for each in away.elsewhere if each.region_id == f"rgn-{us.pk}")
    assert share.ready_servers == counted

    assert gather(env.operator, pool, None).pools[0].shares[f"rgn-{us.pk}"].rps == 10 * counted
    metrics = {each.name: each for each in pool_families.families({}, {})}
    samples = metrics["spillway_limit_requests_per_second"].samples
    limits = {each.labels["region"]: each.value for each in samples if each.labels["pool"] == pool.name}
    assert limits == {"eu": 20, "us": 10 * counted}
    assert usable_in(Backend.objects.get(pool=pool, region=us).pk) == counted
    of_rows = {row.pk for row in servers if row.usable}
    assert of_rows == set(servers.filter(usable_rows()).values_list("pk", flat=True))


def test_a_limit_per_server_is_always_reached_with_the_servers_that_nodes_count(env: Env) -> None:
    pool, (_, us) = env.pools["acme"], env.regions
    Backend.objects.filter(pool=pool, region=us).update(limit_scope="server")
    Server.objects.filter(backend__pool=pool, name="us-2").update(leaving=True)
    minutes = [now() - timedelta(minutes=minute) for minute in range(1, 50)]
    Sample.objects.all().delete()
    name, node = f"pool-{pool.pk}", env.nodes[2]
    Sample.objects.bulk_create(
        Sample(at=at, resolution=LONG, node=node, kind="backend", object_id=name, seconds=60, requests=600)
        for at in minutes
    )
    (verdict,) = (each for each in limit_use.evaluate_all(now()) if each.object_id == pool.pk)
    assert verdict.message == "us has been at its limit of 10 requests/s for most of the last hour."


def test_a_pool_is_not_down_where_its_backups_are_up(env: Env) -> None:
    set_server_conditions(env, down="us")
    servers = Server.objects.filter(backend__pool=env.pools["acme"], backend__region=env.regions[1])
    assert gather(env.operator, env.pools["acme"], None).down
    spare = servers.get(name="us-2")
    spare.backup = True
    spare.save()
    store_verdicts([Verdict("server", spare.pk, Type.UP, True, Reason.CHECK_PASSES, "Said by a test.")], now())
    assert not gather(env.operator, env.pools["acme"], None).down


def test_a_verdict_on_a_limit_ends_with_the_limit(env: Env) -> None:
    pool = env.pools["acme"]
    always = Verdict("pool", pool.pk, Type.LIMIT_FITS, False, Reason.LIMIT_ALWAYS_REACHED, "Said by a test.")
    store_verdicts([always], now())
    Backend.objects.filter(pool=pool).update(limit_kind="none", limit_value=0)
    store_verdicts(limit_use.evaluate_all(now()), now())
    kept = Condition.objects.get(object_kind="pool", object_id=pool.pk, type="LimitFits")
    assert (kept.status, kept.reason) == (None, "NotObserved")
