"""An environment whose pool can be loaded: nodes in memory take bypass tokens, servers run on this machine."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django import db

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname
from apps.capacity.models import Run
from apps.capacity.run import bypass_tokens, facts
from apps.capacity.run.abort_conditions import Environment
from apps.core.clock import now
from apps.definitions.models import CapacityTest
from apps.definitions.services import apply_document, save_object
from apps.fleet.models import Fleet, Node
from apps.observe.collect.deltas import Counts, Key
from apps.observe.live import store as live
from apps.observe.live.store import LiveNode
from apps.rollouts import services as rollouts
from tests.apps.pushed import NodesRemembered
from tests.conftest import actor_of

HOSTNAME = "shop.acme.example"
QUOTAS = {"test_runs_at_once": 1, "test_rate": 1000, "test_connections": 500, "test_seconds": 600}


def document(prefix: str, listener: int, server: int) -> list[dict[str, Any]]:
    """Two regions of local development, a pool of acme in both, one of globex, and routes to them."""
    regions = ("here", "there")
    servers = [{"name": "one", "address": "127.0.0.1", "port": server}]
    limit = {"kind": "rate", "value": 10, "scope": "backend"}
    pool = {"protocol": "http", "backends": [{"region": name, "servers": servers, "limit": limit} for name in regions]}
    listeners = [{"name": "http", "protocol": "http", "port": listener}]
    route = {"load_balancer": "front", "path": "/"}
    return [
        {"kind": "Account", "name": "acme", "spec": {"title": "Acme", "kind": "customer", "quotas": QUOTAS}},
        {"kind": "Account", "name": "globex", "spec": {"title": "Globex", "kind": "customer"}},
        *({"kind": "Region", "name": name, "spec": {"title": name.title()}} for name in regions),
        *(
            {"kind": "Fleet", "name": name, "spec": {"region": name, "local_development": True}} for name in regions
        ),
        *(
            {"kind": "Node", "name": name, "spec": {"fleet": name, "url": f"memory://{prefix}-{name}"}}
            for name in regions
        ),
        {"kind": "Pool", "name": "shop", "account": "acme", "spec": pool},
        {"kind": "Pool", "name": "api", "account": "globex", "spec": pool},
        {"kind": "LoadBalancer", "name": "front", "spec": {"fleets": list(regions), "listeners": listeners}},
        *(
            {
                "kind": "Route", "name": name, "account": account,
                "spec": route | {"hostname": host, "action": {"pools": [{"pool": name}]}},
            }
            for name, account, host in (("shop", "acme", HOSTNAME), ("api", "globex", "api.globex.example"))
        ),
    ]  # fmt: skip


@dataclass
class Watched:
    """The nodes of the setup; `rows` and `in_use` are what is observed on each of them, `silent` ends the observing."""

    rows: dict[Key, Counts] = field(default_factory=dict)
    in_use: dict[str, float] = field(default_factory=dict)
    silent: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def serve(self) -> None:
        """What workers and the collector do: push what is wanted, read the nodes."""
        while not self.ended.wait(0.05):
            self.push()
            self.read()
        db.connections.close_all()

    def push(self) -> None:
        """What a worker does with each fleet that waits for it."""
        for pk in rollouts.fleets_to_sweep():
            rollouts.reconcile_fleet(fleet_id=pk)

    def read(self) -> None:
        """One look of the collector at every node."""
        if not self.silent:
            rows = {("backend", "pool-0"): Counts(seconds=10.0), **self.rows}
            window = LiveNode(now().timestamp(), rows, self.in_use)
            live.write(dict.fromkeys(Node.objects.values_list("pk", flat=True), window), {})


def make(prefix: str, *, listener: int = 18080, server: int = 19101) -> Actor:
    """Apply the document; acme's editor is returned, whose name is verified."""
    operator = actor_of("operator", Account.Kind.OPERATOR)
    apply_document(actor=operator, objects=document(prefix, listener, server))
    Hostname.objects.filter(name=HOSTNAME).update(verification=Hostname.Verification.DNS)
    for fleet in Fleet.objects.all():
        assert rollouts.reconcile_fleet(fleet_id=fleet.pk)
    return actor_of("acme", Account.Kind.CUSTOMER)


def put(*, listener: int = 18080, server: int = 19101) -> Actor:
    """The same in an empty database, built once in each process."""
    _remembered(listener, server).put()
    return actor_of("acme", Account.Kind.CUSTOMER)


@functools.cache
def _remembered(listener: int, server: int) -> NodesRemembered:
    return NodesRemembered(lambda: make(f"loaded-{listener}-{server}", listener=listener, server=server))


@contextlib.contextmanager
def watched() -> Iterator[Watched]:
    """The nodes are pushed to and read as long as this lasts, by a thread that sees what is committed."""
    found = Watched()
    found.read()
    thread = threading.Thread(target=found.serve, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.ended.set()
        thread.join(10)


def stepwise(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The same in the thread of the run: nodes are pushed to when it waits for them, and read before it looks."""
    found, wait, look = Watched(), bypass_tokens.wait_until_live, facts.look
    found.read()

    def push_and_wait(run: Run, seconds: float) -> bool:
        found.push()
        return wait(run, seconds)

    def read_and_look(watch: facts.Watch) -> Environment:
        found.read()
        return look(watch)

    monkeypatch.setattr(bypass_tokens, "wait_until_live", push_and_wait)
    monkeypatch.setattr(facts, "look", read_and_look)
    return found


def a_test(
    actor: Actor,
    name: str = "nightly",
    *,
    server: str = "one",
    region: str = "here",
    pool: str = "shop",
    account: str = "acme",
    **parts: Any,
) -> CapacityTest:
    """A test of acme's shop; an empty server means through the nodes."""
    target = {"pool": pool, "region": region, "hostname": HOSTNAME, "server": server}
    guards = {"max_rate": 50, "max_connections": 100, "max_duration_s": 200}
    spec = {"target": target, "guards": guards, **parts}
    row: CapacityTest = save_object(actor=actor, kind="CapacityTest", name=name, account=account, spec=spec)
    return row
