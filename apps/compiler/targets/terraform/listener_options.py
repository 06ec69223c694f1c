"""What clouds lose of what a listener is told beyond its port; TLS is each cloud's own (balancers.py, frontends.py)."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.listener_options import ClientAddress, ListenerTls, TlsPreset, TlsVersion
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.portability.incompatibilities import Incompatibility
from apps.compiler.portability.table.asking import told
from apps.compiler.portability.table.cells import Column


def is_tls13_alone(listener: Listener) -> bool:
    """Whether older versions are refused."""
    tls = listener.tls
    return tls is not None and (tls.preset is TlsPreset.MODERN or tls.minimum_version is TlsVersion.V13)


def default_first(listener: Listener) -> list[str]:
    """Its certificates, each once; clients that ask for none of their names are shown the first one."""
    default = listener.default_certificate_id
    return sorted(dict.fromkeys(listener.certificate_ids), key=lambda key: key != default)


def unsupported_options(column: Column, listener: Listener) -> Iterator[Incompatibility]:
    """Connections, limits per client, client addresses, compression, the cache, traces, the monitor path."""
    if listener.connections is not None:
        yield told(column, listener, "connections", "connections")
    if listener.client_address is not None:
        yield from _of_client_address(column, listener, listener.client_address)
    yield from _of_clients(column, listener)
    if listener.compression is not None:
        yield told(column, listener, "compression", "compression")
    if listener.cache is not None:
        yield told(column, listener, "cache", "cache")
    if listener.tracing is not None:
        yield told(column, listener, "tracing", "tracing")
    if listener.tls is not None:
        yield from _of_tls(column, listener, listener.tls)
    if listener.monitor_path is not None:
        yield told(column, listener, "monitor_path", "monitor_path")


def _of_clients(column: Column, listener: Listener) -> Iterator[Incompatibility]:
    """Without these, clients would reach what they must not."""
    if listener.access is not None and listener.access.lists:
        yield told(column, listener, "access", "access")
    if listener.client_limit is not None:
        yield told(column, listener, "client_limit", "client_limit")
    if listener.sni_routes:
        yield told(column, listener, "sni_routes", "sni_routes")
    if listener.protocol_routes:
        yield told(column, listener, "protocol_routes", "protocol_routes")
    if listener.client_certificates:
        yield told(column, listener, "client_certificates", "client_certificates")


def _of_tls(column: Column, listener: Listener, tls: ListenerTls) -> Iterator[Incompatibility]:
    if tls.same_certificate and listener.protocol is not Protocol.TCP:
        yield told(column, listener, "same_certificate", "tls.same_certificate")
    if not tls.session_tickets:
        yield told(column, listener, "session_tickets", "tls.session_tickets")


def _of_client_address(column: Column, listener: Listener, said: ClientAddress) -> Iterator[Incompatibility]:
    if said.proxy_protocol_from:
        yield told(column, listener, "proxy_protocol", "client_address.proxy_protocol_from")
    if said.forwarded_header_from:
        yield told(column, listener, "forwarded_from", "client_address.forwarded_header_from")
    if said.send_forwarded:
        yield told(column, listener, "forwarded_from", "client_address.send_forwarded")
    if said.forwarded_from:
        yield told(column, listener, "forwarded_from", "client_address.forwarded_from")
