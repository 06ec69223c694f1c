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
from tests.apps.stacks_runs_env import World, make_env
from tests.interfaces.api.test_api_objects import Api, assert_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """Nothing stands yet, and changes do not wait for each other."""
    yield from make_env(operator, settings, monkeypatch, tmp_path)


def begun(world: World) -> None:
    """The first apply of all is approved, and dies with its machine as the cloud has made something."""
    world.want("a")
    world.reconcile()
    services.approve(actor=world.actor, run_id=world.run().pk, plan_digest=world.run().plan_digest)
    world.lose("a")
    assert not StateVersion.objects.exists()


def stays(world: World, reason: str) -> None:
    """Neither the API nor a document that leaves it out deletes the stack; both say why, and nothing is lost."""
    rows = (StackRun, StackSync, StateLock, StateVersion)
    before = [model.objects.count() for model in rows]
    assert reason in assert_problem(deleted(world), 409)["detail"]
    with pytest.raises(Conflict, match=reason):
        prune(world)
    assert Stack.objects.exists()
    assert [model.objects.count() for model in rows] == before


def goes(world: World) -> None:
    """The stack goes, with all that was written down of it."""
    prune(world)
    assert not Stack.objects.exists()
    assert not StackSync.objects.exists()


def deleted(world: World) -> Any:
    """The answer to a program that deletes the stack as it saw it."""
    api = Api(world.actor)
    return api("DELETE", "stacks/frankfurt", If_Match=api("GET", "stacks/frankfurt")["ETag"])


def prune(world: World) -> None:
    """A pipeline made the stack, and does not name it any more."""
    Stack.objects.update(manager="pipeline")
    try:
        apply_document(actor=world.actor, objects=[], prune=True, manager="pipeline")
    finally:
        Stack.objects.update(manager="")


def test_a_stack_that_never_applied_anything_goes(world: World) -> None:
    goes(world)


def test_a_stack_goes_by_the_api_too(world: World) -> None:
    assert deleted(world).status_code == 204
    assert not Stack.objects.exists()


def test_a_stack_whose_plan_waits_stays_until_somebody_says_no(world: World) -> None:
    world.want("a")
    world.reconcile()
    stays(world, f"Run {world.run().pk} is planned: wait for its end, or discard or cancel it")
    services.discard(actor=world.actor, run_id=world.run().pk)
    goes(world)


def test_a_stack_whose_first_apply_goes_on_stays(world: World) -> None:
    begun(world)
    stays(world, f"Run {world.run().pk} is applying")


def test_a_stack_stays_while_nobody_heard_the_end_of_an_apply(world: World) -> None:
    begun(world)
    services.cancel(actor=world.actor, run_id=world.run().pk)
    world.reconcile()
    assert world.run().state == "discarded"
    stays(world, "Nobody heard the end of its last apply")


def test_a_stack_stays_while_its_cloud_has_what_its_state_does_not_know(world: World) -> None:
    begun(world)
    world.want()
    world.reconcile()
    services.plan_now(actor=world.actor, stack_id=world.stack.pk)
    world.reconcile()
    assert (world.run().state, StackSync.objects.get().doubted) == ("unchanged", None)
    stays(world, "Its state does not know what it made: a. Delete that in the cloud, then plan")
    world.answers.made.clear()
    services.plan_now(actor=world.actor, stack_id=world.stack.pk)
    world.reconcile()
    goes(world)


def test_a_stack_whose_state_is_locked_stays(world: World) -> None:
    lock = StateLock.objects.create(stack=world.stack, lock_id="one", held_by="pia")
    stays(world, "pia holds the lock of its state: wait, or force-unlock it once nothing runs")
    lock.delete()
    goes(world)


def test_a_stack_that_stands_stays_until_it_is_destroyed(world: World) -> None:
    world.bring("a")
    facts = {"stack": world.stack, "md5": "", "content": b"", "written_by": "pia"}
    StateVersion.objects.create(number=1, resources=2, **facts)
    stays(world, "Its cloud still has 2 resources: destroy them first")
    services.destroy(actor=world.actor, stack_id=world.stack.pk, reason="moving away")
    world.reconcile()
    world.approve()
    StateVersion.objects.create(number=2, resources=0, **facts)
    goes(world)
