"""An environment in which the region us (limit 10) is offered 19.9/s and sends 9.9 to eu, 98 ms away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from apps.core.clock import now
from apps.fleet.models import RegionLatency
from apps.observe.collect.buckets import SHORT, start_of
from apps.observe.collect.recorder import Recorder
from tests.apps.observe_env import Env, make_env, reading, row

SECONDS = 20


def make_spilling() -> Env:
    """The traffic ended a moment ago, with a whole bucket; needs the fixture `live_redis`. eu has 2/s of its own."""
    env = make_env()
    start = datetime.fromtimestamp(start_of(now().timestamp(), SHORT) - SECONDS - SHORT, UTC)
    eu, us = env.regions
    RegionLatency.objects.create(from_region=us, to_region=eu, set_ms=98)
    pool = f"pool-{env.pools['acme'].pk}"
    eu_1, _, us_1, _ = env.nodes
    recorder = Recorder()
    for second in range(0, SECONDS + 1, 2):
        at, spilled = start + timedelta(seconds=second), 99 * second // 10
        home = (
            row("backend", pool, 10 * second),
            row("flow", f"{pool}/to/rgn-{eu.pk}/rate", spilled, parent_id=pool),
        )
        away = (
            row("backend", pool, 2 * second + spilled),
            row("flow", f"{pool}/from/rgn-{us.pk}/-", spilled, parent_id=pool),
        )
        recorder.gather([reading(us_1, at, home), reading(eu_1, at, away)])
    recorder.flush()
    return env
