"""Golden documents on this machine: their pools are stub servers, and whoever leaves is asked what the nodes answer."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from apps.compiler.codec import snapshot_from_json
from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.model.servers import HttpVersion, ProxyProtocol
from apps.compiler.model.shared import LoadBalancer, Protocol, Route, Server
from apps.compiler.routing import number_of, winning_route
from apps.importing.replay.asking import requests
from apps.importing.replay.contract import Answer, Request
from apps.importing.replay.running import ask
from tests.golden.test_bundles import CASES

HTTP = (Protocol.HTTP, Protocol.HTTPS)
# Pools speak neither TLS nor HTTP/2 with stubs, and nobody waits for a health check.
PLAIN: dict[str, Any] = {
    "health_check": None, "server_tls": None, "proxy_protocol": ProxyProtocol.NONE, "agent_check": None,
    "http_version": HttpVersion.HTTP1, "slow_start_ms": None, "outlier_ejection": None, "persistence": None,
    "connections": None, "elsewhere": (), "tunnel_timeout_ms": None,
}  # fmt: skip


def snapshot(case: Path) -> Snapshot:
    """The snapshot of a golden document."""
    return snapshot_from_json(json.loads((case / "snapshot.json").read_text()))


def on_stubs(found: Snapshot, stubs: Mapping[str, int]) -> Snapshot:
    """The same with a stub server for each pool."""
    pools = tuple(_on_stub(pool, stubs) for pool in found.pools)
    return replace(found, pools=pools, local_development=True, own_addresses=(), node_settings=None)


def _on_stub(pool: Pool, stubs: Mapping[str, int]) -> Pool:
    protocol = Protocol.TCP if pool.protocol is Protocol.TCP else Protocol.HTTP
    return replace(
        pool,
        **PLAIN,
        protocol=protocol,
        servers=(Server(f"srv-{number_of(pool.id)}", "stub", "127.0.0.1", stubs[pool.label]),),
    )


def names_of_pools(found: Snapshot) -> list[str]:
    """Of all pools."""
    return [pool.label for pool in found.pools]


def asked(front: LoadBalancer) -> list[Request]:
    """Requests at each border of the routes, for each port; hosts with one label more show what wildcards take."""
    routes = [_spec(route) for route in front.routes]
    ports = {listener.port: "x" for listener in front.listeners if listener.protocol in HTTP}
    words = [f"a.b.{route.hostname.lstrip('*.')}" for route in front.routes if route.hostname.startswith("*.")]
    return list(requests(words, ports, routes))


def _spec(route: Route) -> dict[str, Any]:
    return {**asdict(route), "load_balancer": "x"}


def decided_by(front: LoadBalancer, request: Request) -> Route | None:
    """The route that takes a request on our nodes."""
    protocol = next(each.protocol for each in front.listeners if each.port == request.port)
    return winning_route(front, request.host, request.path, request.method, request.headers, protocol, "127.0.0.1")


def answer(front: LoadBalancer, request: Request, ports: Mapping[int, int]) -> Answer:
    """What a client gets there; status 0 where TLS knows nobody of the name."""
    protocol = next(each.protocol for each in front.listeners if each.port == request.port)
    try:
        return ask(request, ports[request.port], encrypted=protocol is Protocol.HTTPS)
    except ssl.SSLError:
        return Answer(0)


__all__ = ["CASES", "answer", "asked", "decided_by", "names_of_pools", "on_stubs", "snapshot"]
