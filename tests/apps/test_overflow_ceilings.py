"""Overflow says what an account's ceiling refuses, and does not take it for served or for a lack of room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.core.clock import now
from apps.observe.collect.buckets import SHORT, start_of
from apps.observe.collect.recorder import Recorder
from apps.overflow import selectors
from tests.apps.observe_env import Env, make_env, reading, row

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(live_redis: object) -> Env:
    """us is asked 10/s for acme's pool and refuses 4/s of them, 3/s because there are too many at once."""
    made = make_env()
    start = datetime.fromtimestamp(start_of(now().timestamp(), SHORT) - 2 * SHORT, UTC)
    _, us = made.regions
    pool = f"pool-{made.pools['acme'].pk}"
    recorder = Recorder()
    for second in range(0, SHORT + 1, 2):
        refused = f"{pool}/refuse/rgn-{us.pk}/ceiling"
        flows = (("", 3 * second), ("-rate", second))
        rows = (row("backend", pool, 10 * second), *(row("flow", refused + end, n, parent_id=pool) for end, n in flows))
        recorder.gather([reading(made.nodes[2], start + timedelta(seconds=second), rows)])
    recorder.flush()
    return made


def test_what_the_ceiling_refuses_is_said_and_is_neither_served_nor_without_room(env: Env) -> None:
    flow = selectors.flow_of(env.operator, env.pools["acme"])
    us = next(use for use in flow.regions if use.region_id == f"rgn-{env.regions[1].pk}")
    rates = (us.demand_rps, us.served_rps, us.rejected_rps, us.capped_rps)
    assert rates == pytest.approx((10, 6, 4, 4), rel=0.05)
    (sentence,) = us.sentences
    assert "3/s are rejected because the account has used its share of a node's connections" in sentence
    assert "1/s are rejected because the account has reached its requests per second on a node" in sentence
    assert "no room" not in sentence
