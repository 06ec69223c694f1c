"""The health of pools, servers, nodes and fleets, for those who own them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.clock import database_now, now
from apps.observe import services
from apps.observe.collect.fitness import evaluate_clock
from apps.observe.evaluate.conditions import Reason, Type
from apps.observe.models import CollectorLease, Condition, Console, NodeReport
from tests.apps.observe_env import Env
from tests.apps.overflow_env import make_spilling
from tests.interfaces.api.test_api_objects import Api, assert_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(live_redis: object, still_clock: None) -> Env:
    """Traffic on us-1 and eu-1, and a collector that looks."""
    found = make_spilling()
    CollectorLease.objects.create(shard=0, holder="collector", until=now() + timedelta(hours=1))
    return found


def note(kind: str, pk: int, of: Type, reason: Reason, *, status: bool) -> None:
    """A condition as the collector writes it."""
    fields: dict[str, Any] = {"message": "server us-1 is down", "since": now()}
    Condition.objects.create(object_kind=kind, object_id=pk, type=of, reason=reason, status=status, **fields)


def health(actor: Actor, path: str) -> dict[str, Any]:
    """The answer to the program of this actor."""
    found: dict[str, Any] = Api(actor)("GET", path).json()
    return found


def test_the_owner_of_a_pool_reads_its_status_its_traffic_and_each_server_on_each_node(env: Env) -> None:
    pool = env.pools["acme"]
    note("pool", pool.pk, Type.HEALTHY, Reason.SOME_SERVERS_DOWN, status=False)
    body = health(env.acme, "pools/acme/acme-web/health")
    assert body == health(env.acme, f"pools/{pool.pk}/health") | {"traffic": body["traffic"]}
    assert (body["pool"], body["status"], body["message"]) == ("acme/acme-web", "degraded", "server us-1 is down")
    assert (body["servers_total"], body["traffic"]["requests_rps"] > 10) == (4, True)
    servers = {(server["region"], server["node"]) for server in body["servers"]}
    assert servers == {(region, f"node {number}") for region in ("eu", "us") for number in (1, 2)}
    assert_problem(Api(env.globex)("GET", f"pools/{pool.pk}/health"), 404)


def test_what_no_collector_looks_at_is_unknown(env: Env) -> None:
    note("pool", env.pools["acme"].pk, Type.HEALTHY, Reason.ALL_SERVERS_UP, status=True)
    assert health(env.acme, "pools/acme/acme-web/health")["status"] == "healthy"
    CollectorLease.objects.update(until=now() - timedelta(minutes=1))
    assert health(env.acme, "pools/acme/acme-web/health")["status"] == "unknown"


def test_operators_read_nodes_and_fleets_and_customers_do_not(env: Env) -> None:
    NodeReport.objects.update_or_create(
        node=env.nodes[2], defaults={"seen_at": now(), "serving": True, "haproxy_version": "2.6.12"}
    )
    node = health(env.operator, "nodes/us-1/health")
    assert (node["status"], node["haproxy_version"]) == ("healthy", "2.6.12")
    fleet = health(env.operator, "fleets/us-fleet/health")
    assert [(each["node"], each["status"]) for each in fleet["nodes"]] == [("us-1", "healthy"), ("us-2", "unknown")]
    for path in ("nodes/us-1/health", "fleets/us-fleet/health"):
        assert_problem(Api(env.acme)("GET", path), 404)


def clocks(env: Env, node_s: float, console_s: float) -> dict[str, list[Any]]:
    """What the API says of the clocks of a node and of a console that are off by so much."""
    Console.objects.update_or_create(name="console-1", defaults={"heard_at": database_now()})
    pk = Console.objects.get().pk
    verdicts = [evaluate_clock("node", env.nodes[2].pk, node_s), evaluate_clock("console", pk, console_s)]
    services.store_verdicts(verdicts, now())
    (node,) = (each for each in health(env.operator, "fleets/us-fleet/health")["nodes"] if each["conditions"])
    assert node["conditions"] == health(env.operator, f"nodes/{node['node']}/health")["conditions"]
    (console,) = health(env.operator, "consoles/health")["consoles"]
    found = {node["node"]: node["conditions"], console["console"]: console["conditions"]}
    return {
        name: [each["status"], each["reason"], each["message"]]
        for name, conditions in found.items()
        for each in conditions
        if each["type"] == "ClockRight"
    }


def test_a_clock_of_a_node_or_console_that_is_off_by_more_than_a_second_is_a_condition(env: Env) -> None:
    said = "Its clock is {} the database's. Let a time service set it."
    assert clocks(env, 600, -3) == {
        "us-1": [False, "ClockOff", said.format("10 min ahead of")],
        "console-1": [False, "ClockOff", said.format("3 s behind")],
    }
    right = [True, "ClockAgrees", "Its clock agrees with the database's."]
    assert clocks(env, 0.9, -0.9) == {"us-1": right, "console-1": right}


def test_consoles_are_the_operators_business(env: Env) -> None:
    clocks(env, 0, 0)
    assert health(env.acme, "consoles/health") == {"consoles": []}
