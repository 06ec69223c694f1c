"""Who has one change after the other rejected keeps nobody else's changes from the nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.fleet.models import Region
from apps.fleet.services import request_push
from apps.observe.models import NodeReport
from apps.rollouts import selectors, services
from apps.rollouts.culprits import quarantine
from apps.rollouts.models import FleetSync, Quarantine, Rollout
from tests.apps.pushed import Env, add_route, put_env, remembered, remove_route
from tests.apps.test_rollouts_quarantine import ENV, NO, customer, everybody_writes, refuses, set_refusals


@pytest.fixture
def env(db: None) -> Env:
    """Nodes that run what all of the customers have, which is nothing yet."""
    return put_env(ENV)


def with_many_pools(env: Env) -> None:
    """Two customers, one of whom has five more pools; nodes run all of it."""
    everybody_writes(env, 2)
    env.reconcile()
    owner = Account.objects.get(name=customer(0))
    pools = [Pool(name=f"p{number}", account=owner, protocol="http", balance="leastconn") for number in range(5)]
    Pool.objects.bulk_create(pools)
    for pool in pools:
        pool.backends.create(account=owner, region=Region.objects.get())
    request_push([env.fleet])
    env.reconcile()


MANY_POOLS = remembered(with_many_pools, ENV)


@pytest.fixture
def restless(db: None, monkeypatch: pytest.MonkeyPatch) -> Env:
    """A customer who changes the next pool to what nodes refuse whenever one is refused, and another one who waits."""
    env = put_env(MANY_POOLS)
    set_refusals(env, refuses("balance random", names=True))
    left, put = list(Pool.objects.filter(name__regex="^p[0-9]$").order_by("name")), quarantine.put

    def spoil() -> None:
        if left:
            Pool.objects.filter(pk=left.pop().pk).update(balance="random")
            request_push([env.fleet])

    def put_and_spoil(**said: Any) -> None:
        put(**said)
        spoil()

    monkeypatch.setattr(quarantine, "put", put_and_spoil)
    spoil()
    Pool.objects.filter(account__name=customer(1)).update(balance="roundrobin")
    return env


@pytest.mark.slow(reason="a dozen rollouts after one another")
def test_who_is_refused_again_and_again_holds_up_nobody_else(restless: Env) -> None:
    restless.reconcile()
    rollouts = Rollout.objects.order_by("id").values_list("state", "revision__summary")
    ended = [state for state, summary in rollouts if customer(1) in summary or state in ("rolled_back", "superseded")]
    assert Quarantine.objects.count() == 5
    assert ended.index("done") <= 2


@pytest.mark.exhaustive
@pytest.mark.slow(reason="a dozen rollouts after one another")
def test_control_without_that_the_others_wait_for_each_of_its_objects(
    restless: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "_changed_since", lambda *_: {})
    with pytest.raises(AssertionError):
        test_who_is_refused_again_and_again_holds_up_nobody_else(restless)


@pytest.mark.slow(reason="a dozen rollouts after one another")
def test_what_waited_for_the_others_goes_live_after_them(restless: Env) -> None:
    set_refusals(restless, lambda bundle: NO if b"balance random" in bundle.files["haproxy.cfg"] else None)
    restless.reconcile()
    assert {each["code"] for each in FleetSync.objects.get().left_out} == {"refused_by_node"}
    assert selectors.is_live(restless.fleet.pk, restless.desired())


def when_quarantined(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Have its owner do something as soon as an object is in quarantine, before the rest of the changes is there."""
    put = quarantine.put

    def put_and_do(**said: Any) -> None:
        put(**said)
        do()

    monkeypatch.setattr(quarantine, "put", put_and_do)


def test_what_is_put_right_before_the_others_are_there_goes_live_after_them(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_refusals(env, refuses("roundrobin", names=True))
    env.change_pool("blue", "roundrobin")
    when_quarantined(monkeypatch, lambda: env.change_pool("blue", "source"))
    env.reconcile()
    assert not Quarantine.objects.exists()
    assert b"balance source" in env.memory[0].files["haproxy.cfg"]


def test_what_is_deleted_before_the_others_are_there_leaves_quarantine(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_refusals(env, refuses("/poison", names=True))
    add_route(env.operator, "bad", "/poison")
    when_quarantined(monkeypatch, lambda: remove_route(env.operator, "bad"))
    env.reconcile()
    assert not Quarantine.objects.exists()


def test_a_fleet_that_is_held_wants_another_haproxy_tried_once(env: Env) -> None:
    set_refusals(env, refuses("roundrobin", names=True))
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    good = FleetSync.objects.get().last_good_id
    assert good is not None
    services.roll_back(actor=env.operator, revision_id=good, reason="a look")
    env.reconcile()
    set_refusals(env, None)
    NodeReport.objects.update(haproxy_version="3.0.1", seen_at=now())
    services.fleets_to_sweep()
    desired = env.desired()
    services.fleets_to_sweep()
    assert env.desired() == desired
    services.resume(actor=env.operator, fleet_id=env.fleet.pk, reason="go on")
    env.reconcile()
    assert not Quarantine.objects.exists()
    assert b"balance roundrobin" in env.memory[0].files["haproxy.cfg"]
