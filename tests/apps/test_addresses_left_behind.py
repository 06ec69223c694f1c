"""A released address is free when no node may hold it any more."""

from __future__ import annotations

from typing import Any

import pytest

from apps.core.errors import Conflict, Invalid
from apps.definitions.services import apply_document, delete_object, save_object
from apps.fleet.models import Node, StaticIP
from apps.observe.services import note_report
from apps.rollouts.held_addresses import held_addresses, left_behind
from tests.apps.pushed import APPLIED, Env, put_env

VIP = "203.0.113.1"
LISTENER: dict[str, Any] = {"name": "http", "protocol": "http", "port": 8080}


@pytest.fixture
def env(db: None) -> Env:
    """A fleet that serves on a static IP, the only one of its pool."""
    env = put_env(APPLIED)
    save_object(actor=env.operator, kind="AddressPool", name="few", spec={"blocks": [f"{VIP}/32"]})
    save_vip(env, "shop", pool="few")
    listen(env, static_ip="shop")
    return env


def save_vip(env: Env, name: str, **spec: str) -> StaticIP:
    row: StaticIP = save_object(
        actor=env.operator, kind="StaticIP", name=name, spec={"kind": "vip", "region": "here", **spec}
    )
    return row


def listen(env: Env, **more: str) -> None:
    front = {"kind": "LoadBalancer", "name": "front", "spec": {"fleets": ["here"], "listeners": [LISTENER | more]}}
    apply_document(actor=env.operator, objects=[front])


def push(env: Env, *held: str) -> None:
    """What workers and nodes do, and what the nodes that answer say that they hold."""
    for node in env.memory:
        if not node.unreachable:
            node.addresses = dict.fromkeys(held, "held")
    env.reconcile()


def release(env: Env) -> None:
    listen(env)
    delete_object(actor=env.operator, kind="StaticIP", name="shop")


def test_an_address_is_not_allotted_while_an_unreachable_node_held_it_last(env: Env) -> None:
    push(env, VIP)
    env.memory[1].unreachable = True
    release(env)
    push(env)
    assert held_addresses() == {VIP: ["n2"]}
    with pytest.raises(Conflict, match=rf"Node n2 has not confirmed a configuration without {VIP}\. Or try again when"):
        save_vip(env, "other", pool="few")
    with pytest.raises(Invalid) as caught:
        save_vip(env, "other", address=VIP)
    assert [(each.pointer, each.code) for each in caught.value.field_errors] == [("/spec/address", "held")]
    env.memory[1].unreachable = False
    push(env)
    env.reconcile()
    assert save_vip(env, "other", pool="few").address == VIP


def test_an_address_that_a_node_may_have_taken_without_a_word_is_not_allotted(env: Env) -> None:
    env.memory[1].unreachable = True
    push(env)
    release(env)
    push(env)
    assert left_behind() == [(VIP, ["n2"])]
    note_report(node_id=Node.objects.get(name="n2").pk, state=env.memory[1].state())
    assert left_behind() == []


def test_an_address_is_free_when_the_node_that_is_gone_is_deleted(env: Env) -> None:
    push(env, VIP)
    env.memory[1].unreachable = True
    release(env)
    push(env)
    delete_object(actor=env.operator, kind="Node", name="n2")
    assert save_vip(env, "other", pool="few").address == VIP


def test_a_static_ip_keeps_the_address_that_nodes_hold_for_it(env: Env) -> None:
    push(env, VIP)
    assert save_vip(env, "shop", address=VIP).address == VIP
    assert left_behind() == []
