"""Pools as backends, servers as their lines, fixed responses as backends of their own."""

from __future__ import annotations

from apps.compiler.limits import slots_per_node
from apps.compiler.model.fleet import Pool
from apps.compiler.model.shared import Balance, FixedResponse, Route, Server, ServerState
from apps.compiler.targets.haproxy.overflow.admission import PEERS
from apps.compiler.targets.haproxy.servers.connections import add_bounds, add_repetition, add_way, milliseconds
from apps.compiler.targets.haproxy.servers.health import add_health
from apps.compiler.targets.haproxy.servers.own_region import OwnRegion
from apps.compiler.targets.haproxy.servers.persistence import add_persistence, cookie_of
from apps.compiler.targets.haproxy.servers.tls import add_tls
from apps.compiler.targets.haproxy.settings import HTTP
from apps.compiler.targets.haproxy.writer import Argument, Call, Document, Opaque, Section, Value

_ALGORITHMS = {
    Balance.ROUNDROBIN: "roundrobin",
    Balance.LEASTCONN: "leastconn",
    Balance.SOURCE: "source",
    Balance.RANDOM: "random",
}


def add_pool(document: Document, pool: Pool, defaults: str, region: OwnRegion) -> Section:
    """One backend; without servers HAProxy answers 503 for it."""
    section = document.section("backend", pool.id, "from", defaults, owner=pool.id)
    section.add("balance", _ALGORITHMS[pool.balance])
    if pool.balance is Balance.SOURCE:
        section.add("hash-type", "consistent")  # the map-based hash refuses weights at run time
    _add_way(section, pool)
    add_persistence(section, pool, region, PEERS)
    add_health(section, pool)
    add_bounds(section, pool, region)
    for server in _in_order(pool):
        section.add("server", *_server(server), *cookie_of(pool, server, region), owner=server.id)
    return section


def _add_way(section: Section, pool: Pool) -> None:
    """What a pool and its twin say alike."""
    section.add("timeout", "connect", milliseconds(pool.connect_timeout_ms))
    section.add("timeout", "server", milliseconds(pool.server_timeout_ms))
    section.add("timeout", "queue", milliseconds(pool.queue_timeout_ms))
    add_repetition(section, pool)
    add_way(section, pool)
    add_tls(section, pool)


def _in_order(pool: Pool) -> list[Server]:
    return sorted(pool.servers, key=lambda server: (len(server.id), server.id))


def _server(server: Server) -> tuple[Argument, ...]:
    """Name, address and state.

    Drain is weight 0, which a runtime `set weight` and a restart both understand in the same way; maintenance
    is `disabled`, which `set server state` turns on and off.
    """
    host = f"[{server.address}]" if ":" in server.address else server.address
    weight = 0 if server.state is ServerState.DRAIN else server.weight
    address = Call((Value(host), ":", Value(str(server.port))))
    disabled = ("disabled",) if server.state is ServerState.MAINTENANCE else ()
    backup = ("backup",) if server.backup else ()
    return (server.id, address, "weight", Value(str(weight)), *disabled, *backup)


def add_queue(document: Document, pool: Pool, defaults: str, region: OwnRegion) -> Section:
    """The pool's twin in which requests wait when every region is full: each server takes a few, the rest queue."""
    section = document.section("backend", pool.id.replace("pool-", "queue-"), "from", defaults, owner=pool.id)
    section.add("balance", _ALGORITHMS[Balance.LEASTCONN])
    _add_way(section, pool)
    add_persistence(section, pool, region, PEERS, twin=True)
    slots = slots_per_node(pool.limit, pool.capacity_scaler, len(pool.servers), region.nodes)
    if pool.connections is not None:
        slots = min(slots, region.part_of(pool.connections.max_per_server))
    add_bounds(section, pool, region, slots)
    tracks = pool.health_check is not None or pool.agent_check is not None
    for server in _in_order(pool):
        tracked = ("track", f"{pool.id}/{server.id}") if tracks else ()
        cookie = cookie_of(pool, server, region)
        section.add("server", *_server(server), "maxconn", str(slots), *tracked, *cookie, owner=server.id)
    return section


def add_fixed_response(document: Document, route: Route, response: FixedResponse) -> None:
    """A backend that answers by itself, named after its route."""
    section = document.section("backend", route.id, "from", HTTP, owner=route.id)
    answer: list[Argument] = ["return", "status", Value(str(response.status))]
    if response.body:
        answer += ["content-type", Value(response.content_type), "string", Opaque(response.body)]
    section.add("http-request", *answer)
