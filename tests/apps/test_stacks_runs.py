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
from tests.apps.stacks_runs_env import Env, make_env


@pytest.fixture
def env(operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Env]:
    """Nothing stands yet, and changes do not wait for each other."""
    yield from make_env(operator, settings, monkeypatch, tmp_path)


def test_a_change_is_planned_waits_for_a_person_and_is_applied(env: Env) -> None:
    env.want("a", "b")
    env.reconcile()
    run = env.run()
    assert (run.state, run.to_add, run.to_change, run.to_delete) == ("planned", 2, 0, 0)
    assert env.standing == set()
    env.approve()
    assert env.run().state == "done"
    assert env.standing == {"terraform_data.a", "terraform_data.b"}
    sync = StackSync.objects.get()
    assert sync.outputs == {"a_value": "a", "b_value": "b"}
    assert sync.applied == sync.wanted
    assert services.stacks_to_sweep() == []


def test_equal_documents_disturb_nobody(env: Env) -> None:
    env.bring("a")
    env.want("a")
    env.reconcile()
    assert StackRun.objects.count() == 1


def test_a_new_stack_without_definitions_has_no_run(env: Env) -> None:
    env.want()
    env.reconcile()
    assert not StackRun.objects.exists()
    assert services.stacks_to_sweep() == []


def test_changes_wait_for_each_other_and_travel_together(env: Env, settings: Settings) -> None:
    settings.STACK_COALESCE_S = 3600
    env.want("a")
    env.reconcile()
    env.want("a", "b")
    env.reconcile()
    assert not StackRun.objects.exists()
    assert services.stacks_to_sweep() == []
    StackSync.objects.update(wait_until=database_now())
    assert services.stacks_to_sweep() == [env.stack.pk]
    env.reconcile()
    assert (StackRun.objects.count(), env.run().to_add) == (1, 2)


def test_a_newer_change_takes_the_place_of_a_plan_that_waits(env: Env) -> None:
    env.want("a")
    env.reconcile()
    first = env.run()
    env.want("b")
    env.reconcile()
    first.refresh_from_db()
    assert (first.state, bytes(first.plan_file)) == ("superseded", b"")
    with pytest.raises(Conflict):
        services.approve(actor=env.actor, run_id=first.pk, plan_digest=first.plan_digest)
    env.approve()
    assert env.standing == {"terraform_data.b"}


def test_a_plan_is_read_in_our_words(env: Env) -> None:
    env.labels = {"a": "route shop /"}
    env.bring("c", a="10")
    env.want("b", a="20")
    env.reconcile()
    changes, drift = selectors.plan_of(env.actor, env.run().pk)
    said = {(each.action, each.label): [detail.sentence for detail in each.details] for each in changes}
    assert said == {("update", "route shop /"): ["input: 10 → 20"], ("create", "b"): [], ("delete", "c"): []}
    assert drift == []
    events = [(each.kind, each.label) for each in RunEvent.objects.order_by("run", "number") if each.address]
    assert ("complete", "route shop /") in events


def test_who_approves_says_which_plan(env: Env) -> None:
    env.want("a")
    env.reconcile()
    seen = env.run().plan_digest
    services.plan_now(actor=env.actor, stack_id=env.stack.pk)
    env.cloud.serial += 1  # somebody else wrote the state meanwhile
    env.reconcile()
    with pytest.raises(Conflict, match="newer plan"):
        services.approve(actor=env.actor, run_id=env.run().pk, plan_digest=seen)
    services.approve(actor=env.actor, run_id=env.run().pk, plan_digest=env.run().plan_digest)


def test_what_a_person_says_no_to_does_not_happen(env: Env) -> None:
    env.want("a")
    env.reconcile()
    services.discard(actor=env.actor, run_id=env.run().pk, reason="not today")
    env.reconcile()
    assert (env.run().state, env.standing) == ("discarded", set())
    assert services.stacks_to_sweep() == []
    services.plan_now(actor=env.actor, stack_id=env.stack.pk)
    env.reconcile()
    env.approve()
    assert env.standing == {"terraform_data.a"}


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
    env: Env, approval: str, before: tuple[str, ...], after: tuple[str, ...], state: str
) -> None:
    env.bring(*before)
    env.policy(approval)
    env.want(*after)
    env.reconcile()
    assert env.run().state == state


def test_weights_that_the_platform_moved_need_nobody_and_those_of_people_do(env: Env) -> None:
    def rule(weight: int) -> Mapping[str, Any]:
        action = [{"forward": [{"target_group": [{"arn": "arn:x", "weight": weight}, {"arn": "y", "weight": 1}]}]}]
        return {"aws_lb_listener_rule": {"one": {"action": action}}}

    env.document = data() | {"resources": rule(10)}
    request_stack_push([env.stack])
    env.reconcile()
    env.approve()
    env.document = data() | {"resources": rule(20)}
    request_stack_push([env.stack])
    env.reconcile()
    assert (env.run().state, env.run().approved_by) == ("done", "spillway")
    (change,), _ = selectors.plan_of(env.actor, env.run().pk)
    assert [detail.sentence for detail in change.details] == [
        "weight of arn:x: 90.91 % → 95.24 %",
        "weight of y: 9.091 % → 4.762 %",
    ]
    env.document = data() | {"resources": rule(30)}
    _audit(env, "Route")
    request_stack_push([env.stack])
    env.reconcile()
    assert env.run().state == "planned"


def _audit(env: Env, kind: str) -> None:
    audit.record(actor=env.actor, action="update", kind=kind, object_id=1, label="route")


@pytest.mark.parametrize("point", ["plan", "apply", "terraform_data.a", "terraform_data.b", "terraform_data.c"])
def test_whatever_the_point_at_which_a_worker_dies_the_next_goes_on_and_makes_nothing_twice(
    env: Env, point: str
) -> None:
    env.want("a", "b", "c")
    if point == "plan":
        env.die_at(point)
        env.reconcile()
        env.approve()
    else:
        env.reconcile()
        services.approve(actor=env.actor, run_id=env.run().pk, plan_digest=env.run().plan_digest)
        env.die_at(point)
        assert services.stacks_to_sweep() == [env.stack.pk]
        env.reconcile()
    assert env.run().state in {"done", "unchanged"}
    assert StackRun.objects.count() == 1
    assert env.standing == {f"terraform_data.{name}" for name in "abc"}
    assert sorted(env.cloud.applied) == [("create", f"terraform_data.{name}") for name in "abc"]
    assert StackSync.objects.get().outputs == {f"{name}_value": name for name in "abc"}
    env.want("a", "b", "c")
    env.reconcile()
    assert services.stacks_to_sweep() == []


def test_after_a_death_only_what_is_left_of_the_approved_plan_goes_on_unasked(env: Env) -> None:
    env.want("a", "b")
    env.reconcile()
    services.approve(actor=env.actor, run_id=env.run().pk, plan_digest=env.run().plan_digest)
    env.die_at("terraform_data.a")
    env.cloud.resources["terraform_data.z"] = {"input": "foreign"}  # what nobody has approved to delete
    env.reconcile()
    assert (env.run().state, env.run().approved_by) == ("planned", "")
    assert "terraform_data.z" in env.standing


def test_workers_that_die_over_and_over_wait_for_a_person(env: Env) -> None:
    env.want("a")
    for _ in range(10):
        env.die_at("plan")
    env.cloud.dies_at = "plan"
    with pytest.raises(Died):
        env.reconcile()
    StackSync.objects.update(claimed_until=None)
    env.reconcile()
    assert env.run().state == "failed"
    assert env.run().next_try_at is None


def test_a_plan_from_another_state_is_made_again(env: Env) -> None:
    env.want("a")
    env.reconcile()
    env.cloud.serial += 1
    env.approve()
    assert env.run().state == "done"
    assert env.cloud.plans == 2


def test_what_fails_says_which_object_and_is_tried_again_with_what_was_approved(env: Env) -> None:
    env.labels = {"b": "pool blue"}
    env.cloud.failing["terraform_data.b"] = "No more of these in your account."
    env.want("a", "b")
    env.reconcile()
    env.approve()
    failed = env.run()
    assert (failed.state, failed.object_label) == ("failed", "pool blue")
    assert failed.message == "No more of these in your account."
    assert services.stacks_to_sweep() == []
    env.cloud.failing.clear()
    StackRun.objects.update(next_try_at=database_now())
    assert services.stacks_to_sweep() == [env.stack.pk]
    env.reconcile()
    assert (env.run().state, env.run().attempts) == ("done", 1)
    assert env.standing == {"terraform_data.a", "terraform_data.b"}


def test_an_approved_plan_that_cannot_be_read_any_more_fails_and_says_so(env: Env) -> None:
    env.want("a")
    env.reconcile()
    StackRun.objects.update(plan_file=b"sealed with a key that is lost")
    env.approve()
    assert env.run().state == "failed"
    assert "cannot be read" in env.run().message


def test_each_failure_waits_longer_and_at_last_for_a_person(env: Env) -> None:
    env.policy("automatic")
    env.cloud.failing["terraform_data.a"] = "No."
    env.want("a")
    waits = []
    for _ in range(7):
        env.reconcile()
        run = env.run()
        if run.next_try_at is None:
            break
        assert run.finished_at is not None
        waits.append(round((run.next_try_at - run.finished_at).total_seconds(), -1))
        StackRun.objects.update(next_try_at=database_now())
    assert waits == [30, 60, 120, 240, 480, 960]
    assert services.stacks_to_sweep() == []
    env.cloud.failing.clear()
    services.retry(actor=env.actor, run_id=env.run().pk)
    env.reconcile()
    assert env.run().state == "done"
    with pytest.raises(Conflict):
        services.retry(actor=env.actor, run_id=env.run().pk)


def test_a_locked_state_is_asked_for_again_later(env: Env) -> None:
    env.cloud.locked = True
    env.want("a")
    for _ in range(2):
        StackRun.objects.update(next_try_at=database_now())
        env.reconcile()
        assert (env.run().state, services.stacks_to_sweep()) == ("waiting", [])
    env.cloud.locked = False
    StackRun.objects.update(next_try_at=database_now())
    env.reconcile()
    assert env.run().state == "planned"
    env.cloud.locked = True
    services.approve(actor=env.actor, run_id=env.run().pk, plan_digest=env.run().plan_digest)
    for _ in range(2):
        StackRun.objects.update(next_try_at=database_now())
        env.reconcile()
        assert (env.run().state, services.stacks_to_sweep()) == ("approved", [])
    env.cloud.locked = False
    StackRun.objects.update(next_try_at=database_now())
    env.reconcile()
    assert env.run().state == "done"


def test_a_person_stops_a_run_and_what_was_begun_is_finished(env: Env, settings: Settings) -> None:
    settings.STACK_LEASE_S = 0.0001  # the worker looks at every step whether it may go on
    env.policy("automatic")
    env.want("a", "b")

    def stop(point: str) -> None:
        StackSync.objects.update(claimed_until=database_now() + timedelta(hours=1))
        if point == "terraform_data.a":
            services.cancel(actor=env.actor, run_id=env.run().pk)

    env.cloud.during = stop
    env.reconcile()
    assert (env.run().state, env.standing) == ("discarded", {"terraform_data.a"})
    assert env.actor.name in env.run().message


def test_a_run_that_fails_while_a_person_stops_it_is_not_tried_again(env: Env) -> None:
    """The worker did not hear of it: it asks now and then, and Terraform failed before that."""
    env.want("a")
    env.reconcile()
    env.cloud.failing["terraform_data.a"] = "no capacity"

    def stop(point: str) -> None:
        if point == "apply":
            services.cancel(actor=env.actor, run_id=env.run().pk, reason="the wrong one")

    env.cloud.during = stop
    env.approve()
    assert (env.run().state, env.run().message) == ("discarded", f"no capacity {env.actor.name} stopped it.")
    env.cloud.failing.clear()
    env.cloud.during = None
    env.reconcile()
    assert env.standing == set()


def test_a_run_that_waits_is_stopped_at_once(env: Env) -> None:
    env.want("a")
    env.reconcile()
    services.cancel(actor=env.actor, run_id=env.run().pk)
    assert env.run().state == "discarded"
    with pytest.raises(Conflict):
        services.cancel(actor=env.actor, run_id=env.run().pk)


@pytest.mark.both_engines
def test_who_lost_the_lease_writes_nothing(env: Env, settings: Settings) -> None:
    settings.STACK_LEASE_S = 0.0001
    env.policy("automatic")
    env.want("a", "b")

    def another(point: str) -> None:
        if point == "terraform_data.a":
            StackSync.objects.update(attempt=1_000, claimed_until=database_now() + timedelta(hours=1))

    env.cloud.during = another
    assert not env.reconcile()
    assert (env.run().state, StackSync.objects.get().applied) == ("applying", None)
    env.cloud.during = None
    StackSync.objects.update(claimed_until=None)
    settings.STACK_LEASE_S = 15
    env.reconcile()
    assert (env.run().state, len(env.cloud.applied)) == ("unchanged", 2)
    assert StackSync.objects.get().outputs == {"a_value": "a", "b_value": "b"}


@pytest.mark.both_engines
def test_of_two_workers_one_works(env: Env) -> None:
    env.want("a")
    StackSync.objects.update_or_create(stack=env.stack, defaults={"claimed_until": database_now() + timedelta(1)})
    assert not env.reconcile()
    assert not StackRun.objects.exists()
