"""The bottleneck when a target reached its limit, as far as samples of its servers and nodes tell; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BUSY = 0.8
# Fewer open connections than these come and go by chance.
MANY = 10


@dataclass(frozen=True, slots=True)
class ServerSample:
    """A server while the load was highest: queue, connections, p95 in ms, share of errors, weight, whether up."""

    name: str
    queue: float = 0.0
    connections: float = 0.0
    p95_ms: float | None = None
    error_rate: float = 0.0
    weight: int = 1
    up: bool = True


@dataclass(frozen=True, slots=True)
class NodeSample:
    """A load balancer's node: share of its CPU and of its connections in use (0–1), None where nobody measured."""

    name: str
    cpu: float | None = None
    connections: float | None = None


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """`reason` is node, down, one_server, queue, errors or unknown; `name` of the bottleneck, where it is one thing."""

    reason: str
    message: str
    name: str = ""


def bottleneck(servers: Sequence[ServerSample], nodes: Sequence[NodeSample] = ()) -> Bottleneck:
    """The likeliest cause, the surest first: a node at its end, a server that fell, one that is worse than all, all."""
    for node in nodes:
        for used, what in ((node.cpu, "CPU"), (node.connections, "connections")):
            if used is not None and used >= BUSY:
                share = f"{100 * used:.0f} % of its {what}"
                message = f"The load balancer's node {node.name} had {share} in use: it may be the limit."
                return Bottleneck("node", message, node.name)
    for server in servers:
        if not server.up:
            return Bottleneck("down", f"Server {server.name} failed its health checks under the load.", server.name)
    alone = _alone(servers)
    if alone is not None:
        return alone
    waiting = sum(server.queue for server in servers)
    if waiting >= max(1, len(servers)):
        return Bottleneck(
            "queue", f"All {len(servers)} servers were busy: {waiting:.0f} requests waited for a free one."
        )
    failing = [server for server in servers if server.error_rate > 0.01]
    if failing:
        return Bottleneck("errors", f"{len(failing)} of {len(servers)} servers answered with errors.")
    return Bottleneck("unknown", "The samples show no cause. It may be behind the servers.")


def _alone(servers: Sequence[ServerSample]) -> Bottleneck | None:
    """One server whose errors, queue, latency or open connections stand out from the others by a factor of two."""
    for field, what in (("error_rate", "errors"), ("queue", "waiting requests"), ("p95_ms", "latency")):
        values = sorted(((getattr(server, field) or 0.0, server.name) for server in servers), reverse=True)
        floor = {"error_rate": 0.02, "queue": 2.0, "p95_ms": 1.0}[field]
        if len(values) > 1 and values[0][0] >= floor and values[0][0] > 2 * max(values[1][0], floor / 2):
            return _first(values[0][1], what)
    return _crowded(servers)


def _crowded(servers: Sequence[ServerSample]) -> Bottleneck | None:
    """One that holds many more connections than its weight explains: requests come in and do not come out."""
    working = [server for server in servers if server.weight]
    ranked = sorted(working, key=lambda server: server.connections / server.weight, reverse=True)
    if len(ranked) < 2 or ranked[0].connections < MANY:
        return None
    most, next_most = (server.connections / server.weight for server in ranked[:2])
    return _first(ranked[0].name, "open connections") if most > 2 * next_most else None


def _first(name: str, what: str) -> Bottleneck:
    return Bottleneck("one_server", f"Server {name} was the bottleneck: it had most {what}.", name)
