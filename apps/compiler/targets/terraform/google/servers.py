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

_refused = partial(refused, Target.GOOGLE)
_lossy = partial(lossy, Target.GOOGLE)
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
        yield _lossy(
            pool, "backup", "servers.backup", "Groups of endpoints know no backup servers: these get nothing at all.",
            "Give backups a pool of their own, and shift a route's weight to it.",
        )  # fmt: skip
    if pool.overflow_mode is not OverflowMode.ANYWHERE and len(pool.backends) > 1:
        yield _lossy(
            pool, "overflow_mode", "overflow.mode", "The waterfall goes to every region in which the pool has servers.",
            "Give each region that has to stay alone a pool of its own.",
        )  # fmt: skip


def _of_tls(pool: CloudPool, tls: ServerTls) -> Iterator[Incompatibility]:
    if pool.protocol is Protocol.TCP:
        yield _refused(
            pool, "server_tls", "server_tls", "Proxies of tcp hand bytes on as they are.",
            "Let servers of tcp pools be reached without TLS there, or put the pool on a fleet.",
        )  # fmt: skip
        return
    if tls.verify is not Verify.NONE:
        yield _lossy(
            pool, "server_tls_verify", "server_tls.verify",
            "Google encrypts the way to servers and takes any certificate, whoever signed it for whatever name.",
            "Keep the way to the servers inside of your networks.",
        )  # fmt: skip
    if tls.min_version is not TlsVersion.V1_2:
        yield _lossy(
            pool, "server_tls_version", "server_tls.min_version", "Google chooses the version of TLS by itself.",
            "Let the servers refuse older ones.",
        )  # fmt: skip
    if tls.client_certificate_id is not None:
        yield _refused(
            pool, "client_certificate", "server_tls.client_certificate", "Google shows these servers no certificate.",
            "Let servers ask for none, or put the pool on a fleet.",
        )  # fmt: skip


def _of_protocols(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.http_version is HttpVersion.HTTP2 and pool.server_tls is None:
        yield _refused(
            pool, "http_version", "http_version", "Google speaks HTTP/2 with servers by TLS.", "Add server_tls.",
        )  # fmt: skip
    if pool.host_header:
        yield _refused(
            pool, "host_header", "host_header", "A backend service sends servers the Host header as it came.",
            "Let servers take the names of clients.",
        )  # fmt: skip
    if pool.proxy_protocol is not ProxyProtocol.NONE:
        yield _refused(
            pool, "proxy_protocol", "proxy_protocol", "Google's proxies are not told to speak it here.",
            "Read X-Forwarded-For for http; put tcp pools that need it on a fleet.",
        )  # fmt: skip
    if pool.connection_reuse is not Reuse.SAFE:
        yield _lossy(
            pool, "connection_reuse", "connection_reuse", "Google decides by itself about connections.",
            "Leave it at safe.",
        )  # fmt: skip
    if pool.tunnel_timeout_ms is not None:
        yield _lossy(
            pool, "tunnel_timeout", "tunnel_timeout_ms",
            "Google closes a WebSocket when the time of the whole answer is over, silent or not.",
            "Give pools with WebSockets a longer server timeout.",
        )  # fmt: skip


def _of_persistence(pool: CloudPool, wanted: Persistence) -> Iterator[Incompatibility]:
    if wanted.by is PersistBy.COOKIE:
        yield _lossy(
            pool, "persistence_cookie", "persistence.cookie",
            "Google's cookie is GCLB, with flags of its own, and moves a client when its region is full.",
            "Write into no program what the cookie is called.",
        )  # fmt: skip
    else:
        yield _lossy(
            pool, "persistence_hash", "persistence.by", "Google hashes it: clients move when servers come and go.",
            "Use a cookie.",
        )  # fmt: skip
    if wanted.mode is CookieMode.PREFIX:
        yield _lossy(
            pool, "persistence_mode", "persistence.mode",
            "Google sets a second cookie and leaves the servers' as it is.",
        )  # fmt: skip
    if wanted.overflow is OnOverflow.KEEPS:
        yield _lossy(
            pool, "persistence_overflow", "persistence.overflow", "A full region sends clients on, cookie or not.",
        )  # fmt: skip


def _of_question(pool: CloudPool, check: HealthCheck) -> Iterator[Incompatibility]:
    if check.kind not in (CheckKind.HTTP, CheckKind.TCP, CheckKind.GRPC):
        yield _lossy(
            pool, "health_check_kind", "health_check.kind", f"Google has no check of {check.kind}: it connects alone.",
            "Let servers that are not well refuse connections.",
        )  # fmt: skip
    if check.headers or check.body or check.expect_body:
        yield _lossy(
            pool, "health_check_question", "health_check.headers",
            "These checks send neither headers nor a body, and look at no more than the status.",
            "Let the status say whether the server is well.",
        )  # fmt: skip
    if check.expect_statuses and not any(_holds_200(each) for each in check.expect_statuses):
        yield _refused(
            pool, "health_check_status", "health_check.expect_statuses",
            "Google takes 200 for healthy and nothing else.", "Let the path of the check answer 200.",
        )  # fmt: skip
    elif check.expect_statuses and check.expect_statuses != ("200",):
        yield _lossy(
            pool, "health_check_status", "health_check.expect_statuses",
            "Google takes 200 for healthy and nothing else.", "Let the path of the check answer 200.",
        )  # fmt: skip


def _holds_200(statuses: str) -> bool:
    first, _, last = statuses.partition("-")
    return int(first) <= 200 <= int(last or first)


def _of_bounds(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.agent_check is not None:
        yield _lossy(pool, "agent_check", "agent_check", "Google asks no agents of servers.", "Use the health check.")
    ejection = pool.outlier_ejection
    if ejection is not None and not outlier_detection(pool):
        yield _lossy(
            pool, "outlier_ejection", "outlier_ejection", "Proxies of tcp leave a server out for failed checks alone.",
            "Let the check fail where connections do.",
        )  # fmt: skip
    if pool.slow_start_ms is not None:
        yield _lossy(
            pool, "slow_start", "slow_start_ms", "Google sends a server its full share at once.",
            "Let servers be warm before their check succeeds.",
        )  # fmt: skip
    if pool.connections is not None:
        yield _lossy(
            pool, "connections", "connections", "Google bounds nothing for a single server, and queues nothing.",
            "Leave servers room.",
        )  # fmt: skip
    if pool.retries is not None:
        yield _lossy(
            pool, "retries", "retries", "Google sends a request again by rules of its own: once, where that is safe.",
            "Let clients repeat requests.",
        )  # fmt: skip


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
