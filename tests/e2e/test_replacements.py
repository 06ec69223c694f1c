"""Servers are replaced while a real HAProxy sends them requests: none fails, and a bad build gets none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from apps.accounts.models import Account
from apps.definitions.models import Pool
from apps.definitions.services import apply_document
from apps.fleet.models import Node
from apps.observe.collect.readings import addresses_of, read_node
from apps.observe.collect.recorder import Recorder
from apps.replacements import advancing, deciding, services
from apps.replacements.models import Replacement
from tests.conformance.real_agent import RealAgent, running_agent
from tests.conftest import actor_of
from tests.e2e.pushing import push_changes
from tests.e2e.replaced_servers import BAD, Load, Machine, document, load, machines

pytestmark = [pytest.mark.e2e, pytest.mark.django_db]
PATIENCE_S = 60.0


@dataclass
class Env:
    """One node with two servers, and what a worker and a collector do."""

    agent: RealAgent
    servers: list[Machine]
    recorder: Recorder = field(default_factory=Recorder)

    def turn(self) -> None:
        """Push what is to be pushed, and look at the node."""
        push_changes()
        [address] = addresses_of(Node.objects.all())
        reading = read_node(address)
        self.recorder.gather([reading])
        self.recorder.show({address.node_id: reading})

    def begin(self, **plan: Any) -> Replacement:
        """Replace servers; they are watched for a moment only."""
        actor = actor_of("operator", Account.Kind.OPERATOR)
        return services.request_replacement(
            actor=actor, pool_id=Pool.objects.get().pk, plan={"watch_s": 0, "health_s": 1, **plan}
        )

    def until_handed_over(self, row: Replacement) -> Replacement:
        """Go on until the owner has something to do, or nothing goes on."""
        deadline = time.monotonic() + PATIENCE_S
        while row.state == Replacement.State.RUNNING and row.step != Replacement.Step.REPLACE:
            assert time.monotonic() < deadline, f"it stays at {row.step}: {row.message}"
            self.turn()
            advancing.advance(row.pk)
            row.refresh_from_db()
        return row

    def replace(self, row: Replacement, build: str) -> Replacement:
        """Be the owner: replace the servers of the batch, and continue."""
        for each in row.servers.filter(state="out"):
            self.servers[int(each.name[1:])].replace(build)
        actor = actor_of("operator", Account.Kind.OPERATOR)
        services.continue_replacement(actor=actor, replacement_id=row.pk, batch=row.batch)
        row.refresh_from_db()
        return self.until_handed_over(row)


@pytest.fixture
def env(db: None, live_redis: str) -> Iterator[Env]:
    """It answers with the old build."""
    with running_agent() as agent, machines(2, "old") as servers:
        actor = actor_of("operator", Account.Kind.OPERATOR)
        apply_document(actor=actor, objects=document("here", {"us-1": (agent.target.url, 0)}, agent.port, servers))
        found = Env(agent, servers)
        found.turn()
        yield found


def test_servers_are_replaced_under_load_and_a_bad_build_stops_at_the_first_batch(env: Env) -> None:
    with load(env.agent.port) as clients:
        row = env.replace(env.until_handed_over(env.begin(servers=["s0"])), "new")
        assert (row.state, [each.build for each in env.servers]) == ("done", ["new", "old"])
        row = env.replace(env.until_handed_over(env.begin()), BAD)
        assert (row.state, [each.build for each in env.servers]) == ("stopped", [BAD, "old"])
        assert row.message == "1 server failed. It was not healthy within 1 s."
    assert clients.failed("old", "new") == {}
    assert clients.outcomes["new"] > 0


@pytest.mark.exhaustive
def test_without_draining_requests_fail(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "_STEPS", {**deciding._STEPS, "drain": lambda _: deciding.Decision("replace")})
    monkeypatch.setattr(advancing, "set_states", lambda *_: None)
    clients: Load
    with load(env.agent.port, clients=8, pause_s=0.0) as clients:
        row = env.until_handed_over(env.begin())
        row.servers.update(set_to="ready")
        for each in env.servers:
            each.replace(BAD)
        env.turn()
        time.sleep(0.5)
    assert clients.failed("old", "new") != {}
