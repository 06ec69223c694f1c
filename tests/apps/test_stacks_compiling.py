"""What is desired while something else is compiled is not lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.compiler.compile import CompileError
from apps.compiler.model.shared import Finding
from apps.core.concurrency.leases import take
from apps.fleet.services import request_stack_push
from apps.stacks.models import StackSync
from apps.stacks.run import compiling
from apps.stacks.run.compiling import Compiled
from tests.apps.stacks_env import a_stack

pytestmark = pytest.mark.django_db


def test_what_is_desired_while_a_compilation_fails_is_compiled_next(
    operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.STACK_COALESCE_S = 0
    stack = a_stack(operator)
    mended = False

    def refuse(stack_id: int) -> Compiled:
        if mended:
            request_stack_push([stack])  # somebody takes back what cannot be compiled, in this moment
        raise CompileError((Finding("impossible", "lb-1", "front", "Nobody can do this."),))

    monkeypatch.setattr(compiling, "compiled", refuse)
    lease = take(StackSync, timedelta(seconds=60), stack_id=stack.pk)
    assert lease is not None
    request_stack_push([stack])
    compiling.compile_now(lease, stack.pk)
    assert not compiling.must_compile(stack.pk)  # what fails is not tried again before something changes
    request_stack_push([stack])
    mended = True
    compiling.compile_now(lease, stack.pk)
    assert compiling.must_compile(stack.pk)
