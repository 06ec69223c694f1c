"""Every field of every object against its grammar, once more, right before it is rendered.

Interfaces have asked the same grammar already; this check holds for values that reached the database some other way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.compiler import grammar
from apps.compiler.checks.access import errors_of_access
from apps.compiler.checks.examination import Notes
from apps.compiler.checks.policies import asked_of_client_limit
from apps.compiler.checks.servers import check_question, check_way_to_servers
from apps.compiler.client_limits import of_connections
from apps.compiler.grammars import rewriting
from apps.compiler.grammars.client_certificates import distinct, revocation_lists, without_default
from apps.compiler.grammars.servers import ca_bundle
from apps.compiler.grammars.tracing import percentage
from apps.compiler.matching import names
from apps.compiler.matching.patterns import pattern
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.listener_options import Cache, Tracing
from apps.compiler.model.node_settings import NodeSettings
from apps.compiler.model.shared import (
    COMPARING,
    AnyPool,
    Certificate,
    HealthCheck,
    Limit,
    Listener,
    LoadBalancer,
    PathKind,
    Redirect,
    Route,
    Server,
    Unreadable,
    ValueMatch,
)

TIMES = (
    "connect_timeout_ms",
    "server_timeout_ms",
    "queue_timeout_ms",
    "server_keepalive_ms",
    "tunnel_timeout_ms",
    "slow_start_ms",
)

_PATH_GRAMMARS = {PathKind.EXACT: grammar.path, PathKind.PREFIX: grammar.prefix_path, PathKind.REGEX: pattern}
_AS_CONNECTIONS = {"requests": "connections"}
_NAME_GRAMMARS = {
    "headers": grammar.header_name,
    "query": names.parameter_name,
    "cookies": names.parameter_name,
}


def check_certificate(notes: Notes, certificate: Certificate) -> None:
    """Identifier, PEM, names."""
    notes.ask(certificate, "id", grammar.object_id, certificate.id)
    notes.ask(certificate, "pem", grammar.pem, certificate.pem)
    if not certificate.hostnames:
        notes.quarantine(
            certificate, "no_hostnames", "Give a certificate that is valid for at least one host name.", "pem"
        )
    for name in certificate.hostnames:
        notes.ask(certificate, "hostnames", grammar.hostname, name)


def check_pool(notes: Notes, pool: AnyPool, limits: Iterable[Limit]) -> None:
    """Identifier, times, limits, health check; the servers have a check of their own."""
    notes.ask(pool, "id", grammar.object_id, pool.id)
    for name in TIMES:
        if (value := getattr(pool, name)) is not None:
            notes.ask(pool, name, grammar.time_ms, value)
    check_way_to_servers(notes, pool)
    for limit in limits:
        notes.ask(pool, "limit", grammar.limit_value, limit.value)
    if pool.health_check is not None:
        _check_health_check(notes, pool, pool.health_check)


def _check_health_check(notes: Notes, pool: AnyPool, check: HealthCheck) -> None:
    notes.ask(pool, "health_check.path", grammar.check_path, check.path)
    notes.ask(pool, "health_check.method", grammar.method, check.method)
    notes.ask(pool, "health_check.expect_status", grammar.status_code, check.expect_status)
    notes.ask(pool, "health_check.interval_ms", grammar.time_ms, check.interval_ms)
    notes.ask(pool, "health_check.timeout_ms", grammar.time_ms, check.timeout_ms)
    notes.ask(pool, "health_check.rise", grammar.check_count, check.rise)
    notes.ask(pool, "health_check.fall", grammar.check_count, check.fall)
    if check.host:
        notes.ask(pool, "health_check.host", grammar.server_host, check.host)
    check_question(notes, pool, check)


def check_server(notes: Notes, server: Server, **walls: Any) -> None:
    """Identifier, address (`walls` are those of `grammar.server_address`), port, weight."""
    notes.ask(server, "id", grammar.object_id, server.id)
    notes.ask(server, "address", grammar.server_address, server.address, **walls)
    notes.ask(server, "port", grammar.port, server.port)
    notes.ask(server, "weight", grammar.server_weight, server.weight)


def check_load_balancer(notes: Notes, load_balancer: LoadBalancer) -> None:
    """Identifier."""
    notes.ask(load_balancer, "id", grammar.object_id, load_balancer.id)


def check_listener(notes: Notes, listener: Listener, load_balancer: LoadBalancer) -> None:
    """Identifier, port, address, options; its load balancer has the lists that it names."""
    notes.ask(listener, "id", grammar.object_id, listener.id)
    notes.ask(listener, "port", grammar.port, listener.port)
    if listener.address is not None:
        notes.ask(listener, "address", grammar.listen_address, listener.address)
    for field, code, message in errors_of_access(listener.access, load_balancer) if listener.access else ():
        notes.quarantine(listener, code, message, field)
    _check_options(notes, listener)
    if listener.cache is not None:
        _check_cache(notes, listener, listener.cache)
    if listener.tracing is not None:
        _check_tracing(notes, listener, listener.tracing)
    if listener.certificate_ids and not listener.speaks_tls:
        notes.warn(listener, "certificates_unused", "Only listeners that end TLS use certificates.", "certificate_ids")


def _check_options(notes: Notes, listener: Listener) -> None:
    """What a listener is told beyond its port."""
    if listener.connections is not None:
        for name in ("client_timeout_ms", "request_timeout_ms", "keepalive_timeout_ms"):
            notes.ask(listener, f"connections.{name}", grammar.time_ms, getattr(listener.connections, name))
        most = listener.connections.max_connections
        notes.ask(listener, "connections.max_connections", grammar.clients, 1 if most is None else most)
    _check_client_limit(notes, listener)
    if listener.client_address is not None:
        said = listener.client_address
        for network in (*said.proxy_protocol_from, *said.forwarded_from, *said.forwarded_header_from):
            notes.ask(listener, "client_address", grammar.trusted_network, network)
    if listener.compression is not None:
        notes.ask(listener, "compression.types", grammar.some, listener.compression.types)
        for each in listener.compression.types:
            notes.ask(listener, "compression.types", grammar.media_type, each)
    _check_connection_routes(notes, listener)
    _check_client_certificates(notes, listener)
    for each in listener.tls.alpn if listener.tls else ():
        notes.ask(listener, "tls.alpn", grammar.alpn, each)
    if listener.monitor_path is not None:
        notes.ask(listener, "monitor_path", grammar.path, listener.monitor_path)


def _check_connection_routes(notes: Notes, listener: Listener) -> None:
    for route in listener.sni_routes:
        notes.ask(listener, "sni_routes.hostname", grammar.hostname, route.hostname)
    for name in (each.alpn for each in listener.protocol_routes if each.alpn):
        notes.ask(listener, "protocol_routes.alpn", grammar.alpn, name)


def _check_tracing(notes: Notes, listener: Listener, tracing: Tracing) -> None:
    notes.ask(listener, "tracing.sample_percent", percentage, tracing.sample_percent)
    for network in tracing.sampled_from:
        notes.ask(listener, "tracing.sampled_from", grammar.trusted_network, network)


def _check_client_limit(notes: Notes, listener: Listener) -> None:
    limit = of_connections(listener.client_limit) if listener.client_limit is not None else None
    for name, allowed, value in asked_of_client_limit(limit):
        if value is not None:
            notes.ask(listener, f"client_limit.{_AS_CONNECTIONS.get(name, name)}", allowed, value)


def _check_cache(notes: Notes, listener: Listener, cache: Cache) -> None:
    most = min(grammar.CACHE_OBJECT[1], grammar.largest_object(cache.total_mb))
    for name, value, (low, high) in (
        ("total_mb", cache.total_mb, grammar.CACHE_MB),
        ("max_object_bytes", cache.max_object_bytes, (grammar.CACHE_OBJECT[0], most)),
        ("max_age_s", cache.max_age_s, grammar.CACHE_AGE),
    ):
        notes.ask(listener, f"cache.{name}", grammar.integer, value, lowest=low, highest=high)


def _check_client_certificates(notes: Notes, listener: Listener) -> None:
    entries, default = listener.client_certificates, listener.default_certificate_id
    notes.ask(listener, "client_certificates", distinct, entries)
    notes.ask(listener, "client_certificates", without_default, entries, default=default)
    for entry in entries:
        notes.ask(listener, "client_certificates.ca", ca_bundle, entry.ca)
        if entry.crl:
            notes.ask(listener, "client_certificates.crl", revocation_lists, entry.crl)
        for name in entry.hostnames:
            notes.ask(listener, "client_certificates.hostnames", grammar.hostname, name)


def accepted_settings(notes: Notes, snapshot: Snapshot) -> NodeSettings | None:
    """The settings of nodes; of wrong ones nothing is taken, and nodes are as they always were."""
    said = snapshot.node_settings
    if said is None:
        return None
    fleet = Unreadable("node_settings", snapshot.fleet, "node_settings")
    asked = (
        ("max_connections", said.max_connections, grammar.NODE_CONNECTIONS),
        ("threads", said.threads, grammar.NODE_THREADS),
        ("buffer_bytes", said.buffer_bytes, grammar.NODE_BUFFER),
        ("http2_streams", said.http2_streams, grammar.NODE_STREAMS),
        ("old_worker_timeout_ms", said.old_worker_timeout_ms, (1, grammar.MAX_TIME_MS)),
    )
    sound = [
        value is None or notes.ask(fleet, name, grammar.integer, value, lowest=bounds[0], highest=bounds[1])
        for name, value, bounds in asked
    ]
    return said if all(sound) else None


def check_route(notes: Notes, route: Route) -> None:
    """Identifier, host, path, scheme, conditions, action."""
    notes.ask(route, "id", grammar.object_id, route.id)
    notes.ask(route, "hostname", names.hostname_of_route, route.hostname)
    notes.ask(route, "path", _PATH_GRAMMARS[route.path_kind], route.path)
    for method in route.methods:
        notes.ask(route, "methods", grammar.method, method)
    if route.headers or route.query or route.cookies:
        _check_conditions(notes, route)
    for network in route.client_networks:
        notes.ask(route, "client_networks", names.network_block, network)
    if route.scheme is not None:
        notes.ask(route, "scheme", grammar.url_scheme, route.scheme)
    for share in route.pools:
        notes.ask(route, "pools.weight", grammar.route_weight, share.weight)
    if route.prefix_rewrite is not None:
        notes.ask(route, "prefix_rewrite", grammar.path, route.prefix_rewrite)
    if route.redirect is not None:
        _check_redirect(notes, route, route.redirect)
    if route.fixed_response is not None:
        notes.ask(route, "fixed_response.status", grammar.fixed_status, route.fixed_response.status)
        notes.ask(route, "fixed_response.content_type", grammar.content_type, route.fixed_response.content_type)
        notes.ask(route, "fixed_response.body", grammar.body, route.fixed_response.body)


def _check_conditions(notes: Notes, route: Route) -> None:
    for field, conditions in (("headers", route.headers), ("query", route.query), ("cookies", route.cookies)):
        for condition in conditions:
            notes.ask(route, f"{field}.name", _NAME_GRAMMARS[field], condition.name)
            if condition.match in COMPARING:
                read = pattern if condition.match is ValueMatch.REGEX else grammar.header_value
                notes.ask(route, f"{field}.value", read, condition.value)


def _check_redirect(notes: Notes, route: Route, redirect: Redirect) -> None:
    notes.ask(route, "redirect.code", grammar.redirect_code, redirect.code)
    if redirect.scheme is not None:
        notes.ask(route, "redirect.scheme", grammar.url_scheme, redirect.scheme)
    if redirect.host is not None:
        notes.ask(route, "redirect.host", grammar.redirect_host, redirect.host)
    if redirect.path is not None:
        notes.ask(route, "redirect.path", grammar.path, redirect.path)
    if redirect.port is not None:
        notes.ask(route, "redirect.port", grammar.port, redirect.port)
    if redirect.prefix is not None:
        notes.ask(route, "redirect.prefix", grammar.prefix_path, redirect.prefix)
    if redirect.query is not None:
        notes.ask(route, "redirect.query", rewriting.query, redirect.query)
