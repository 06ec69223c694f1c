"""Overflow says what an account's ceiling refuses, and does not take it for served or for a lack of room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.core.clock import now
from apps.drivers.proxy.contract import CounterRow
from apps.observe.collect.buckets import SHORT, start_of
from apps.observe.collect.recorder import Recorder
from apps.observe.models import Sample
from apps.overflow import selectors
from tests.apps.observe_env import Env, make_env, reading, row

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(live_redis: object) -> Env:
    """us is asked 10/s for acme's pool and refuses 4/s of them, 3/s because there are too many at once."""
    made = make_env()
    refuse(made, "acme")
    return made


def refuse(made: Env, *accounts: str) -> None:
    """The second region refuses that much of what it is asked for a pool of each account."""
    start = datetime.fromtimestamp(start_of(now().timestamp(), SHORT) - 2 * SHORT, UTC)
    recorder = Recorder()
    for second in range(0, SHORT + 1, 2):
        rows = tuple(each for name in accounts for each in counted(made, f"pool-{made.pools[name].pk}", second))
        recorder.gather([reading(made.nodes[2], start + timedelta(seconds=second), rows)])
    recorder.flush()


def counted(made: Env, pool: str, second: int) -> list[CounterRow]:
    """What its node has counted until then."""
    refused = f"{pool}/refuse/rgn-{made.regions[1].pk}/ceiling"
    flows = (("", 3 * second), ("-rate", second))
    served = row("backend", pool, 10 * second, status_2xx=6 * second, status_4xx=second, status_5xx=3 * second)
    return [served, *(row("flow", refused + end, n, parent_id=pool) for end, n in flows)]


def test_what_the_ceiling_refuses_is_said_and_is_neither_served_nor_without_room(env: Env) -> None:
    flow = selectors.flow_of(env.operator, env.pools["acme"])
    us = next(use for use in flow.regions if use.region_id == f"rgn-{env.regions[1].pk}")
    rates = (us.demand_rps, us.served_rps, us.rejected_rps, us.capped_rps)
    assert rates == pytest.approx((10, 6, 4, 4), rel=0.05)
    (sentence,) = us.sentences
    assert "3/s are rejected because the account has used its share of a node's connections" in sentence
    assert "1/s are rejected because the account has reached its requests per second on a node" in sentence
    assert "no room" not in sentence


def test_what_the_ceilings_of_several_accounts_refuse_is_added_up(live_redis: object) -> None:
    made = make_env()
    refuse(made, "acme", "globex")
    flow = selectors.flow_of(made.operator, None)
    us = next(use for use in flow.regions if use.region_id == f"rgn-{made.regions[1].pk}")
    assert (us.rejected_rps, us.capped_rps, us.rate_capped_rps) == pytest.approx((8, 8, 2), rel=0.05)


def test_what_the_ceiling_refuses_is_counted_once_in_every_sum(env: Env) -> None:
    """HAProxy counts it as a request and a response of the pool, and as a refusal."""
    pool = env.pools["acme"]
    stored = Sample.objects.get(kind="backend", object_id=f"pool-{pool.pk}", at=Sample.objects.latest("at").at)
    assert (stored.requests, stored.status_2xx) == pytest.approx((6 * stored.seconds, 6 * stored.seconds))
    assert (stored.status_4xx, stored.status_5xx) == (0, 0)
    seen = [point.demand_rps for point in selectors.history(env.operator, pool, 5) if point.demand_rps]
    assert max(seen) == pytest.approx(10, rel=0.05)
