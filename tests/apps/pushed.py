"""A small environment of two fleets with two nodes each in memory, for tests of what is pushed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.compiler.compile import compile_snapshot
from apps.core.clock import now
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Pool
from apps.definitions.services import apply_document, delete_object, save_object
from apps.drivers.proxy.memory import MemoryNode, forget_memory_nodes, memory_node
from apps.fleet.models import Fleet, Node
from apps.rollouts import services
from apps.rollouts.models import Rollout
from tests.conftest import actor_of
from tests.fixture_cache import CachedFixture

PREFIX = "pushed"


@dataclass(frozen=True)
class Env:
    """The fleet under test, its nodes in memory and who acts."""

    operator: Actor
    fleet: Fleet
    memory: tuple[MemoryNode, MemoryNode]

    def reconcile(self) -> None:
        """What a worker does when it is woken."""
        assert services.reconcile_fleet(fleet_id=self.fleet.pk)

    def node(self, name: str) -> MemoryNode:
        """The node in memory behind a node's name."""
        return memory_node(urlsplit(Node.objects.get(name=name).url).netloc)

    def add_node(self, name: str) -> None:
        """One more node in the fleet."""
        spec = {"fleet": "here", "url": f"memory://{self.memory[0].name}-{name}"}
        save_object(actor=self.operator, kind="Node", name=name, spec=spec)

    def change_pool(self, name: str, balance: str) -> None:
        """A change that needs a reload."""
        save_object(actor=self.operator, kind="Pool", name=name, spec=pool_spec() | {"balance": balance})

    def line_of_pool(self, name: str) -> int:
        """The first line of haproxy.cfg that the pool wrote."""
        owner = f"pool-{Pool.objects.get(name=name).pk}"
        bundle = compile_snapshot(snapshot_of(self.fleet)).output
        return min(line for line, who in bundle.line_owners.items() if who == owner)

    def desired(self) -> int:
        """The desired generation now."""
        return Fleet.objects.get(pk=self.fleet.pk).desired_generation


def pool_spec() -> dict[str, Any]:
    """A pool of two servers."""
    servers = [{"name": "s1", "address": "10.0.0.1", "port": 8080}, {"name": "s2", "address": "10.0.0.2", "port": 8080}]
    return {"protocol": "http", "backends": [{"region": "here", "servers": servers}]}


def document(prefix: str) -> list[dict[str, Any]]:
    """Region, fleet, two nodes in memory, a pool, a load balancer and one route."""
    nodes = [
        {"kind": "Node", "name": f"n{number}", "spec": {"fleet": "here", "url": f"memory://{prefix}-n{number}"}}
        for number in (1, 2)
    ]
    listener = {"name": "http", "protocol": "http", "port": 8080}
    return [
        {"kind": "Region", "name": "here", "spec": {"title": "Here", "latitude": None, "longitude": None}},
        {"kind": "Fleet", "name": "here", "spec": {"region": "here"}},
        *nodes,
        {"kind": "Pool", "name": "blue", "spec": pool_spec()},
        {"kind": "Pool", "name": "green", "spec": pool_spec()},
        {"kind": "LoadBalancer", "name": "front", "spec": {"fleets": ["here"], "listeners": [listener]}},
        {"kind": "Route", "name": "home", "spec": route("/")},
    ]


def route(path: str, pool: str = "blue") -> dict[str, Any]:
    """A route of www.example.org to one pool."""
    action = {"pools": [{"pool": pool, "weight": 100}]}
    return {
        "load_balancer": "front",
        "hostname": "www.example.org",
        "path": path,
        "path_kind": "prefix",
        "action": action,
    }


def add_route(operator: Actor, name: str, path: str, pool: str = "blue") -> None:
    """Create or change a route."""
    save_object(actor=operator, kind="Route", name=name, spec=route(path, pool))


def remove_route(operator: Actor, name: str) -> None:
    """Delete a route."""
    delete_object(actor=operator, kind="Route", name=name)


def remove_object(operator: Actor, kind: str, name: str) -> None:
    """Delete anything."""
    delete_object(actor=operator, kind=kind, name=name)


def make_env(operator: Actor, prefix: str) -> Env:
    """Apply the document."""
    apply_document(actor=operator, objects=document(prefix))
    return Env(operator, Fleet.objects.get(name="here"), (memory_node(f"{prefix}-n1"), memory_node(f"{prefix}-n2")))


class NodesRemembered:
    """An environment whose nodes in memory are remembered as well: what `build` pushed to them they run again."""

    def __init__(self, build: Callable[[], object]) -> None:
        self._rows = CachedFixture(build)
        self._nodes: list[MemoryNode] | None = None

    def put(self) -> None:
        """Have the environment in an empty database; no other node is in memory then."""
        forget_memory_nodes()
        self._rows.put()
        if self._nodes is None:
            self._nodes = [_copied(node) for node in _nodes_of_rows()]
        for node in self._nodes:
            vars(memory_node(node.name)).update(vars(_copied(node)))


def _nodes_of_rows() -> list[MemoryNode]:
    return [memory_node(urlsplit(url).netloc) for url in Node.objects.values_list("url", flat=True)]


def _copied(node: MemoryNode) -> MemoryNode:
    lists = list(node.operations)
    return replace(node, files=dict(node.files), operations=lists, log=dict(node.log), lock=threading.RLock())


APPLIED = NodesRemembered(lambda: make_env(actor_of("operator", Account.Kind.OPERATOR), PREFIX))


def remembered(then: Callable[[Env], object], before: NodesRemembered = APPLIED) -> NodesRemembered:
    """What `then` makes of an environment, of the document unless told otherwise; built once in each process."""
    return NodesRemembered(lambda: then(put_env(before)))


def begin_now(rollout: Rollout) -> None:
    """Have a rollout that is remembered begin now, and its wave watched from now on."""
    watched = now() if rollout.soaking_since else None
    Rollout.objects.filter(pk=rollout.pk).update(created_at=now(), soaking_since=watched)


def put_env(env: NodesRemembered) -> Env:
    """Have it in an empty database."""
    env.put()
    nodes = memory_node(f"{PREFIX}-n1"), memory_node(f"{PREFIX}-n2")
    return Env(actor_of("operator", Account.Kind.OPERATOR), Fleet.objects.get(name="here"), nodes)
