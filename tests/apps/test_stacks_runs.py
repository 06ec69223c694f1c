"""A change travels from the definitions to a cloud in memory, whoever dies on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.audit import services as audit
from apps.core.clock import database_now
from apps.core.errors import Conflict
from apps.drivers.infra.memory import Died
from apps.fleet.services import request_stack_push
from apps.stacks import selectors, services
from apps.stacks.models import RunEvent, StackRun, StackSync
from tests.apps.stacks_env import data
from tests.apps.stacks_runs_env import World, make_env


@pytest.fixture
def world(operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """Nothing stands yet, and changes do not wait for each other."""
    yield from make_env(operator, settings, monkeypatch, tmp_path)


def test_a_change_is_planned_waits_for_a_person_and_is_applied(world: World) -> None:
    world.want("a", "b")
    world.reconcile()
    run = world.run()
    assert (run.state, run.to_add, run.to_change, run.to_delete) == ("planned", 2, 0, 0)
    assert world.standing == set()
    world.approve()
    assert world.run().state == "done"
    assert world.standing == {"terraform_data.a", "terraform_data.b"}
    sync = StackSync.objects.get()
    assert sync.outputs == {"a_value": "a", "b_value": "b"}
    assert sync.applied == sync.wanted
    assert services.stacks_to_sweep() == []


def test_equal_documents_disturb_nobody(world: World) -> None:
    world.bring("a")
    world.want("a")
    world.reconcile()
    assert StackRun.objects.count() == 1


def test_a_new_stack_without_definitions_has_no_run(world: World) -> None:
    world.want()
    world.reconcile()
    assert not StackRun.objects.exists()
    assert services.stacks_to_sweep() == []


def test_changes_wait_for_each_other_and_travel_together(world: World, settings: Settings) -> None:
    settings.STACK_COALESCE_S = 3600
    world.want("a")
    world.reconcile()
    world.want("a", "b")
    world.reconcile()
    assert not StackRun.objects.exists()
    assert services.stacks_to_sweep() == []
    StackSync.objects.update(wait_until=database_now())
    assert services.stacks_to_sweep() == [world.stack.pk]
    world.reconcile()
    assert (StackRun.objects.count(), world.run().to_add) == (1, 2)


def test_a_newer_change_takes_the_place_of_a_plan_that_waits(world: World) -> None:
    world.want("a")
    world.reconcile()
    first = world.run()
    world.want("b")
    world.reconcile()
    first.refresh_from_db()
    assert (first.state, bytes(first.plan_file)) == ("superseded", b"")
    with pytest.raises(Conflict):
        services.approve(actor=world.actor, run_id=first.pk, plan_digest=first.plan_digest)
    world.approve()
    assert world.standing == {"terraform_data.b"}


def test_a_plan_is_read_in_our_words(world: World) -> None:
    world.labels = {"a": "route shop /"}
    world.bring("c", a="10")
    world.want("b", a="20")
    world.reconcile()
    changes, drift = selectors.plan_of(world.actor, world.run().pk)
    said = {(each.action, each.label): [detail.sentence for detail in each.details] for each in changes}
    assert said == {("update", "route shop /"): ["input: 10 → 20"], ("create", "b"): [], ("delete", "c"): []}
    assert drift == []
    events = [(each.kind, each.label) for each in RunEvent.objects.order_by("run", "number") if each.address]
    assert ("complete", "route shop /") in events


def test_who_approves_says_which_plan(world: World) -> None:
    world.want("a")
    world.reconcile()
    seen = world.run().plan_digest
    services.plan_now(actor=world.actor, stack_id=world.stack.pk)
    world.cloud.serial += 1  # somebody else wrote the state meanwhile
    world.reconcile()
    with pytest.raises(Conflict, match="newer plan"):
        services.approve(actor=world.actor, run_id=world.run().pk, plan_digest=seen)
    services.approve(actor=world.actor, run_id=world.run().pk, plan_digest=world.run().plan_digest)


def test_what_a_person_says_no_to_does_not_happen(world: World) -> None:
    world.want("a")
    world.reconcile()
    services.discard(actor=world.actor, run_id=world.run().pk, reason="not today")
    world.reconcile()
    assert (world.run().state, world.standing) == ("discarded", set())
    assert services.stacks_to_sweep() == []
    services.plan_now(actor=world.actor, stack_id=world.stack.pk)
    world.reconcile()
    world.approve()
    assert world.standing == {"terraform_data.a"}


@pytest.mark.parametrize(
    ("approval", "before", "after", "state"),
    [
        ("automatic_safe", ("a",), ("a", "b"), "done"),
        ("automatic_safe", ("a", "b"), ("a",), "planned"),
        ("automatic", ("a", "b"), ("a",), "done"),
        ("automatic", tuple(f"r{n}" for n in range(10)), (), "planned"),
    ],
)
def test_the_policy_of_the_stack_says_what_needs_nobody(
    world: World, approval: str, before: tuple[str, ...], after: tuple[str, ...], state: str
) -> None:
    world.bring(*before)
    world.policy(approval)
    world.want(*after)
    world.reconcile()
    assert world.run().state == state


def test_weights_that_the_platform_moved_need_nobody_and_those_of_people_do(world: World) -> None:
    def rule(weight: int) -> Mapping[str, Any]:
        action = [{"forward": [{"target_group": [{"arn": "arn:x", "weight": weight}, {"arn": "y", "weight": 1}]}]}]
        return {"aws_lb_listener_rule": {"one": {"action": action}}}

    world.document = data() | {"resources": rule(10)}
    request_stack_push([world.stack])
    world.reconcile()
    world.approve()
    world.document = data() | {"resources": rule(20)}
    request_stack_push([world.stack])
    world.reconcile()
    assert (world.run().state, world.run().approved_by) == ("done", "spillway")
    (change,), _ = selectors.plan_of(world.actor, world.run().pk)
    assert [detail.sentence for detail in change.details] == [
        "weight of arn:x: 90.91 % → 95.24 %",
        "weight of y: 9.091 % → 4.762 %",
    ]
    world.document = data() | {"resources": rule(30)}
    _audit(world, "Route")
    request_stack_push([world.stack])
    world.reconcile()
    assert world.run().state == "planned"


def _audit(world: World, kind: str) -> None:
    audit.record(actor=world.actor, action="update", kind=kind, object_id=1, label="route")


@pytest.mark.parametrize("point", ["plan", "apply", "terraform_data.a", "terraform_data.b", "terraform_data.c"])
def test_whatever_the_point_at_which_a_worker_dies_the_next_goes_on_and_makes_nothing_twice(
    world: World, point: str
) -> None:
    world.want("a", "b", "c")
    if point == "plan":
        world.die_at(point)
        world.reconcile()
        world.approve()
    else:
        world.reconcile()
        services.approve(actor=world.actor, run_id=world.run().pk, plan_digest=world.run().plan_digest)
        world.die_at(point)
        assert services.stacks_to_sweep() == [world.stack.pk]
        world.reconcile()
    assert world.run().state in {"done", "unchanged"}
    assert StackRun.objects.count() == 1
    assert world.standing == {f"terraform_data.{name}" for name in "abc"}
    assert sorted(world.cloud.applied) == [("create", f"terraform_data.{name}") for name in "abc"]
    assert StackSync.objects.get().outputs == {f"{name}_value": name for name in "abc"}
    world.want("a", "b", "c")
    world.reconcile()
    assert services.stacks_to_sweep() == []


def test_after_a_death_only_what_is_left_of_the_approved_plan_goes_on_unasked(world: World) -> None:
    world.want("a", "b")
    world.reconcile()
    services.approve(actor=world.actor, run_id=world.run().pk, plan_digest=world.run().plan_digest)
    world.die_at("terraform_data.a")
    world.cloud.resources["terraform_data.z"] = {"input": "foreign"}  # what nobody has approved to delete
    world.reconcile()
    assert (world.run().state, world.run().approved_by) == ("planned", "")
    assert "terraform_data.z" in world.standing


def test_workers_that_die_over_and_over_wait_for_a_person(world: World) -> None:
    world.want("a")
    for _ in range(10):
        world.die_at("plan")
    world.cloud.dies_at = "plan"
    with pytest.raises(Died):
        world.reconcile()
    StackSync.objects.update(claimed_until=None)
    world.reconcile()
    assert world.run().state == "failed"
    assert world.run().next_try_at is None


def test_a_plan_from_another_state_is_made_again(world: World) -> None:
    world.want("a")
    world.reconcile()
    world.cloud.serial += 1
    world.approve()
    assert world.run().state == "done"
    assert world.cloud.plans == 2


def test_what_fails_says_which_object_and_is_tried_again_with_what_was_approved(world: World) -> None:
    world.labels = {"b": "pool blue"}
    world.cloud.failing["terraform_data.b"] = "No more of these in your account."
    world.want("a", "b")
    world.reconcile()
    world.approve()
    failed = world.run()
    assert (failed.state, failed.object_label) == ("failed", "pool blue")
    assert failed.message == "No more of these in your account."
    assert services.stacks_to_sweep() == []
    world.cloud.failing.clear()
    StackRun.objects.update(next_try_at=database_now())
    assert services.stacks_to_sweep() == [world.stack.pk]
    world.reconcile()
    assert (world.run().state, world.run().attempts) == ("done", 1)
    assert world.standing == {"terraform_data.a", "terraform_data.b"}


def test_each_failure_waits_longer_and_at_last_for_a_person(world: World) -> None:
    world.policy("automatic")
    world.cloud.failing["terraform_data.a"] = "No."
    world.want("a")
    waits = []
    for _ in range(7):
        world.reconcile()
        run = world.run()
        if run.next_try_at is None:
            break
        assert run.finished_at is not None
        waits.append(round((run.next_try_at - run.finished_at).total_seconds(), -1))
        StackRun.objects.update(next_try_at=database_now())
    assert waits == [30, 60, 120, 240, 480, 960]
    assert services.stacks_to_sweep() == []
    world.cloud.failing.clear()
    services.retry(actor=world.actor, run_id=world.run().pk)
    world.reconcile()
    assert world.run().state == "done"
    with pytest.raises(Conflict):
        services.retry(actor=world.actor, run_id=world.run().pk)


def test_a_locked_state_is_asked_for_again_later(world: World) -> None:
    world.cloud.locked = True
    world.want("a")
    for _ in range(2):
        StackRun.objects.update(next_try_at=database_now())
        world.reconcile()
        assert (world.run().state, services.stacks_to_sweep()) == ("waiting", [])
    world.cloud.locked = False
    StackRun.objects.update(next_try_at=database_now())
    world.reconcile()
    assert world.run().state == "planned"
    world.cloud.locked = True
    services.approve(actor=world.actor, run_id=world.run().pk, plan_digest=world.run().plan_digest)
    for _ in range(2):
        StackRun.objects.update(next_try_at=database_now())
        world.reconcile()
        assert (world.run().state, services.stacks_to_sweep()) == ("approved", [])
    world.cloud.locked = False
    StackRun.objects.update(next_try_at=database_now())
    world.reconcile()
    assert world.run().state == "done"


def test_a_person_stops_a_run_and_what_was_begun_is_finished(world: World, settings: Settings) -> None:
    settings.STACK_LEASE_S = 0.0001  # the worker looks at every step whether it may go on
    world.policy("automatic")
    world.want("a", "b")

    def stop(point: str) -> None:
        StackSync.objects.update(claimed_until=database_now() + timedelta(hours=1))
        if point == "terraform_data.a":
            services.cancel(actor=world.actor, run_id=world.run().pk)

    world.cloud.during = stop
    world.reconcile()
    assert (world.run().state, world.standing) == ("discarded", {"terraform_data.a"})
    assert world.actor.name in world.run().message


def test_a_run_that_waits_is_stopped_at_once(world: World) -> None:
    world.want("a")
    world.reconcile()
    services.cancel(actor=world.actor, run_id=world.run().pk)
    assert world.run().state == "discarded"
    with pytest.raises(Conflict):
        services.cancel(actor=world.actor, run_id=world.run().pk)


@pytest.mark.both_engines
def test_who_lost_the_lease_writes_nothing(world: World, settings: Settings) -> None:
    settings.STACK_LEASE_S = 0.0001
    world.policy("automatic")
    world.want("a", "b")

    def another(point: str) -> None:
        if point == "terraform_data.a":
            StackSync.objects.update(attempt=1_000, claimed_until=database_now() + timedelta(hours=1))

    world.cloud.during = another
    assert not world.reconcile()
    assert (world.run().state, StackSync.objects.get().applied) == ("applying", None)
    world.cloud.during = None
    StackSync.objects.update(claimed_until=None)
    settings.STACK_LEASE_S = 15
    world.reconcile()
    assert (world.run().state, len(world.cloud.applied)) == ("unchanged", 2)
    assert StackSync.objects.get().outputs == {"a_value": "a", "b_value": "b"}


@pytest.mark.both_engines
def test_of_two_workers_one_works(world: World) -> None:
    world.want("a")
    StackSync.objects.update_or_create(stack=world.stack, defaults={"claimed_until": database_now() + timedelta(1)})
    assert not world.reconcile()
    assert not StackRun.objects.exists()
