"""Several stacks stand in one account and region, and what fails in one is not everybody's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.compiler.compile import compile_stack
from apps.compiler.model.stack import StackSnapshot
from apps.core.clock import database_now
from apps.definitions.services import save_object
from apps.drivers.infra.memory import memory_cloud
from apps.fleet.models import CloudAccount, Stack
from apps.fleet.services import request_stack_push
from apps.stacks import services
from apps.stacks.models import StackRun, StackSync
from apps.stacks.run import turns
from apps.stacks.run.workspaces import state_address
from tests.apps.clouds_env import STACK, operator_of, remembered
from tests.apps.stacks_env import a_stack
from tests.apps.stacks_runs_env import Env, make_env
from tests.pure.aws_fixtures import front, stack
from tests.pure.compiler_fixtures import route
from tests.pure.google_fixtures import everything

CLOUDS = remembered()


@pytest.fixture
def env(operator: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Env]:
    """Nothing stands yet."""
    yield from make_env(operator, settings, monkeypatch, tmp_path)


def called(snapshot: StackSnapshot) -> set[tuple[str, str]]:
    """What the cloud is to call each thing, by type."""
    resources = compile_stack(snapshot).output.resources
    records = ("aws_route53_zone", "google_dns_managed_zone", "google_dns_record_set", "aws_route53_record")
    return {
        (kind, body["name"])
        for kind, named in resources.items()
        for body in named.values()
        if "name" in body and kind not in records
    }


@pytest.mark.django_db
def test_an_account_may_have_several_stacks_in_a_region_each_with_a_network_of_its_own() -> None:
    operator = operator_of(CLOUDS)
    network = {"vpc": "vpc-0f0f0f0f", "subnets": ["subnet-0f0f0f0a", "subnet-0f0f0f0b"]}
    save_object(actor=operator, kind="Stack", name="aws-eu-two", spec=STACK | {"network": network})
    regions = set(Stack.objects.values_list("cloud_account__name", "cloud_region"))
    assert (regions, Stack.objects.count()) == ({("prod", "eu-central-1")}, 2)


@pytest.mark.parametrize("snapshot", [stack(front(route(1, "a.example"))), everything()], ids=["aws", "google"])
def test_two_stacks_never_call_two_things_alike(snapshot: StackSnapshot) -> None:
    assert called(snapshot)
    assert called(snapshot) & called(replace(snapshot, id="stk-4")) == set()


def test_names_that_are_alike_would_be_found() -> None:
    """Negative control."""
    snapshot = stack(front(route(1, "a.example")))
    assert called(snapshot) & called(snapshot) == called(snapshot)


@pytest.mark.django_db
def test_what_one_stack_cannot_make_does_not_hold_up_its_neighbour(env: Env) -> None:
    neighbour = a_stack(env.actor, "beside", cloud_region=env.stack.cloud_region)
    env.policy("automatic")
    Stack.objects.filter(pk=neighbour.pk).update(approval="automatic")
    env.cloud.failing["terraform_data.a"] = "Quota exceeded."
    env.want("a")
    request_stack_push([neighbour])
    ended: dict[str, Any] = {}
    for each in (env.stack, neighbour):
        services.reconcile_stack(stack_id=each.pk)
        ended[each.name] = StackRun.objects.filter(stack=each).latest("id").state
    assert ended == {env.stack.name: "failed", "beside": "done"}
    assert set(memory_cloud(state_address(neighbour.pk)).resources) == {"terraform_data.a"}


@pytest.fixture
def three_accounts(operator: Actor, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first has three stacks to change, the second two, the third one; nobody had a turn yet."""
    monkeypatch.setattr(turns, "_turns", {})
    names = ["one-1", "one-2", "one-3", "two-1", "two-2", "three-1"]
    for name in names:
        cloud, _ = CloudAccount.objects.get_or_create(name=name[:-2], account=operator.account, cloud="aws")
        a_stack(operator, name, cloud_account=cloud, desired_generation=1)
    return names


def in_order() -> list[str]:
    """One after the other, as a process with one seat would take them."""
    names, done = dict(Stack.objects.values_list("pk", "name")), list[int]()
    while (found := turns.choose(frozenset(), frozenset(done))) is not None:
        done.append(found[1])
    return [names[each] for each in done]


@pytest.mark.django_db
def test_accounts_take_turns_whoever_has_more_to_do(three_accounts: list[str]) -> None:
    assert in_order() == ["one-1", "two-1", "three-1", "one-2", "two-2", "one-3"]


@pytest.mark.django_db
def test_without_turns_the_first_account_would_have_them_all(
    three_accounts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    monkeypatch.setattr(turns, "_count", iter([0] * len(three_accounts)))
    assert in_order() == three_accounts


@pytest.mark.django_db
def test_an_account_on_which_another_process_works_waits_for_it(three_accounts: list[str]) -> None:
    stack = Stack.objects.get(name="one-1")
    sync = StackSync.objects.create(stack=stack, claimed_until=database_now() + timedelta(minutes=1))
    assert in_order() == ["two-1", "three-1", "two-2"]
    sync.delete()
    assert in_order()[0] == "one-1"
