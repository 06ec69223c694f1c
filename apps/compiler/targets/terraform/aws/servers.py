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
from apps.compiler.model.shared import Balance, HealthCheck, Protocol
from apps.compiler.model.stack import CloudPool
from apps.compiler.portability.incompatibilities import Incompatibility, Target, lossy, refused
from apps.compiler.targets.terraform.aws import limits

_refused = partial(refused, Target.AWS)
_lossy = partial(lossy, Target.AWS)


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
        yield _lossy(
            pool, "backup", "servers.backup", "Target groups do not support backup servers: these get no requests.",
            "Put backup servers in a separate pool, and shift a route's weight to it.",
        )  # fmt: skip


def _of_tls(pool: CloudPool, tls: ServerTls, *, is_tcp: bool) -> Iterator[Incompatibility]:
    if is_tcp:
        yield _refused(
            pool, "server_tls", "server_tls",
            "An NLB encrypts connections to servers only behind a TLS listener, and not behind a TCP listener.",
            "Remove TLS from the servers of tcp pools, or put the pool on a fleet.",
        )  # fmt: skip
        return
    if tls.verify is not Verify.NONE:
        yield _lossy(
            pool, "server_tls_verify", "server_tls.verify",
            "An ALB encrypts connections to servers but accepts any certificate: it verifies neither issuer nor name.",
            "Keep connections to servers inside the VPC.",
        )  # fmt: skip
    if tls.min_version is not TlsVersion.V1_2:
        yield _lossy(
            pool, "server_tls_version", "server_tls.min_version", "An ALB has no setting for the TLS version.",
            "Reject older versions on the servers.",
        )  # fmt: skip
    if tls.client_certificate_id is not None:
        yield _refused(
            pool, "client_certificate", "server_tls.client_certificate", "An ALB presents no certificate to servers.",
            "Do not require one on the servers, or put the pool on a fleet.",
        )  # fmt: skip


def _of_protocols(pool: CloudPool, *, is_tcp: bool) -> Iterator[Incompatibility]:
    if pool.http_version is HttpVersion.HTTP2:
        yield _lossy(
            pool, "http_version", "http_version",
            "An ALB uses HTTP/2 with these servers only for HTTP/2 clients, and returns an error to other clients.",
            "Serve the pool from https listeners, and only to HTTP/2 clients.",
        )  # fmt: skip
    if pool.host_header:
        yield _refused(
            pool, "host_header", "host_header", "An ALB forwards the Host header unchanged.",
            "Have the servers accept the hostnames that clients request.",
        )  # fmt: skip
    if pool.request_headers:
        yield _refused(
            pool, "pool_headers", "request_headers", "An ALB cannot add request headers for a pool.",
            "Configure the servers to know which pool they belong to.",
        )  # fmt: skip
    wanted = pool.proxy_protocol
    if wanted is not ProxyProtocol.NONE and not (is_tcp and wanted is ProxyProtocol.V2):
        yield _refused(
            pool, "proxy_protocol", "proxy_protocol",
            "An NLB supports only version 2 of the PROXY protocol; an ALB does not support it.",
            "Use v2 for tcp; read X-Forwarded-For for http.",
        )  # fmt: skip
    if pool.connection_reuse is not Reuse.SAFE:
        yield _lossy(
            pool, "connection_reuse", "connection_reuse", "ALBs and NLBs have no setting for this.",
            "Leave it at safe.",
        )  # fmt: skip
    if pool.tunnel_timeout_ms is not None:
        yield _lossy(
            pool, "tunnel_timeout", "tunnel_timeout_ms", "An ALB applies its idle timeout to WebSockets too.",
            "Have both sides send pings.",
        )  # fmt: skip


def _of_persistence(pool: CloudPool, wanted: Persistence, *, is_tcp: bool) -> Iterator[Incompatibility]:
    if wanted.by is PersistBy.HEADER:
        yield _refused(
            pool, "persistence", "persistence.by", "Target groups keep clients only by cookie or address.",
            "Use a cookie.",
        )  # fmt: skip
    elif wanted.by is PersistBy.SOURCE and not is_tcp:
        yield _lossy(
            pool, "persistence", "persistence.by", "An ALB keeps clients by its own cookie, not by address.",
            "Use a cookie.",
        )  # fmt: skip
    elif wanted.by is PersistBy.COOKIE:
        yield _lossy(
            pool, "persistence_cookie", "persistence.cookie",
            "An ALB uses its own cookie, AWSALB, with its own flags; it expires after a time, not with the session.",
            "Do not depend on the name of the cookie.",
        )  # fmt: skip
    if wanted.mode is CookieMode.PREFIX:
        yield _lossy(
            pool, "persistence_mode", "persistence.mode",
            "An ALB sets a second cookie and does not change the servers' cookie.",
        )  # fmt: skip
    if wanted.overflow is OnOverflow.KEEPS:
        yield _lossy(
            pool, "persistence_overflow", "persistence.overflow",
            "A client stays with a target, not with the target group of its region.",
        )  # fmt: skip


def _of_question(pool: CloudPool, check: HealthCheck) -> Iterator[Incompatibility]:
    if check.kind not in (CheckKind.HTTP, CheckKind.GRPC):
        yield _lossy(
            pool, "health_check_kind", "health_check.kind",
            f"An NLB does not support {check.kind} checks: it only connects.",
            "Have unhealthy servers refuse connections.",
        )  # fmt: skip
    if check.headers or check.body or check.expect_body:
        yield _lossy(
            pool, "health_check_question", "health_check.headers",
            "Target groups send health checks without headers and body, and check only the status.",
            "Have the server report its health by the status.",
        )  # fmt: skip
    lowest, highest = limits.CHECK_STATUS
    if not all(lowest <= int(part) <= highest for each in check.expect_statuses for part in each.split("-")):
        yield _refused(
            pool, "health_check_status", "health_check.expect_statuses",
            f"Target groups accept only a status from {lowest} to {highest} as healthy.", "Expect other statuses.",
        )  # fmt: skip


def _of_bounds(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.agent_check is not None:
        yield _lossy(pool, "agent_check", "agent_check", "AWS does not run agent checks.", "Use the health check.")
    if pool.outlier_ejection is not None:
        yield _lossy(
            pool, "outlier_ejection", "outlier_ejection", "AWS removes a server only after failed health checks.",
            "Have the health check fail when requests fail.",
        )  # fmt: skip
    if pool.slow_start_ms is not None and "slow_start" not in slow_start(pool):
        lowest, highest = limits.SLOW_START_S
        yield _lossy(
            pool, "slow_start", "slow_start_ms",
            f"An ALB supports slow start from {lowest} to {highest} s, and not with least outstanding requests.",
            "Use roundrobin.",
        )  # fmt: skip
    if pool.connections is not None:
        yield _lossy(
            pool, "connections", "connections", "Target groups do not limit connections to a server.",
            "Leave the servers headroom.",
        )  # fmt: skip
    if pool.retries is not None:
        yield _lossy(pool, "retries", "retries", "An ALB does not retry requests.", "Retry requests in the clients.")


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
