"""What AWS cannot do of what a pool says of the way to its servers.

Sources: the Elastic Load Balancing API reference (TargetGroupAttribute, CreateTargetGroup, Matcher), the user guides'
pages "Target groups for your Application Load Balancers" (protocol version, slow start, sticky sessions) and "Target
groups for your Network Load Balancers" (PROXY protocol version 2). Target groups of HTTP/2 and gRPC were not tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from apps.compiler.model.servers import (
    CheckKind,
    CookieMode,
    HttpVersion,
    OnOverflow,
    PersistBy,
    Persistence,
    ProxyProtocol,
    Reuse,
    ServerTls,
    TlsVersion,
    Verify,
)
from apps.compiler.model.shared import Balance, HealthCheck, Listener, Protocol, Route
from apps.compiler.model.stack import CloudPool
from apps.compiler.portability.incompatibilities import Incompatibility, Target, lossy, refused
from apps.compiler.portability.table.asking import told
from apps.compiler.portability.table.cells import Column
from apps.compiler.targets.terraform.aws import limits

_refused = partial(refused, Target.AWS)
_lossy = partial(lossy, Target.AWS)


def column_of(thing: Route | Listener | CloudPool) -> Column:
    """Which load balancer of AWS it is of: an NLB for tcp, else an ALB."""
    return Column.NLB if not isinstance(thing, Route) and thing.protocol is Protocol.TCP else Column.ALB


def _told(pool: CloudPool, code: str, field: str, value: str = "") -> Incompatibility:
    return told(column_of(pool), pool, code, field, value)


def unsupported_on_the_way(pool: CloudPool) -> Iterator[Incompatibility]:
    """Encryption, protocols, persistence, checks, bounds."""
    is_tcp = pool.protocol is Protocol.TCP
    if pool.server_tls is not None:
        yield from _of_tls(pool, pool.server_tls, is_tcp=is_tcp)
    yield from _of_protocols(pool, is_tcp=is_tcp)
    if pool.persistence is not None:
        yield from _of_persistence(pool, pool.persistence, is_tcp=is_tcp)
    if pool.health_check is not None:
        yield from _of_question(pool, pool.health_check)
    yield from _of_bounds(pool)
    if any(server.backup for backend in pool.backends for server in backend.servers):
        yield _told(pool, "backup", "servers.backup")


def _of_tls(pool: CloudPool, tls: ServerTls, *, is_tcp: bool) -> Iterator[Incompatibility]:
    if is_tcp:
        yield _told(pool, "server_tls", "server_tls")
        return
    if tls.verify is not Verify.NONE:
        yield _told(pool, "server_tls_verify", "server_tls.verify")
    if tls.min_version is not TlsVersion.V1_2:
        yield _told(pool, "server_tls_version", "server_tls.min_version")
    if tls.client_certificate_id is not None:
        yield _told(pool, "client_certificate", "server_tls.client_certificate")


def _of_protocols(pool: CloudPool, *, is_tcp: bool) -> Iterator[Incompatibility]:
    if pool.http_version is HttpVersion.HTTP2:
        yield _told(pool, "http_version", "http_version")
    if pool.host_header:
        yield _told(pool, "host_header", "host_header")
    if pool.request_headers:
        yield _told(pool, "pool_headers", "request_headers")
    wanted = pool.proxy_protocol
    if wanted is not ProxyProtocol.NONE and not (is_tcp and wanted is ProxyProtocol.V2):
        yield _told(pool, "proxy_protocol", "proxy_protocol", "v1" if wanted is ProxyProtocol.V1 else "")
    if pool.connection_reuse is not Reuse.SAFE:
        yield _told(pool, "connection_reuse", "connection_reuse")
    if pool.tunnel_timeout_ms is not None:
        yield _told(pool, "tunnel_timeout", "tunnel_timeout_ms")


def _of_persistence(pool: CloudPool, wanted: Persistence, *, is_tcp: bool) -> Iterator[Incompatibility]:
    if wanted.by is PersistBy.HEADER:
        yield told(Column.ALB, pool, "persistence", "persistence.by", wanted.by)
    elif wanted.by is PersistBy.SOURCE and not is_tcp:
        yield _told(pool, "persistence", "persistence.by", wanted.by)
    elif wanted.by is PersistBy.COOKIE:
        yield _told(pool, "persistence_cookie", "persistence.cookie")
    if wanted.mode is CookieMode.PREFIX:
        yield _told(pool, "persistence_mode", "persistence.mode")
    if wanted.overflow is OnOverflow.KEEPS:
        yield _told(pool, "persistence_overflow", "persistence.overflow")


def _of_question(pool: CloudPool, check: HealthCheck) -> Iterator[Incompatibility]:
    if check.kind not in (CheckKind.HTTP, CheckKind.GRPC):
        yield _lossy(
            pool, "health_check_kind", "health_check.kind",
            f"An NLB does not support {check.kind} checks: it only connects.",
            "Have unhealthy servers refuse connections.",
        )  # fmt: skip
    if check.headers or check.body or check.expect_body:
        yield _told(pool, "health_check_question", "health_check.headers")
    lowest, highest = limits.CHECK_STATUS
    if not all(lowest <= int(part) <= highest for each in check.expect_statuses for part in each.split("-")):
        yield _refused(
            pool, "health_check_status", "health_check.expect_statuses",
            f"Target groups accept only a status from {lowest} to {highest} as healthy.", "Expect other statuses.",
        )  # fmt: skip


def _of_bounds(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.agent_check is not None:
        yield _told(pool, "agent_check", "agent_check")
    if pool.outlier_ejection is not None:
        yield _told(pool, "outlier_ejection", "outlier_ejection")
    if pool.slow_start_ms is not None and "slow_start" not in slow_start(pool):
        yield _told(pool, "slow_start", "slow_start_ms")
    if pool.connections is not None:
        yield _told(pool, "connections", "connections")
    if pool.retries is not None:
        yield _told(pool, "retries", "retries")


def slow_start(pool: CloudPool) -> dict[str, Any]:
    """The attribute of target groups, where there is one for this."""
    if pool.slow_start_ms is None or pool.protocol is Protocol.TCP or pool.balance is not Balance.ROUNDROBIN:
        return {}
    lowest, highest = limits.SLOW_START_S
    return {"slow_start": min(max(pool.slow_start_ms // 1000, lowest), highest)}


def protocol_of(pool: CloudPool) -> tuple[str, str]:
    """Protocol of the target group, and version where that is not HTTP/1.1."""
    if pool.protocol is Protocol.TCP:
        return "TCP", ""
    version = "HTTP2" if pool.http_version is HttpVersion.HTTP2 else ""
    if pool.health_check is not None and pool.health_check.kind is CheckKind.GRPC:
        version = "GRPC"
    return "HTTPS" if pool.server_tls is not None or pool.protocol is Protocol.HTTPS else "HTTP", version
