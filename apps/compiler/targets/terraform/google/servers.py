"""What Google cannot do of what a pool says of the way to its servers, and what it says in a backend service.

Sources: the Compute Engine API reference, backendServices (sessionAffinity, consistentHash, outlierDetection, protocol)
and healthChecks; https://cloud.google.com/load-balancing/docs/ssl-certificates/encryption-to-the-backends says that
certificates of endpoints are not verified. HTTP/2 without TLS and headers of requests in place of Host were not tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import ceil
from typing import Any

from apps.compiler.model.servers import (
    CheckKind,
    CookieMode,
    HttpVersion,
    Observed,
    OnOverflow,
    OverflowMode,
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
from apps.compiler.portability.table.asking import told
from apps.compiler.portability.table.cells import Column

_refused = partial(refused, Target.GOOGLE)
_lossy = partial(lossy, Target.GOOGLE)
_told = partial(told, Column.GOOGLE)
HASHED = "MAGLEV"  # what the affinities by header and cookie need
COOKIE_S = 1_209_600


def unsupported_on_the_way(pool: CloudPool) -> Iterator[Incompatibility]:
    """Encryption, protocols, persistence, checks, bounds."""
    if pool.server_tls is not None:
        yield from _of_tls(pool, pool.server_tls)
    yield from _of_protocols(pool)
    if pool.persistence is not None:
        yield from _of_persistence(pool, pool.persistence)
    if pool.health_check is not None:
        yield from _of_question(pool, pool.health_check)
    yield from _of_bounds(pool)
    if any(server.backup for backend in pool.backends for server in backend.servers):
        yield _told(pool, "backup", "servers.backup")
    if pool.overflow_mode is not OverflowMode.ANYWHERE and len(pool.backends) > 1:
        yield _told(pool, "overflow_mode", "overflow.mode")


def _of_tls(pool: CloudPool, tls: ServerTls) -> Iterator[Incompatibility]:
    if pool.protocol is Protocol.TCP:
        yield _refused(
            pool, "server_tls", "server_tls", "A target TCP proxy forwards bytes unchanged.",
            "Remove TLS from the servers of tcp pools, or put the pool on a fleet.",
        )  # fmt: skip
        return
    if tls.verify is not Verify.NONE:
        yield _told(pool, "server_tls_verify", "server_tls.verify")
    if tls.min_version is not TlsVersion.V1_2:
        yield _told(pool, "server_tls_version", "server_tls.min_version")
    if tls.client_certificate_id is not None:
        yield _told(pool, "client_certificate", "server_tls.client_certificate")


def _of_protocols(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.http_version is HttpVersion.HTTP2 and pool.server_tls is None:
        yield _refused(
            pool, "http_version", "http_version",
            "Google Cloud uses HTTP/2 with servers only over TLS.", "Add server_tls.",
        )  # fmt: skip
    if pool.host_header:
        yield _told(pool, "host_header", "host_header")
    if pool.request_headers:
        yield _told(pool, "pool_headers", "request_headers")
    if pool.proxy_protocol is not ProxyProtocol.NONE:
        yield _told(pool, "proxy_protocol", "proxy_protocol")
    if pool.connection_reuse is not Reuse.SAFE:
        yield _told(pool, "connection_reuse", "connection_reuse")
    if pool.tunnel_timeout_ms is not None:
        yield _told(pool, "tunnel_timeout", "tunnel_timeout_ms")


def _of_persistence(pool: CloudPool, wanted: Persistence) -> Iterator[Incompatibility]:
    if wanted.by is PersistBy.COOKIE:
        yield _told(pool, "persistence_cookie", "persistence.cookie")
    else:
        yield _told(pool, "persistence_hash", "persistence.by", wanted.by)
    if wanted.mode is CookieMode.PREFIX:
        yield _told(pool, "persistence_mode", "persistence.mode")
    if wanted.overflow is OnOverflow.KEEPS:
        yield _told(pool, "persistence_overflow", "persistence.overflow")


def _of_question(pool: CloudPool, check: HealthCheck) -> Iterator[Incompatibility]:
    if check.kind not in (CheckKind.HTTP, CheckKind.TCP, CheckKind.GRPC):
        yield _lossy(
            pool, "health_check_kind", "health_check.kind",
            f"Google Cloud does not support {check.kind} checks: it only connects.",
            "Have unhealthy servers refuse connections.",
        )  # fmt: skip
    if check.headers or check.body or check.expect_body:
        yield _told(pool, "health_check_question", "health_check.headers")
    if check.expect_statuses and not any(_holds_200(each) for each in check.expect_statuses):
        yield _refused(
            pool, "health_check_status", "health_check.expect_statuses",
            "Google Cloud accepts only 200 as healthy.", "Return 200 from the path of the check.",
        )  # fmt: skip
    elif check.expect_statuses and check.expect_statuses != ("200",):
        yield _told(pool, "health_check_status", "health_check.expect_statuses")


def _holds_200(statuses: str) -> bool:
    first, _, last = statuses.partition("-")
    return int(first) <= 200 <= int(last or first)


def _of_bounds(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.agent_check is not None:
        yield _told(pool, "agent_check", "agent_check")
    ejection = pool.outlier_ejection
    if ejection is not None and not outlier_detection(pool):
        yield _told(pool, "outlier_ejection", "outlier_ejection")
    if pool.slow_start_ms is not None:
        yield _told(pool, "slow_start", "slow_start_ms")
    if pool.connections is not None:
        yield _told(pool, "connections", "connections")
    if pool.retries is not None:
        yield _told(pool, "retries", "retries")


def protocol_of(pool: CloudPool) -> str:
    """Of the backend service."""
    if pool.server_tls is None or pool.protocol is Protocol.TCP:
        return pool.protocol.upper()
    return "HTTP2" if pool.http_version is HttpVersion.HTTP2 else "HTTPS"


def affinity_of(pool: CloudPool) -> dict[str, Any]:
    """How clients stay, as far as a backend service says it."""
    wanted = pool.persistence
    if wanted is None:
        return {"session_affinity": "CLIENT_IP"} if pool.balance is Balance.SOURCE else {}
    if wanted.by is PersistBy.SOURCE:
        return {"session_affinity": "CLIENT_IP"}
    if wanted.by is PersistBy.HEADER:
        return {"session_affinity": "HEADER_FIELD", "consistent_hash": [{"http_header_name": wanted.header}]}
    return {"session_affinity": "GENERATED_COOKIE", "affinity_cookie_ttl_sec": min(wanted.idle_s or 0, COOKIE_S)}


def is_hashed(pool: CloudPool) -> bool:
    """Whether the affinity needs a choice by hash."""
    return pool.persistence is not None and pool.persistence.by is PersistBy.HEADER


def outlier_detection(pool: CloudPool) -> dict[str, Any]:
    """Servers that fail in a row are left out, with Google's own word for it."""
    wanted = pool.outlier_ejection
    if wanted is None or pool.protocol is Protocol.TCP:
        return {}
    word = "consecutive_errors" if wanted.observe is Observed.RESPONSES else "consecutive_gateway_failure"
    enforced = {"enforcing_consecutive_gateway_failure": 100} if word != "consecutive_errors" else {}
    times = {"base_ejection_time": [{"seconds": ceil(wanted.return_after_ms / 1000)}]}
    return {"outlier_detection": [{word: wanted.errors, **enforced, **times}]}
