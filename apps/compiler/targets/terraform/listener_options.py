"""What clouds lose of what a listener is told beyond its port; TLS is each cloud's own (balancers.py, frontends.py)."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.listener_options import TlsPreset, TlsVersion
from apps.compiler.model.shared import Listener
from apps.compiler.portability.incompatibilities import Incompatibility, Target, lossy, refused

_NAMES = {Target.AWS: "AWS", Target.GOOGLE: "Google Cloud"}


def is_tls13_alone(listener: Listener) -> bool:
    """Whether older versions are refused."""
    tls = listener.tls
    return tls is not None and (tls.preset is TlsPreset.MODERN or tls.minimum_version is TlsVersion.V13)


def default_first(listener: Listener) -> list[str]:
    """Its certificates, each once; clients that ask for none of their names are shown the first one."""
    default = listener.default_certificate_id
    return sorted(dict.fromkeys(listener.certificate_ids), key=lambda key: key != default)


def unsupported_options(target: Target, listener: Listener) -> Iterator[Incompatibility]:
    """Connections, limits per client, client addresses, compression, the cache, traces, the monitor path."""
    cloud = _NAMES[target]
    if listener.connections is not None:
        yield lossy(
            target, listener, "connections", "connections",
            f"{cloud} uses its own timeouts and limits for clients; connections has no effect.",
            "Leave connections out, or put the load balancer on a fleet.",
        )  # fmt: skip
    if listener.client_address is not None:
        yield from _of_client_address(target, listener)
    yield from _refused(target, listener)
    if listener.compression is not None:
        yield lossy(
            target, listener, "compression", "compression",
            f"{cloud} does not compress responses.", "Compress them on the servers.",
        )  # fmt: skip
    if listener.cache is not None:
        yield lossy(
            target, listener, "cache", "cache",
            f"{cloud} does not cache responses: every request reaches a server.", "Leave the cache out.",
        )  # fmt: skip
    if listener.tracing is not None:
        yield lossy(
            target, listener, "tracing", "tracing",
            f"{cloud} passes traceparent on as it comes, begins no trace, and writes no request lines.",
            "Begin traces at the clients or the servers.",
        )  # fmt: skip
    if listener.tls is not None and listener.tls.same_certificate:
        yield lossy(
            target, listener, "same_certificate", "tls.same_certificate",
            f"{cloud} serves all hosts of a listener on each connection.",
            "Use a load balancer for each certificate.",
        )  # fmt: skip
    if listener.tls is not None and not listener.tls.session_tickets:
        yield lossy(
            target, listener, "session_tickets", "tls.session_tickets",
            f"{cloud} gives session tickets to every client that takes them.",
            "Leave session_tickets out, or put the load balancer on a fleet.",
        )  # fmt: skip
    if listener.monitor_path is not None:
        yield lossy(
            target, listener, "monitor_path", "monitor_path",
            f"{cloud} does not answer the monitor path: requests for {listener.monitor_path} go to the routes.",
            "Add a route with a fixed response.",
        )  # fmt: skip


def _refused(target: Target, listener: Listener) -> Iterator[Incompatibility]:
    """Without these, clients would reach what they must not."""
    cloud = _NAMES[target]
    if listener.client_limit is not None:
        yield refused(
            target, listener, "client_limit", "client_limit",
            f"{cloud} does not limit the new connections of a client.",
            "Leave client_limit out, or put the load balancer on a fleet.",
        )  # fmt: skip
    if listener.sni_routes:
        yield refused(
            target, listener, "sni_routes", "sni_routes",
            f"{cloud} forwards all connections of a tcp listener to one pool, whatever name the client requests.",
            "Create a listener for each name, or put the load balancer on a fleet.",
        )  # fmt: skip
    if listener.client_certificates:
        yield refused(
            target, listener, "client_certificates", "client_certificates",
            f"{cloud} verifies client certificates against a trust store, which Spillway does not manage; "
            "without it, every client would get in.",
            "Put the load balancer on a fleet.",
        )  # fmt: skip


def _of_client_address(target: Target, listener: Listener) -> Iterator[Incompatibility]:
    cloud = _NAMES[target]
    if listener.client_address and listener.client_address.proxy_protocol_from:
        yield refused(
            target, listener, "proxy_protocol", "client_address.proxy_protocol_from",
            f"{cloud} does not read the PROXY protocol from a load balancer in front of it.",
            "Have clients connect directly, or put the load balancer on a fleet.",
        )  # fmt: skip
    if listener.client_address and listener.client_address.forwarded_header_from:
        yield lossy(
            target, listener, "forwarded_from", "client_address.forwarded_header_from",
            f"{cloud} does not read the Forwarded header.",
            "Have the servers read it, and trust it only from the proxies in front.",
        )  # fmt: skip
    if listener.client_address and listener.client_address.send_forwarded:
        yield lossy(
            target, listener, "forwarded_from", "client_address.send_forwarded",
            f"{cloud} does not send the Forwarded header.",
            "Have the servers read X-Forwarded-For.",
        )  # fmt: skip
    if listener.client_address and listener.client_address.forwarded_from:
        yield lossy(
            target, listener, "forwarded_from", "client_address.forwarded_from",
            f"{cloud} appends each client address to X-Forwarded-For and trusts no proxy in front of it.",
            "Have the servers skip the entries of the proxies in front.",
        )  # fmt: skip
