"""A canary on a real HAProxy with real request lines: clients stay with it while it grows, and a bad build holds it."""

from __future__ import annotations

import http.client
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from apps.accounts.models import Account
from apps.canaries import advancing, deciding, services
from apps.canaries.models import Canary
from apps.definitions.models import Route
from apps.definitions.services import apply_document
from apps.drivers.logs.queues import Queues
from apps.drivers.logs.registry import open_logs
from apps.fleet.models import Node
from apps.logs.collect.collector import LogCollector
from tests.conformance.real_agent import RealAgent, running_agent
from tests.conftest import actor_of
from tests.e2e.pushing import push_changes
from tests.e2e.replaced_servers import BAD, HOST, Machine, document, machines

pytestmark = [pytest.mark.e2e, pytest.mark.django_db]
CLIENTS, PATIENCE_S = 1000, 20.0
STEPS = [{"percent": 10, "for_s": 60}, {"percent": 50, "for_s": 60}]


@dataclass
class Env:
    """One node, a pool of each build, and clients that keep their cookies."""

    agent: RealAgent
    new: Machine
    collector: LogCollector
    cookies: dict[int, str] = field(default_factory=dict)
    clients: int = CLIENTS

    def ask(self) -> dict[int, str]:
        """Every client asks once: who answered it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.agent.port, timeout=10)
        found = {}
        for client in range(self.clients):
            cookie = {"cookie": self.cookies[client]} if client in self.cookies else {}
            connection.request("GET", "/", headers={"host": HOST, **cookie})
            response = connection.getresponse()
            found[client] = response.read().decode()
            if sent := response.headers["set-cookie"]:
                self.cookies[client] = sent.partition(";")[0]
        return found

    def until_evaluated(self, row: Canary, requests: int) -> Canary:
        """Lines of so many requests are there, and the time of the step is over."""
        deadline, stored = time.monotonic() + PATIENCE_S, 0
        while stored < requests:
            assert time.monotonic() < deadline, f"{stored} lines of {requests}"
            turn = self.collector.collect_once(Node.objects.get().pk)
            stored += turn.stored if turn else 0
        advancing.advance(row.pk)
        return self.later(row)

    def later(self, row: Canary) -> Canary:
        """A minute later."""
        row.refresh_from_db()
        if row.live_at and row.state == Canary.State.RUNNING:
            Canary.objects.update(live_at=row.live_at - timedelta(seconds=60))
            advancing.advance(row.pk)
        row.refresh_from_db()
        return row

    def begin(self, **plan: Any) -> Canary:
        """A canary to the new build, live on the node."""
        actor = actor_of("operator", Account.Kind.OPERATOR)
        plan = {"pool": "new", "steps": STEPS, "max_slower": 100, **plan}
        row = services.request_canary(actor=actor, route_id=Route.objects.get().pk, plan=plan)
        push_changes()
        advancing.advance(row.pk)
        return row


@pytest.fixture
def env(db: None, live_redis: str, tmp_path: Path) -> Iterator[Env]:
    """All requests go to the old build."""
    with running_agent() as agent, machines(1, "old") as old, machines(1, "new") as new:
        objects = document("here", {"us-1": (agent.target.url, 0)}, agent.port, old)
        pool = next(each for each in objects if each["kind"] == "Pool")
        servers = [{"name": "n0", "address": "127.0.0.1", "port": new[0].port}]
        other = {**pool["spec"], "health_check": None, "backends": [{"region": "here", "servers": servers}]}
        route = objects.pop()
        route["spec"]["action"]["pools"].append({"pool": "new", "weight": 0})
        route["spec"]["rules"] = {"split": {"stick_by": "cookie"}}
        actor = actor_of("operator", Account.Kind.OPERATOR)
        apply_document(actor=actor, objects=[*objects, {"kind": "Pool", "name": "new", "spec": other}, route])
        collector = LogCollector(open_logs(settings.LOGS_URL), Queues(tmp_path / "queues"))
        found = Env(agent, new[0], collector)
        push_changes()
        collector.renew()
        yield found


def test_clients_stay_with_a_canary_that_grows_and_a_bad_build_holds_it(env: Env) -> None:
    assert set(env.ask().values()) == {"old"}
    row = env.begin()
    first = env.ask()
    assert abs(Counter(first.values())["new"] - CLIENTS // 10) < 40
    assert env.until_evaluated(row, 2 * CLIENTS).step == 1
    push_changes()
    advancing.advance(row.pk)
    grown = env.ask()
    assert abs(Counter(grown.values())["new"] - CLIENTS // 2) < 70
    assert {grown[client] for client, build in first.items() if build == "new"} == {"new"}
    env.new.replace(BAD)
    env.ask()
    assert env.until_evaluated(row, 2 * CLIENTS).state == "held"
    assert "responses are 5xx; the canary allows 5 %." in row.message
    services.abort_canary(actor=actor_of("operator", Account.Kind.OPERATOR), canary_id=row.pk)
    push_changes()
    assert set(env.ask().values()) == {"old"}


@pytest.mark.exhaustive
def test_of_ten_thousand_clients_the_share_is_within_a_percentage_point_and_nobody_changes_sides(env: Env) -> None:
    env.clients = 10_000
    row = env.begin(steps=[{"percent": 10, "for_s": 60}, {"percent": 90, "for_s": 60}])
    first, again = env.ask(), env.ask()
    assert first == again
    assert abs(Counter(first.values())["new"] - 1000) < 100
    assert env.until_evaluated(row, 2 * env.clients).step == 1
    push_changes()
    advancing.advance(row.pk)
    grown = env.ask()
    assert grown == env.ask()
    assert abs(Counter(grown.values())["new"] - 9000) < 100
    assert {grown[client] for client, build in first.items() if build == "new"} == {"new"}
    assert set(grown.values()) == {"old", "new"}, "no request failed"
    print(Counter(first.values()), Counter(grown.values()))


@pytest.mark.exhaustive
def test_without_the_judgement_the_bad_build_gets_everything(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "_worse", lambda _: "")
    env.new.replace(BAD)
    row = env.begin(steps=[{"percent": 50, "for_s": 60}])
    env.ask()
    assert env.until_evaluated(row, CLIENTS).state == "promoted"
    push_changes()
    assert set(env.ask().values()) == {BAD}
