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
            pool, "backup", "servers.backup", "Target groups know no backup servers: these get nothing at all.",
            "Give backups a pool of their own, and shift a route's weight to it.",
        )  # fmt: skip


def _of_tls(pool: CloudPool, tls: ServerTls, *, is_tcp: bool) -> Iterator[Incompatibility]:
    if is_tcp:
        yield _refused(
            pool, "server_tls", "server_tls", "NLB encrypts to servers only behind a listener of TLS, which none is.",
            "Let servers of tcp pools be reached without TLS there, or put the pool on a fleet.",
        )  # fmt: skip
        return
    if tls.verify is not Verify.NONE:
        yield _lossy(
            pool, "server_tls_verify", "server_tls.verify",
            "ALB encrypts the way to its servers and takes any certificate, whoever signed it for whatever name.",
            "Keep the way to the servers inside of the VPC.",
        )  # fmt: skip
    if tls.min_version is not TlsVersion.V1_2:
        yield _lossy(
            pool, "server_tls_version", "server_tls.min_version", "ALB chooses the version of TLS by itself.",
            "Let the servers refuse older ones.",
        )  # fmt: skip
    if tls.client_certificate_id is not None:
        yield _refused(
            pool, "client_certificate", "server_tls.client_certificate", "ALB shows its servers no certificate.",
            "Let servers ask for none, or put the pool on a fleet.",
        )  # fmt: skip


def _of_protocols(pool: CloudPool, *, is_tcp: bool) -> Iterator[Incompatibility]:
    if pool.http_version is HttpVersion.HTTP2:
        yield _lossy(
            pool, "http_version", "http_version",
            "ALB speaks HTTP/2 with these servers for clients that speak it, and answers others with an error.",
            "Serve the pool by https listeners to clients of HTTP/2 alone.",
        )  # fmt: skip
    if pool.host_header:
        yield _refused(
            pool, "host_header", "host_header", "ALB sends servers the Host header as it came.",
            "Let servers take the names of clients.",
        )  # fmt: skip
    wanted = pool.proxy_protocol
    if wanted is not ProxyProtocol.NONE and not (is_tcp and wanted is ProxyProtocol.V2):
        yield _refused(
            pool, "proxy_protocol", "proxy_protocol", "NLB speaks version 2 of the PROXY protocol, ALB none.",
            "Use v2 for tcp; read X-Forwarded-For for http.",
        )  # fmt: skip
    if pool.connection_reuse is not Reuse.SAFE:
        yield _lossy(
            pool, "connection_reuse", "connection_reuse", "ALB and NLB decide by themselves about connections.",
            "Leave it at safe.",
        )  # fmt: skip
    if pool.tunnel_timeout_ms is not None:
        yield _lossy(
            pool, "tunnel_timeout", "tunnel_timeout_ms", "ALB counts silence on a WebSocket as on any connection.",
            "Have both sides send a ping.",
        )  # fmt: skip


def _of_persistence(pool: CloudPool, wanted: Persistence, *, is_tcp: bool) -> Iterator[Incompatibility]:
    if wanted.by is PersistBy.HEADER:
        yield _refused(
            pool, "persistence", "persistence.by", "Target groups keep clients by a cookie or an address alone.",
            "Use a cookie.",
        )  # fmt: skip
    elif wanted.by is PersistBy.SOURCE and not is_tcp:
        yield _lossy(
            pool, "persistence", "persistence.by", "ALB keeps a client by a cookie of its own, not by its address.",
            "Use a cookie.",
        )  # fmt: skip
    elif wanted.by is PersistBy.COOKIE:
        yield _lossy(
            pool, "persistence_cookie", "persistence.cookie",
            "ALB's cookie is AWSALB, with flags of its own, and ends after a time, not with the browser's session.",
            "Write into no program what the cookie is called.",
        )  # fmt: skip
    if wanted.mode is CookieMode.PREFIX:
        yield _lossy(
            pool, "persistence_mode", "persistence.mode", "ALB sets a second cookie and leaves the servers' as it is.",
        )  # fmt: skip
    if wanted.overflow is OnOverflow.KEEPS:
        yield _lossy(
            pool, "persistence_overflow", "persistence.overflow",
            "A client stays with a target, and not with the target group of its region.",
        )  # fmt: skip


def _of_question(pool: CloudPool, check: HealthCheck) -> Iterator[Incompatibility]:
    if check.kind not in (CheckKind.HTTP, CheckKind.GRPC):
        yield _lossy(
            pool, "health_check_kind", "health_check.kind", f"NLB has no check of {check.kind}: it connects alone.",
            "Let servers that are not well refuse connections.",
        )  # fmt: skip
    if check.headers or check.body or check.expect_body:
        yield _lossy(
            pool, "health_check_question", "health_check.headers",
            "Target groups send neither headers nor a body, and look at no more than the status.",
            "Let the status say whether the server is well.",
        )  # fmt: skip
    lowest, highest = limits.CHECK_STATUS
    if not all(lowest <= int(part) <= highest for each in check.expect_statuses for part in each.split("-")):
        yield _refused(
            pool, "health_check_status", "health_check.expect_statuses",
            f"Target groups take a status from {lowest} to {highest} for healthy.", "Expect other statuses.",
        )  # fmt: skip


def _of_bounds(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.agent_check is not None:
        yield _lossy(pool, "agent_check", "agent_check", "AWS asks no agents of servers.", "Use the health check.")
    if pool.outlier_ejection is not None:
        yield _lossy(
            pool, "outlier_ejection", "outlier_ejection", "AWS leaves a server out for failed checks alone.",
            "Let the check fail where requests do.",
        )  # fmt: skip
    if pool.slow_start_ms is not None and "slow_start" not in slow_start(pool):
        lowest, highest = limits.SLOW_START_S
        yield _lossy(
            pool, "slow_start", "slow_start_ms",
            f"ALB starts servers slowly in {lowest} to {highest} s, and not where it sends to the least busy.",
            "Use roundrobin.",
        )  # fmt: skip
    if pool.connections is not None:
        yield _lossy(
            pool, "connections", "connections", "Target groups bound nothing: a server gets what comes.",
            "Leave servers room.",
        )  # fmt: skip
    if pool.retries is not None:
        yield _lossy(pool, "retries", "retries", "ALB sends no request again.", "Let clients repeat requests.")


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
