"""Thirty servers of two nodes are replaced under load, whoever is killed on the way: no request fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.models import Pool
from apps.definitions.services import apply_document
from apps.replacements import services
from apps.replacements.models import Replacement
from tests.conftest import actor_of
from tests.database_url import database_url
from tests.e2e.installation import OFFSETS, Installation, broker, built, wait_until
from tests.e2e.replaced_servers import BAD, Load, Machine, document, load, machines

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(900)]
NODES, SERVERS, AT_ONCE = ("us-1", "us-2"), 30, 6
LONG_S = 600.0


@dataclass(frozen=True)
class Env:
    """What runs, and the servers behind it."""

    installation: Installation
    servers: list[Machine]

    def begin(self) -> Replacement:
        """Replace all of them, six at once."""
        plan = {"batch_size": AT_ONCE, "watch_s": 3, "health_s": 20, "drain_s": 20}
        return services.request_replacement(actor=operator(), pool_id=Pool.objects.get().pk, plan=plan)

    def carry_out(self, row: Replacement, build: str, after_hand_over: Callable[[int], None]) -> Replacement:
        """Be the owner of each batch until nothing goes on; `after_hand_over` is told the number of each."""
        ends = time.monotonic() + LONG_S
        while time.monotonic() < ends:
            row.refresh_from_db()
            if row.state != Replacement.State.RUNNING:
                return row
            if row.step == Replacement.Step.REPLACE:
                for each in row.servers.filter(state="out"):
                    self.servers[int(each.name[1:])].replace(build)
                services.continue_replacement(actor=operator(), replacement_id=row.pk, batch=row.batch)
                after_hand_over(row.batch)
            time.sleep(0.1)
        raise AssertionError(f"after {LONG_S:.0f} s it is at {row.step}: {row.message}")


def operator() -> Actor:
    """Who deploys."""
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.fixture(scope="module")
def db(lasting_db: None) -> None:
    """One database for all processes of this module."""


@pytest.fixture
def env(db: None) -> Iterator[Env]:
    """Both nodes answer with the old build, and a collector has looked at them."""
    names = ("redis", *NODES, "worker", "schedule", "collect")
    with (
        machines(SERVERS, "old") as servers,
        built(database_url(), *names, reload_gap=0.5) as installation,
        broker(installation.redis_url),
    ):
        nodes = {node: (installation.target(node).url, OFFSETS[node]) for node in NODES}
        apply_document(actor=operator(), objects=document("us", nodes, installation.base_port, servers))
        try:
            wait_until(lambda: all(installation.get(node, "/") == (200, "old") for node in NODES), "both nodes answer")
            yield Env(installation, servers)
        finally:
            print(*(f"{row} {row.state} {row.step} {row.message}" for row in Replacement.objects.all()), sep="\n")
            print(installation.logs())


def test_thirty_servers_are_replaced_without_a_failed_request_whoever_is_killed(env: Env) -> None:
    def kill(batch: int) -> None:
        name = {1: "worker", 2: "schedule", 3: "worker", 4: "collect"}.get(batch, "")
        if name:
            env.installation.kill(name)
            env.installation.start(name)

    ports = tuple(env.installation.ports[node] for node in NODES)
    clients: Load
    with load(*ports, clients=8, pause_s=0.02) as clients:
        began = time.monotonic()
        row = env.carry_out(env.begin(), "new", kill)
        took = time.monotonic() - began
        print(f"{SERVERS} servers in {row.batch} batches: {took:.0f} s, {sum(clients.outcomes.values())} requests")
        assert (row.state, {each.build for each in env.servers}) == ("done", {"new"}), row.message
        assert clients.failed("old", "new") == {}
        bad = env.carry_out(env.begin(), BAD, lambda _: None)
    assert (bad.state, bad.batch) == ("stopped", 1), bad.message
    assert sum(each.build == BAD for each in env.servers) == AT_ONCE
    assert clients.failed("old", "new") == {}
