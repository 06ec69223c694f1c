"""What came back: who follows an address or a name in another stack is planned anew when it changes."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.models import LoadBalancer, Record, Zone
from apps.fleet.models import Stack, StaticIP
from apps.stacks.state.outputs import hand_on
from tests.apps.stacks_env import a_stack

pytestmark = pytest.mark.django_db


@pytest.fixture
def keeper(operator: Actor) -> Stack:
    """A stack with a zone on Route 53."""
    stack = a_stack(operator, "keeper")
    usual: dict[str, Any] = {"account": operator.account, "domain": "example.test", "driver": "route53"}
    Zone.objects.create(name="zone", stack=stack, **usual)
    return stack


def follow(operator: Actor, **source: Any) -> None:
    usual: dict[str, Any] = {"account": operator.account, "zone": Zone.objects.get(), "name": "www", "label": "www"}
    Record.objects.create(**usual, **source)


def wanted(stack: Stack) -> int:
    return Stack.objects.values_list("desired_generation", flat=True).get(pk=stack.pk)


def test_records_of_another_stacks_zone_follow_an_address_when_it_changes_and_only_then(
    operator: Actor, keeper: Stack
) -> None:
    stack = a_stack(operator, "front")
    address = StaticIP.objects.create(account=operator.account, name="ip", kind="elastic", stack=stack)
    follow(operator, type="A", static_ip=address)
    outputs = {f"ip_{address.pk}_addresses": ["192.0.2.1"]}
    before = wanted(keeper), wanted(stack)
    hand_on(stack.pk, {}, outputs)
    assert (wanted(keeper), wanted(stack)) == (before[0] + 1, before[1])
    hand_on(stack.pk, outputs, outputs)
    assert wanted(keeper) == before[0] + 1


def test_aliases_of_another_stacks_zone_follow_a_name_when_it_changes_and_only_then(
    operator: Actor, keeper: Stack
) -> None:
    stack = a_stack(operator, "front")
    balancer = LoadBalancer.objects.create(account=operator.account, name="front")
    balancer.stacks.add(stack)
    follow(operator, type="CNAME", load_balancer=balancer)
    outputs = {f"lb_{balancer.pk}_dns_name": "one.example.net"}
    before = wanted(keeper)
    hand_on(stack.pk, {}, outputs)
    assert wanted(keeper) == before + 1
    hand_on(stack.pk, outputs, outputs)
    assert wanted(keeper) == before + 1
    hand_on(stack.pk, outputs, {})
    assert wanted(keeper) == before + 2
