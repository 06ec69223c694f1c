"""A push to clouds with nothing but the terraform binary: state, lock, plan, apply of `terraform_data`."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.compiler.compile import Compilation
from apps.compiler.targets.terraform.document import StackDocument
from apps.fleet.models import Stack
from apps.fleet.services import request_stack_push
from apps.stacks import services
from apps.stacks.models import StackRun, StackSync, StateLock, StateVersion
from apps.stacks.run import compiling
from apps.stacks.run.compiling import Compiled
from tests.apps.stacks_env import a_stack, data
from tests.e2e.stack_env import NO_TERRAFORM, TERRAFORM

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(TERRAFORM is None, reason=NO_TERRAFORM),
]


@pytest.fixture
def stack(
    operator: Actor, live_server: Any, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stack:
    """A stack of two resources, whose state is kept by a real server."""
    settings.TERRAFORM_BIN, settings.STATE_URL, settings.VAR_DIR = TERRAFORM, live_server.url, tmp_path
    settings.STACK_COALESCE_S = 0

    def compiled(stack_id: int) -> Compiled:
        document = StackDocument(**{name: value for name, value in data("a", "b").items() if name != "providers"})
        generation = Stack.objects.values_list("desired_generation", flat=True).get(pk=stack_id)
        return Compiled(Compilation(document, (), ()), {}, {}, generation)

    monkeypatch.setattr(compiling, "compiled", compiled)
    return a_stack(operator)


@pytest.mark.exhaustive  # with the provider each time: test_stack_aws.py
def test_a_plan_is_made_approved_and_applied_and_the_state_is_kept_here(stack: Stack, operator: Actor) -> None:
    began = time.monotonic()
    request_stack_push([stack])
    services.reconcile_stack(stack_id=stack.pk)
    run = StackRun.objects.get()
    assert (run.state, run.to_add) == ("planned", 2)
    services.approve(actor=operator, run_id=run.pk, plan_digest=run.plan_digest)
    services.reconcile_stack(stack_id=stack.pk)
    print(f"compiled, planned, approved and applied in {time.monotonic() - began:.1f} s")
    assert StackRun.objects.get().state == "done"
    assert StackSync.objects.get().outputs == {"a_value": "a", "b_value": "b"}
    assert StateVersion.objects.order_by("-number")[0].resources == 2
    assert not StateLock.objects.exists()


def test_of_two_workers_at_once_one_works_and_everything_happens_once(stack: Stack) -> None:
    Stack.objects.update(approval="automatic")
    stack.refresh_from_db()
    request_stack_push([stack])
    together, answers = threading.Barrier(2), []

    def work() -> None:
        together.wait()
        answers.append(services.reconcile_stack(stack_id=stack.pk))
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(answers) == [False, True]
    assert StackRun.objects.get().state == "done"
    assert StackSync.objects.get().outputs == {"a_value": "a", "b_value": "b"}
    versions = list(StateVersion.objects.order_by("number").values_list("serial", flat=True))
    assert versions == sorted(set(versions))
