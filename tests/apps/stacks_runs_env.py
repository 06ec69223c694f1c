"""A stack in a cloud in memory, whose definitions are a document of `terraform_data`."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.compiler.compile import Compilation
from apps.compiler.targets.terraform.document import StackDocument
from apps.core.clock import database_now
from apps.drivers.clouds import memory as clouds
from apps.drivers.clouds.contract import Standing
from apps.drivers.infra.memory import Died, MemoryCloud, forget_clouds, memory_cloud
from apps.fleet.models import CloudAccount, Stack
from apps.fleet.services import request_stack_push
from apps.stacks import services
from apps.stacks.models import StackRun, StackSync
from apps.stacks.run import compiling
from apps.stacks.run.compiling import Compiled
from apps.stacks.run.workspaces import state_address
from tests.apps.stacks_env import a_stack, data


@dataclass
class Env:
    """A stack, its cloud, and what its definitions compile to."""

    actor: Actor
    stack: Stack
    cloud: MemoryCloud
    document: dict[str, Any] = field(default_factory=data)
    labels: dict[str, str] = field(default_factory=dict)
    answers: clouds.MemoryCloud = field(default_factory=clouds.MemoryCloud)

    def want(self, *names: str, **inputs: Any) -> None:
        """Definitions change."""
        self.document = data(*names, **inputs)
        request_stack_push([self.stack])

    def compiled(self, stack_id: int) -> Compiled:
        found = StackDocument(**{name: value for name, value in self.document.items() if name != "providers"})
        generation = Stack.objects.values_list("desired_generation", flat=True).get(pk=stack_id)
        return Compiled(Compilation(found, (), ()), {}, self.labels, generation)

    def reconcile(self) -> bool:
        return services.reconcile_stack(stack_id=self.stack.pk)

    def run(self) -> StackRun:
        return StackRun.objects.order_by("-id")[0]

    def approve(self) -> None:
        services.approve(actor=self.actor, run_id=self.run().pk, plan_digest=self.run().plan_digest)
        self.reconcile()

    def bring(self, *names: str, **inputs: Any) -> None:
        self.want(*names, **inputs)
        self.reconcile()
        self.approve()

    def lose(self, name: str) -> Standing:
        """The whole machine dies when the cloud has made the resource and nobody told the state; its lease ends."""
        address = f"terraform_data.{name}"
        self.cloud.unheard_at = address
        with pytest.raises(Died):
            self.reconcile()
        self.cloud.dies_at = ""
        StackSync.objects.update(claimed_until=database_now() - timedelta(seconds=1))
        left = Standing("terraform_data", f"id-{name}", address)
        self.answers.made.append(left)
        return left

    def die_at(self, point: str) -> None:
        """The worker dies there; its lease ends."""
        self.cloud.dies_at = point
        with pytest.raises(Died):
            self.reconcile()
        StackSync.objects.update(claimed_until=database_now() - timedelta(seconds=1))

    @property
    def standing(self) -> set[str]:
        return set(self.cloud.resources)

    def policy(self, approval: str) -> None:
        Stack.objects.filter(pk=self.stack.pk).update(approval=approval)


def make_env(operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, directory: Path) -> Iterator[Env]:
    """Nothing stands yet, and changes do not wait for each other."""
    settings.TERRAFORM_BIN, settings.STACK_COALESCE_S, settings.VAR_DIR = "memory", 0, directory
    stack = a_stack(operator)
    name = f"runs-{secrets.token_hex(4)}"
    CloudAccount.objects.update(endpoint_url=f"{clouds.SCHEME}{name}")
    found = Env(operator, stack, memory_cloud(state_address(stack.pk)), answers=clouds.memory_cloud(name))
    monkeypatch.setattr(compiling, "compiled", found.compiled)
    yield found
    forget_clouds()
