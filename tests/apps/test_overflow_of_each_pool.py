"""Verdicts about overflow are a pool's: the room of another pool hides nothing, and a time belongs to its cause."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from apps.core.clock import now
from apps.definitions.models import Backend, Server
from apps.definitions.services import drain_region
from apps.fleet.models import Region
from apps.observe.models import Condition
from apps.overflow import facts, reasons, selectors
from apps.overflow.flows import Flow, RegionUse, WhatIf
from apps.web.overflow.words import use_kind, use_note, use_words
from tests.apps.observe_env import Env
from tests.apps.overflow_env import make_spilling
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(live_redis: object, still_clock: None) -> Env:
    """us (limit 10) is offered 19.9/s of acme, eu serves 2 and what comes; globex rests, in both, without a limit."""
    env = make_spilling()
    pool = env.pools["globex"]
    Backend.objects.filter(pool=pool).update(limit_kind="none", limit_value=0)
    backend = Backend.objects.create(account=pool.account, pool=pool, region=env.regions[0], limit_kind="none")
    Server.objects.create(account=pool.account, backend=backend, name="idle", address="10.0.0.9", port=9000)
    return env


def of(flow: Flow, name: str) -> RegionUse:
    """A region's row."""
    return next(use for use in flow.regions if use.name == name)


def drained(env: Env, name: str) -> WhatIf:
    """What if it were?"""
    return WhatIf(drained_regions=tuple(f"rgn-{region.pk}" for region in env.regions if region.name == name))


def test_a_region_with_one_unlimited_pool_shows_the_fullest_pool_and_how_many_are_full(env: Env) -> None:
    us = of(selectors.flow_of(env.operator, None), "us")
    assert (us.capacity_rps, us.unlimited, us.pools_full, len(us.pools)) == (None, False, 1, 2)
    assert us.fullest is not None
    assert use_words(us) == "acme/acme-web 10 of 10 requests/s (100 %); 1 of 2 pools at the limit"
    assert (use_note(us), use_kind(us)) == ("1 of 2 pools at the limit", "warn")


def test_a_drain_that_one_pool_has_no_room_for_does_not_fit(env: Env) -> None:
    page = " ".join(client_of(env.operator).get("/regions/us/drain").content.decode().split())
    assert "Safe at current traffic." not in page
    assert re.search(r"eu would be at 2[12][\d.]* of 10 requests/s of acme/acme-web\.", page)
    _, _, words = selectors.what_if(env.operator, None, drained(env, "us"))
    assert not any("fits" in sentence for sentence in words)
    assert any("over its limit for acme/acme-web" in sentence for sentence in words)


def test_control_judging_the_sum_of_all_pools_says_that_it_fits(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasons, "of_each_pool", lambda uses: [("", list(uses))])
    assert b"Safe at current traffic." in client_of(env.operator).get("/regions/us/drain").content


def test_a_drain_that_every_pool_has_room_for_fits(env: Env) -> None:
    Backend.objects.filter(pool=env.pools["acme"]).update(limit_value=100)
    assert b"Safe at current traffic." in client_of(env.operator).get("/regions/us/drain").content
    _, _, words = selectors.what_if(env.operator, None, drained(env, "us"))
    assert "Every pool fits." in words


def test_what_is_not_known_is_not_said_to_fit(env: Env) -> None:
    Backend.objects.filter(pool=env.pools["acme"]).update(limit_kind="connections", limit_value=100)
    _, _, words = selectors.what_if(env.operator, None, drained(env, "us"))
    assert any(sentence.startswith("It is unknown whether eu has capacity for acme/acme-web") for sentence in words)


def test_a_pool_without_servers_in_a_region_has_no_usable_server_there(env: Env) -> None:
    Server.objects.filter(backend__pool=env.pools["acme"], backend__region__name="us").delete()
    us = of(selectors.flow_of(env.operator, env.pools["acme"]), "us")
    assert not us.healthy
    assert us.sentences[0].startswith("us has no usable server")
    whole = of(selectors.flow_of(env.operator, None), "us")
    assert (whole.healthy, whole.pools_down) == (True, 1)
    assert whole.pools[0].pool == "acme/acme-web"  # worst first
    assert b"1 of 2 pools down" in client_of(env.operator).get("/regions").content


def test_drained_is_said_since_the_drain_and_not_since_the_overflow(env: Env) -> None:
    drain_region(actor=env.operator, region="us", drained=True, reason="new switches")
    began = now() - timedelta(hours=3)
    Region.objects.filter(name="us").update(drained_at=began)
    for pool in (None, env.pools["acme"]):
        said = of(selectors.flow_of(env.operator, pool), "us").sentences
        assert [f"us is drained since {began:%H:%M}" in sentence for sentence in said] == [True]
    drain_region(actor=env.operator, region="us", drained=False, reason="they work")
    assert Region.objects.get(name="us").drained_at is None


def test_down_is_said_since_the_last_server_failed(env: Env) -> None:
    began = now() - timedelta(hours=2)
    servers = Server.objects.filter(backend__pool=env.pools["acme"], backend__region__name="us")
    for number, server in enumerate(servers):
        since = began - timedelta(minutes=7 * number)
        kind = {"object_kind": "server", "type": "Up", "reason": "CheckFails", "message": "Said by a test."}
        Condition.objects.create(object_id=server.pk, status=False, since=since, **kind)
    us = of(selectors.flow_of(env.operator, env.pools["acme"]), "us")
    assert us.sentences[0].startswith(f"us has no usable server since {began:%H:%M};")


def test_control_the_start_of_overflow_is_another_time(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    drain_region(actor=env.operator, region="us", drained=True, reason="new switches")
    began = now() - timedelta(hours=3)
    Region.objects.filter(name="us").update(drained_at=began)
    found = facts.gather(env.operator, env.pools["acme"], None)
    key = f"pool-{env.pools['acme'].pk}", f"rgn-{env.regions[1].pk}"
    since = selectors.causes_since(found)
    assert since[*key, "drained"] == began
    assert since[*key, "rate"] > began  # what was said beside "is drained" before


def test_a_time_of_another_day_is_said_with_its_day(env: Env) -> None:
    long_ago = now() - timedelta(days=3)
    assert reasons.clock(long_ago, now()) == f" since {long_ago:%d %b %H:%M}"
    assert reasons.clock(None, now()) == ""
