"""What a pool says of the way to its servers, once more against its grammars, and whether it fits together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from apps.compiler import grammar, header_text
from apps.compiler.checks.examination import Notes
from apps.compiler.grammars import servers as grammars
from apps.compiler.model.fleet import Pool
from apps.compiler.model.servers import CheckKind, HttpVersion, Observed, PersistBy, Verify
from apps.compiler.model.shared import AnyPool, Certificate, HealthCheck, Protocol

# An object of a pool, its field, and the grammar of that field; empty values ask nothing.
_GRAMMARS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("server_tls", "ca", grammars.ca_bundle),
    ("server_tls", "server_name", grammar.server_host),
    ("server_tls", "client_certificate_id", grammar.object_id),
    ("persistence", "cookie", grammars.cookie_name),
    ("persistence", "header", grammar.header_name),
    ("persistence", "idle_s", grammars.idle_seconds),
    ("agent_check", "port", grammar.port),
    ("agent_check", "interval_ms", grammar.time_ms),
    ("agent_check", "send", grammars.plain_text),
    ("outlier_ejection", "errors", grammars.error_count),
    ("outlier_ejection", "return_after_ms", grammar.time_ms),
    ("connections", "max_per_server", grammars.connection_count),
    ("connections", "min_per_server", grammars.connection_count),
    ("connections", "full_at", grammars.connection_count),
    ("connections", "max_queue", grammars.connection_count),
    ("retries", "attempts", grammars.retry_count),
    ("retries", "budget_percent", grammars.percent),
)
_OF_CHECKS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("body", grammars.plain_text),
    ("expect_body", grammars.plain_text),
    ("send", grammars.plain_lines),
    ("expect", grammars.plain_text),
    ("service", grammars.grpc_service),
    ("user", grammars.check_user),
)
CHECKS_OF_TCP = frozenset(
    {CheckKind.TCP, CheckKind.POSTGRESQL, CheckKind.MYSQL, CheckKind.REDIS, CheckKind.SMTP, CheckKind.LDAP}
)
CHECKS_WITH_USER = frozenset({CheckKind.POSTGRESQL, CheckKind.MYSQL})
Contradiction = tuple[str, str, str]


def check_way_to_servers(notes: Notes, pool: AnyPool) -> None:
    """Every value of every object, then what does not fit the pool."""
    for name, field, read in _GRAMMARS:
        holder = getattr(pool, name)
        if holder is not None and (getattr(holder, field) not in (None, "") or field == "cookie"):
            notes.ask(pool, f"{name}.{field}", read, getattr(holder, field))
    if pool.host_header:
        notes.ask(pool, "host_header", grammar.server_host, pool.host_header)
    for name, value in pool.request_headers:
        notes.ask(pool, "request_headers", header_text.request_header, name)
        notes.ask(pool, "request_headers", grammar.header_value, value)
    for field, code, message in contradictions(pool):
        notes.quarantine(pool, code, message, field)


def check_client_certificate(notes: Notes, pool: Pool, certificates: Mapping[str, Certificate]) -> None:
    """The certificate that servers are shown is there, and the pool's account has it."""
    key = pool.server_tls.client_certificate_id if pool.server_tls else None
    found = certificates.get(key) if key else None
    if key is not None and (found is None or found.account != pool.account):
        message = "Choose a certificate of the pool's own account that nodes support."
        notes.quarantine(pool, "unknown_certificate", message, "server_tls.client_certificate")


def check_question(notes: Notes, pool: AnyPool, check: HealthCheck) -> None:
    """What a health check sends and expects."""
    for field, read in _OF_CHECKS:
        if value := getattr(check, field):
            notes.ask(pool, f"health_check.{field}", read, value)
    for status in check.expect_statuses:
        notes.ask(pool, "health_check.expect_statuses", grammars.statuses, status)
    for name, value in check.headers:
        notes.ask(pool, "health_check.headers", grammar.header_name, name)
        notes.ask(pool, "health_check.headers", grammar.header_value, value)


def contradictions(pool: Any) -> Iterator[Contradiction]:
    """Field, code and sentence of whatever does not fit together; asked of documents as well."""
    tls, persistence, is_tcp = pool.server_tls, pool.persistence, pool.protocol is Protocol.TCP
    if tls is not None and tls.verify is Verify.CA and not tls.ca:
        yield "server_tls.ca", "missing", "Paste the certificates of the authorities."
    if tls is not None and tls.verify is not Verify.CA and tls.ca:
        yield "server_tls.ca", "verify", "Authorities are used only with verify: ca; choose it, or leave them out."
    if tls is not None and is_tcp and tls.verify is not Verify.NONE and not tls.server_name:
        yield "server_tls.server_name", "missing", "Name the servers as in their certificates; tcp has no Host header."
    if persistence is not None and persistence.by is PersistBy.HEADER and not persistence.header:
        yield "persistence.header", "missing", "Fill in header."
    if is_tcp:
        yield from _of_tcp(pool)
    if pool.outlier_ejection is not None and pool.health_check is None:
        yield "outlier_ejection", "health_check", "Add a health check; it says when a server may come back."
    if pool.connections is not None:
        yield from _of_connections(pool.connections)
    if pool.health_check is not None:
        yield from _of_check(pool, pool.health_check, is_tcp=is_tcp)


def _of_tcp(pool: Any) -> Iterator[Contradiction]:
    """What connections of tcp know nothing of."""
    if pool.http_version is not HttpVersion.HTTP1:
        yield "http_version", "protocol", "Only http pools have a version of HTTP."
    if pool.host_header:
        yield "host_header", "protocol", "Only http pools have a Host header."
    if pool.request_headers:
        yield "request_headers", "protocol", "Only http pools send headers."
    if pool.persistence is not None and pool.persistence.by is not PersistBy.SOURCE:
        yield "persistence.by", "protocol", "A tcp pool can recognize clients only by their address: use source."
    if pool.retries is not None and pool.retries.budget_percent is not None:
        yield "retries.budget_percent", "protocol", "A tcp pool only retries failed connections: leave the budget out."
    ejection = pool.outlier_ejection
    if ejection is not None and ejection.observe is Observed.RESPONSES:
        yield "outlier_ejection.observe", "protocol", "A tcp pool sees only connections: count connections."


def _of_connections(bounds: Any) -> Iterator[Contradiction]:
    if bounds.min_per_server is not None and bounds.min_per_server > bounds.max_per_server:
        yield "connections.min_per_server", "too_many", "Use no more than max_per_server."
    if bounds.full_at is not None and bounds.min_per_server is None:
        message = "Also fill in min_per_server: full_at is the load at which a server gets max_per_server."
        yield "connections.full_at", "min_per_server", message


def _of_check(pool: Any, check: Any, *, is_tcp: bool) -> Iterator[Contradiction]:
    kind = check.kind
    if kind in CHECKS_OF_TCP and not is_tcp:
        yield "health_check.kind", "protocol", f"A check of {kind} is for tcp pools: use http or grpc."
    if kind is CheckKind.GRPC and (is_tcp or pool.http_version is not HttpVersion.HTTP2):
        yield "health_check.kind", "protocol", "gRPC needs an http pool that speaks HTTP/2 with its servers."
    if kind in CHECKS_WITH_USER and not check.user:
        yield "health_check.user", "missing", "Fill in the database user of the check."
    if (check.send or check.expect) and kind is not CheckKind.TCP:
        yield "health_check.send", "kind", "Only a tcp check sends and expects text."
    asks = kind is CheckKind.HTTP and check.path
    if (check.headers or check.body or check.expect_statuses or check.expect_body) and not asks:
        yield "health_check.path", "missing", "Fill in a path: only an HTTP check has headers, a body and statuses."
    if check.body and check.method in ("GET", "HEAD"):
        yield "health_check.body", "method", "Use POST or PUT to send a body."
