"""Pushes by many workers: one at a time per fleet, and what a dead one left behind is found."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from apps.compiler.bundle import Bundle
from apps.compiler.compile import Compilation
from apps.compiler.model.fleet import Snapshot
from apps.core.clock import database_now
from apps.definitions.models import Route
from apps.fleet.models import Fleet
from apps.rollouts import services
from apps.rollouts.models import FleetSync, Revision, Rollout
from apps.rollouts.push import claims, compiling, lifecycle, reconciling
from apps.rollouts.push.claims import ClaimLost
from tests.apps.at_once import at_once
from tests.apps.pushed import Env, add_route

pytestmark = pytest.mark.both_engines


def expire(env: Env) -> None:
    FleetSync.objects.filter(fleet=env.fleet).update(claimed_until=database_now() - timedelta(seconds=1))


def test_a_claimed_fleet_is_left_to_its_holder(env: Env) -> None:
    claim = claims.take(env.fleet.pk)
    assert claim is not None
    assert not services.reconcile_fleet(fleet_id=env.fleet.pk)
    assert not Revision.objects.exists()
    assert services.fleets_to_sweep() == []
    claims.release(claim)
    assert services.reconcile_fleet(fleet_id=env.fleet.pk)
    assert Revision.objects.exists()


@pytest.mark.slow(reason="many threads wait for one another")
@pytest.mark.django_db(transaction=True)  # workers are threads with connections of their own
def test_many_workers_at_once_make_one_revision(env: Env) -> None:
    at_once(*[lambda: services.reconcile_fleet(fleet_id=env.fleet.pk)] * 6)
    assert (Revision.objects.count(), Rollout.objects.count()) == (1, 1)
    assert [node.pushes for node in env.memory] == [1, 1]


def test_what_a_dead_worker_left_is_finished_after_its_lease(env: Env) -> None:
    claim = claims.take(env.fleet.pk)
    assert claim is not None
    compiling.compile_fleet(claim)  # and here it dies, between compiling and pushing
    assert services.fleets_to_sweep() == []
    expire(env)
    assert services.fleets_to_sweep() == [env.fleet.pk]
    env.reconcile()
    assert Rollout.objects.get().state == "done"
    assert env.memory[0].digest == env.memory[1].digest == Revision.objects.get().digest


def test_a_revision_names_who_made_what_is_in_it_and_who_came_too_late_is_named_by_the_next(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.reconcile()
    compile_one, alice, bob = compiling._compile, replace(env.operator, name="alice"), replace(env.operator, name="bob")

    def while_alice_writes(fleet_id: int, snapshot: Snapshot) -> Compilation[Bundle]:
        if not Route.objects.filter(name="late").exists():
            add_route(alice, "late", "/late")
        return compile_one(fleet_id, snapshot)

    monkeypatch.setattr(compiling, "_compile", while_alice_writes)
    add_route(bob, "early", "/early")
    env.reconcile()
    made = Revision.objects.order_by("number").values_list("actor", "summary")
    assert [(actor, "/late" in summary) for actor, summary in made[1:]] == [("bob", False), ("alice", True)]


def test_a_worker_that_died_in_the_middle_of_a_push_is_resumed(env: Env) -> None:
    claim = claims.take(env.fleet.pk)
    assert claim is not None
    compiling.compile_fleet(claim)
    rollout = Rollout.objects.get()
    from apps.rollouts.push.pushing import push_one

    jobs, plans = reconciling.jobs_of(rollout, rollout.revision, None)
    lifecycle.note_start(rollout, [job.node_id for job in jobs])
    push_one(jobs[0], plans)  # one node took it; nobody wrote that down
    expire(env)
    env.reconcile()
    rollout.refresh_from_db()
    assert rollout.state == "done"
    assert [node.pushes for node in env.memory] == [1, 1]


def test_a_worker_that_lost_its_lease_writes_nothing(env: Env) -> None:
    slow = claims.take(env.fleet.pk)
    assert slow is not None
    expire(env)
    env.reconcile()
    add_route(env.operator, "news", "/news")
    with pytest.raises(ClaimLost):
        compiling.compile_fleet(slow)
    with pytest.raises(ClaimLost):
        claims.renew(slow)
    assert Revision.objects.count() == 1


def test_a_worker_that_kept_its_lease_writes(env: Env) -> None:
    claim = claims.take(env.fleet.pk)
    assert claim is not None
    claims.renew(claim)
    compiling.compile_fleet(claim)
    assert Revision.objects.count() == 1


def test_a_late_worker_gives_nothing_back_that_is_not_its_own(env: Env) -> None:
    slow = claims.take(env.fleet.pk)
    assert slow is not None
    expire(env)
    quick = claims.take(env.fleet.pk)
    claims.release(slow)
    assert quick is not None
    assert claims.take(env.fleet.pk) is None


def test_a_lost_wake_up_is_found_by_the_sweep(env: Env) -> None:
    assert services.fleets_to_sweep() == [env.fleet.pk]
    env.reconcile()
    assert services.fleets_to_sweep() == []
    add_route(env.operator, "news", "/news")
    assert services.fleets_to_sweep() == [env.fleet.pk]


def test_an_old_plan_is_refused_by_the_node_when_a_newer_one_is_there(env: Env) -> None:
    env.reconcile()
    add_route(env.operator, "news", "/news")
    slow = claims.take(env.fleet.pk)
    assert slow is not None
    compiling.compile_fleet(slow)
    old = Rollout.objects.latest("id")
    jobs, plans = reconciling.jobs_of(old, old.revision, None)
    expire(env)
    add_route(env.operator, "more", "/more")
    env.reconcile()
    newest = Revision.objects.latest("number").digest
    with pytest.raises(ClaimLost):
        reconciling.run(slow, old, jobs, plans)
    assert {node.digest for node in env.memory} == {newest}
    assert Fleet.objects.get(pk=env.fleet.pk).desired_generation == env.memory[0].generation


def test_the_same_plan_without_a_newer_one_is_taken(env: Env) -> None:
    env.reconcile()
    add_route(env.operator, "news", "/news")
    slow = claims.take(env.fleet.pk)
    assert slow is not None
    compiling.compile_fleet(slow)
    old = Rollout.objects.latest("id")
    jobs, plans = reconciling.jobs_of(old, old.revision, None)
    assert reconciling.run(slow, old, jobs, plans) == []
    assert {node.digest for node in env.memory} == {old.revision.digest}
