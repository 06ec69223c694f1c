"""A pool as a backend service, each of its regions as a group of endpoints with a capacity.

| ours | Google's |
|---|---|
| pool | `google_compute_backend_service`, global, `EXTERNAL_MANAGED` |
| backend of a region | hybrid group (`NON_GCP_PRIVATE_IP_PORT`) in the zone that the stack names for the region |
| server | endpoint of the group, by IPv4 address; only ready ones with a weight above 0 |
| limit in requests/s | `max_rate`, for each server `max_rate_per_endpoint`; a target that the waterfall fills first |
| limit in connections (tcp) | `max_connections`, for each server `max_connections_per_endpoint` |
| capacity scaler | `capacity_scaler`; 0 drains the region |
| overflow | the waterfall by region, which is what a service without a `serviceLbPolicy` does: nearest first, then on |
| balance | `locality_lb_policy`; source is session affinity by client address |

Every group must have a target capacity, so a backend without a limit gets UNBOUNDED for each endpoint.
Sources: https://cloud.google.com/load-balancing/docs/backend-service (balancing modes, target capacity),
https://cloud.google.com/load-balancing/docs/service-lb-policy (waterfall by region is the default).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

from apps.compiler.model.servers import CheckKind
from apps.compiler.model.shared import Balance, HealthCheck, LimitKind, LimitScope, Protocol, Server, ServerState
from apps.compiler.model.stack import CloudBackend, CloudPool, StackSnapshot
from apps.compiler.targets.terraform.document import terraform_name
from apps.compiler.targets.terraform.expressions import literal, reference, renewed_name
from apps.compiler.targets.terraform.google.resources import (
    LONGEST_NAME,
    NOBODY,
    SCHEME,
    Resource,
    id_of,
    resource,
    stack_resource,
)
from apps.compiler.targets.terraform.google.servers import (
    HASHED,
    affinity_of,
    is_hashed,
    outlier_detection,
    protocol_of,
)

Block = dict[str, Any]

SERVICE = "google_compute_backend_service"
GROUP = "google_compute_network_endpoint_group"
ENDPOINTS = "google_compute_network_endpoints"
CHECK = "google_compute_health_check"

# Requests/s or connections for each endpoint of a backend without a limit.
UNBOUNDED = 1_000_000
LONGEST_INTERVAL_S = 300
MOST_CHECKS = 10
LONGEST_DRAIN_S = 3600

LOCALITY = {
    Balance.ROUNDROBIN: "ROUND_ROBIN",
    Balance.LEASTCONN: "LEAST_REQUEST",
    Balance.RANDOM: "RANDOM",
    Balance.SOURCE: "MAGLEV",
}
_LOGGED: Block = {"log_config": [{"enable": True, "sample_rate": 1}]}


def pool_resources(snapshot: StackSnapshot, pool: CloudPool) -> Iterator[Resource]:
    """The pool's health check, the groups of its regions, its backend service."""
    zones = dict(snapshot.network.zones)
    placed = [backend for backend in pool.backends if backend.region in zones]
    yield resource(CHECK, snapshot.id, pool.id, _check(pool.health_check, protocol_of(pool)))
    for backend in placed:
        yield from _group(snapshot, backend, zones[backend.region])
    yield resource(SERVICE, snapshot.id, pool.id, _service(pool, placed))


def nobody(snapshot: StackSnapshot) -> Iterator[Resource]:
    """A service without servers: URL maps must name one also where they answer by themselves."""
    yield stack_resource(CHECK, snapshot.id, NOBODY, _check(None))
    body: Block = {"load_balancing_scheme": SCHEME, "protocol": "HTTP", "health_checks": [id_of(CHECK, NOBODY)]}
    yield stack_resource(SERVICE, snapshot.id, NOBODY, body)


def ready_servers(backend: CloudBackend) -> list[Server]:
    """Those that take traffic; one that is drained leaves the group and finishes what it has."""
    ready = (server for server in backend.servers if server.state is ServerState.READY and server.weight > 0)
    return [server for server in ready if not server.backup]


def whole_seconds(milliseconds: int) -> int:
    """Google counts in seconds: the next whole one."""
    return ceil(milliseconds / 1000)


def _service(pool: CloudPool, placed: list[CloudBackend]) -> Block:
    # A region alone cannot be drained there: without any group nobody is served, which is the same.
    served = placed if any(backend.capacity_scaler > 0 for backend in placed) else []
    timeout = whole_seconds(pool.server_timeout_ms)
    http = pool.protocol is not Protocol.TCP
    locality = HASHED if is_hashed(pool) else LOCALITY[pool.balance]
    body: Block = {
        "load_balancing_scheme": SCHEME,
        "protocol": protocol_of(pool),
        "timeout_sec": timeout,
        "connection_draining_timeout_sec": min(timeout, LONGEST_DRAIN_S),
        "health_checks": [id_of(CHECK, pool.id)],
        **affinity_of(pool),
        **({"locality_lb_policy": locality} if http else {}),
        **outlier_detection(pool),
        **_LOGGED,
    }
    return {**body, "backend": [_backend(backend, http=http) for backend in served]} if served else body


def _backend(backend: CloudBackend, *, http: bool) -> Block:
    return {
        "group": reference(GROUP, terraform_name(backend.id), "self_link"),
        "balancing_mode": "RATE" if http else "CONNECTION",
        **_capacity(backend, "max_rate" if http else "max_connections"),
        "capacity_scaler": backend.capacity_scaler,
    }


def _capacity(backend: CloudBackend, word: str) -> Block:
    if backend.limit.kind is LimitKind.NONE:
        return {f"{word}_per_endpoint": UNBOUNDED}
    scope = "_per_endpoint" if backend.limit.scope is LimitScope.SERVER else ""
    return {f"{word}{scope}": backend.limit.value}


def _group(snapshot: StackSnapshot, backend: CloudBackend, zone: str) -> Iterator[Resource]:
    """Created before the old one goes, since a group that is in use cannot be destroyed."""
    network = snapshot.network.vpc
    group = {
        **renewed_name(snapshot.id, backend.id, forced_by=(network,), longest=LONGEST_NAME),
        "network_endpoint_type": "NON_GCP_PRIVATE_IP_PORT",
        "network": literal(network),
        "zone": literal(zone),
    }
    yield resource(GROUP, snapshot.id, backend.id, group)
    endpoints = [{"ip_address": server.address, "port": server.port} for server in ready_servers(backend)]
    if endpoints:
        members = {
            "network_endpoint_group": reference(GROUP, terraform_name(backend.id), "name"),
            "zone": literal(zone),
            "network_endpoints": sorted(endpoints, key=lambda each: (each["ip_address"], each["port"])),
        }
        yield Resource(ENDPOINTS, terraform_name(backend.id), backend.id, members)


def check_times(check: HealthCheck) -> tuple[int, int, int, int]:
    """Seconds between checks and for an answer, good and bad ones in a row, as near as Google comes."""
    interval = min(whole_seconds(check.interval_ms), LONGEST_INTERVAL_S)
    timeout = min(whole_seconds(check.timeout_ms), interval)
    return interval, timeout, min(check.rise, MOST_CHECKS), min(check.fall, MOST_CHECKS)


def _check(check: HealthCheck | None, protocol: str = "HTTP") -> Block:
    """Google serves no group without a check: a pool without one gets a bare connect."""
    asked = check or HealthCheck()
    words = ("check_interval_sec", "timeout_sec", "healthy_threshold", "unhealthy_threshold")
    body: Block = dict(zip(words, check_times(asked), strict=True))
    port: Block = {"port_specification": "USE_SERVING_PORT"}
    if asked.port:
        port = {"port_specification": "USE_FIXED_PORT", "port": asked.port}
    if asked.kind is CheckKind.GRPC:
        service = {"grpc_service_name": asked.service} if asked.service else {}
        kind = "grpc_health_check" if protocol == "HTTP" else "grpc_tls_health_check"
        body[kind] = [{**port, **service}]
    elif asked.path:
        host = {"host": asked.host} if asked.host else {}
        kind = f"{protocol.lower()}_health_check" if protocol in ("HTTPS", "HTTP2") else "http_health_check"
        body[kind] = [{**port, "request_path": literal(asked.path), **host}]
    else:
        said = {"request": asked.send.replace("\n", "\r\n"), "response": asked.expect}
        body["tcp_health_check"] = [{**port, **{name: literal(text) for name, text in said.items() if text}}]
    return body
