"""A stack is deleted only once nothing of it can stand in its cloud, through whichever interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.errors import Conflict
from apps.definitions.services import apply_document
from apps.fleet.models import Stack
from apps.stacks import services
from apps.stacks.models import StackRun, StackSync, StateLock, StateVersion
from tests.apps.stacks_runs_env import Env, make_env
from tests.interfaces.api.test_api_objects import Api, assert_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Env]:
    """Nothing stands yet, and changes do not wait for each other."""
    yield from make_env(operator, settings, monkeypatch, tmp_path)


def begun(env: Env) -> None:
    """The first apply of all is approved, and dies with its machine as the cloud has made something."""
    env.want("a")
    env.reconcile()
    services.approve(actor=env.actor, run_id=env.run().pk, plan_digest=env.run().plan_digest)
    env.lose("a")
    assert not StateVersion.objects.exists()


def stays(env: Env, reason: str) -> None:
    """Neither the API nor a document that leaves it out deletes the stack; both say why, and nothing is lost."""
    rows = (StackRun, StackSync, StateLock, StateVersion)
    before = [model.objects.count() for model in rows]
    assert reason in assert_problem(deleted(env), 409)["detail"]
    with pytest.raises(Conflict, match=reason):
        prune(env)
    assert Stack.objects.exists()
    assert [model.objects.count() for model in rows] == before


def goes(env: Env) -> None:
    """The stack goes, with all that was written down of it."""
    prune(env)
    assert not Stack.objects.exists()
    assert not StackSync.objects.exists()


def deleted(env: Env) -> Any:
    """The answer to a program that deletes the stack as it saw it."""
    api = Api(env.actor)
    return api("DELETE", "stacks/frankfurt", If_Match=api("GET", "stacks/frankfurt")["ETag"])


def prune(env: Env) -> None:
    """A pipeline made the stack, and does not name it any more."""
    Stack.objects.update(manager="pipeline")
    try:
        apply_document(actor=env.actor, objects=[], prune=True, manager="pipeline")
    finally:
        Stack.objects.update(manager="")


def test_a_stack_that_never_applied_anything_goes(env: Env) -> None:
    goes(env)


def test_a_stack_goes_by_the_api_too(env: Env) -> None:
    assert deleted(env).status_code == 204
    assert not Stack.objects.exists()


def test_a_stack_whose_plan_waits_stays_until_somebody_says_no(env: Env) -> None:
    env.want("a")
    env.reconcile()
    stays(env, f"Run {env.run().pk} is planned: wait until it ends, or discard or cancel it")
    services.discard(actor=env.actor, run_id=env.run().pk)
    goes(env)


def test_a_stack_whose_first_apply_goes_on_stays(env: Env) -> None:
    begun(env)
    stays(env, f"Run {env.run().pk} is applying")


def test_a_stack_stays_while_nobody_heard_the_end_of_an_apply(env: Env) -> None:
    begun(env)
    services.cancel(actor=env.actor, run_id=env.run().pk)
    env.reconcile()
    assert env.run().state == "discarded"
    stays(env, "The result of its last apply is unknown")


def test_a_stack_stays_while_its_cloud_has_what_its_state_does_not_know(env: Env) -> None:
    begun(env)
    env.want()
    env.reconcile()
    services.plan_now(actor=env.actor, stack_id=env.stack.pk)
    env.reconcile()
    assert (env.run().state, StackSync.objects.get().doubted) == ("unchanged", None)
    stays(env, "Its state does not contain a. Delete this in the cloud, then plan the stack")
    env.answers.made.clear()
    services.plan_now(actor=env.actor, stack_id=env.stack.pk)
    env.reconcile()
    goes(env)


def test_a_stack_whose_state_is_locked_stays(env: Env) -> None:
    lock = StateLock.objects.create(stack=env.stack, lock_id="one", held_by="pia")
    stays(env, "pia holds the lock of its state: wait, or force-unlock it once nothing runs")
    lock.delete()
    goes(env)


def test_a_stack_that_stands_stays_until_it_is_destroyed(env: Env) -> None:
    env.bring("a")
    facts = {"stack": env.stack, "md5": "", "content": b"", "written_by": "pia"}
    StateVersion.objects.create(number=1, resources=2, **facts)
    stays(env, "Its cloud still has 2 resources: destroy them first")
    services.destroy(actor=env.actor, stack_id=env.stack.pk, reason="moving away")
    env.reconcile()
    env.approve()
    StateVersion.objects.create(number=2, resources=0, **facts)
    goes(env)
