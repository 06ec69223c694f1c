"""Where static IPs are now, by the word of the nodes, for operators."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from apps.core.clock import now
from apps.drivers.proxy.agent import read_node_state
from apps.drivers.proxy.contract import NodeTarget, Unreachable
from apps.drivers.proxy.memory import forget_memory_nodes, memory_node
from apps.drivers.proxy.registry import open_driver
from apps.observe.models import NodeReport
from apps.observe.services import note_report, report_of, store_reports
from apps.observe.show.address_locations import address_locations
from tests.apps.observe_env import Env, make_env, state

VIP = "10.9.0.7"


@pytest.fixture
def env(db: None) -> Iterator[Env]:
    forget_memory_nodes()
    yield make_env()
    forget_memory_nodes()


def said(env: Env, *words: str, ago: float = 0.0) -> None:
    """The first nodes say one word each about the address."""
    at = now() - timedelta(seconds=ago)
    store_reports(
        report_of(node.pk, state(addresses={VIP: word}), at) for node, word in zip(env.nodes, words, strict=False)
    )


def words_of(env: Env) -> dict[str, str]:
    """Name of a node → what is shown of the address."""
    return {each.node: each.status for each in address_locations(env.operator).get(VIP, [])}


def test_every_node_is_shown_with_its_last_word(env: Env) -> None:
    first, second = env.nodes[:2]
    said(env, "held", "standby")
    assert words_of(env) == {first.name: "held", second.name: "standby"}
    said(env, "standby", "held")
    assert words_of(env) == {first.name: "standby", second.name: "held"}


def test_a_node_that_was_not_heard_of_lately_is_not_said_to_hold_anything(env: Env) -> None:
    said(env, "held", ago=60)
    assert words_of(env) == {env.nodes[0].name: "unknown"}


def test_customers_do_not_see_nodes(env: Env) -> None:
    said(env, "held")
    assert address_locations(env.acme) == {}


def test_what_a_node_in_memory_says_arrives(env: Env) -> None:
    node = env.nodes[0]
    memory_node("somewhere").addresses = {VIP: "announced"}
    note_report(node_id=node.pk, state=open_driver(NodeTarget(node.name, "memory://somewhere")).read_state())
    assert NodeReport.objects.get(node=node).addresses == {VIP: "announced"}


@pytest.mark.parametrize(
    "addresses", [["10.9.0.7"], {"10.9.0.7": "mine"}, {"10.9.0.7": 1}, {"10.9.0.7": ["held"]}, "held"]
)
def test_an_agent_that_says_something_else_is_no_agent_of_ours(addresses: object) -> None:
    answer = {
        "generation": 1, "digest": "", "on_disk": "", "haproxy_version": "", "agent_version": "", "boot_id": "",
        "workers": 0, "serving": False, "reloads": 0,
    }  # fmt: skip
    assert read_node_state(answer).addresses == {}
    assert read_node_state({**answer, "addresses": {VIP: "held"}}).addresses == {VIP: "held"}
    with pytest.raises(Unreachable, match="cannot be read"):
        read_node_state({**answer, "addresses": addresses})
