"""A small world of two fleets with two nodes each in memory, for tests of what is pushed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.accounts.actors import Actor
from apps.definitions.services import apply_document, delete_object, save_object
from apps.drivers.proxy.memory import MemoryNode, memory_node
from apps.fleet.models import Fleet


@dataclass(frozen=True)
class World:
    """The fleet under test, its nodes in memory and who acts."""

    operator: Actor
    fleet: Fleet
    memory: tuple[MemoryNode, MemoryNode]

    def desired(self) -> int:
        """The desired generation now."""
        return Fleet.objects.get(pk=self.fleet.pk).desired_generation


def document(prefix: str) -> list[dict[str, Any]]:
    """Region, fleet, two nodes in memory, a pool, a load balancer and one route."""
    nodes = [
        {"kind": "Node", "name": f"n{number}", "spec": {"fleet": "here", "url": f"memory://{prefix}-n{number}"}}
        for number in (1, 2)
    ]
    servers = [{"name": "s1", "address": "10.0.0.1", "port": 8080}, {"name": "s2", "address": "10.0.0.2", "port": 8080}]
    pool = {"protocol": "http", "backends": [{"region": "here", "servers": servers}]}
    listener = {"name": "http", "protocol": "http", "port": 8080}
    return [
        {"kind": "Region", "name": "here", "spec": {"title": "Here", "latitude": None, "longitude": None}},
        {"kind": "Fleet", "name": "here", "spec": {"region": "here"}},
        *nodes,
        {"kind": "Pool", "name": "blue", "spec": pool},
        {"kind": "Pool", "name": "green", "spec": pool},
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


def make_world(operator: Actor, prefix: str) -> World:
    """Apply the document."""
    apply_document(actor=operator, objects=document(prefix))
    return World(operator, Fleet.objects.get(name="here"), (memory_node(f"{prefix}-n1"), memory_node(f"{prefix}-n2")))
