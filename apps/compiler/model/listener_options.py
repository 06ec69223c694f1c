"""What a listener may be told beyond its port: times, client addresses, TLS, traces … None is as it always was."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apps.compiler.model.access import ConnectionAccess

TEXT_TYPES = (
    "application/javascript",
    "application/json",
    "application/xml",
    "image/svg+xml",
    "text/css",
    "text/html",
    "text/javascript",
    "text/plain",
    "text/xml",
)


class KeepAlive(StrEnum):
    """Whose connections stay open after an answer: those of clients and servers, of clients alone, or none."""

    BOTH = "both"
    CLIENTS = "clients"
    NONE = "none"


class TlsPreset(StrEnum):
    """Which versions and ciphers are offered to clients, by Mozilla's names."""

    MODERN = "modern"
    INTERMEDIATE = "intermediate"


class TlsVersion(StrEnum):
    """The oldest version of TLS that is spoken."""

    V12 = "1.2"
    V13 = "1.3"


@dataclass(frozen=True, slots=True)
class Connections:
    """How many clients may be connected on each node, and how long they may be silent; times in ms.

    A listener of tcp has the first two alone.
    """

    max_connections: int | None = None
    client_timeout_ms: int = 60_000
    request_timeout_ms: int = 10_000
    keepalive_timeout_ms: int = 60_000
    keep_alive: KeepAlive = KeepAlive.BOTH


@dataclass(frozen=True, slots=True)
class ConnectionLimit:
    """How many connections one client may open, counted over all nodes of the region; a client is an address.

    Otherwise it is as a limit of requests (model/policy.py).
    """

    connections: int | None = None
    per: str | None = None
    burst: int | None = None
    ipv4_prefix: int | None = None
    ipv6_prefix: int | None = None
    log_only: bool | None = None
    exempt: tuple[str, ...] | None = None
    clients: int | None = None


@dataclass(frozen=True, slots=True)
class ClientAddress:
    """Networks (CIDR) whose word is taken for where a client is: in the PROXY protocol, in X-Forwarded-For, or in
    Forwarded (RFC 7239); `send_forwarded` says whether servers get that header as well.
    """

    proxy_protocol_from: tuple[str, ...] = ()
    forwarded_from: tuple[str, ...] = ()
    forwarded_header_from: tuple[str, ...] = ()
    send_forwarded: bool = False


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """What is offered to clients of TLS. None: what the fleet offers; `alpn` is of listeners of tcp alone."""

    preset: TlsPreset | None = None
    minimum_version: TlsVersion | None = None
    http2: bool = True
    http3: bool = False
    same_certificate: bool = False
    session_tickets: bool = True
    alpn: tuple[str, ...] = ()


class ClientVerify(StrEnum):
    """Whether clients must present a certificate, or may."""

    REQUIRED = "required"
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class ClientCertificates:
    """Authorities (PEM) whose certificates clients of these hostnames present; without hostnames: of all others."""

    mode: ClientVerify
    ca: str
    crl: str = ""
    hostnames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compression:
    """Media types of answers that are compressed (gzip) for clients that take it, unless the server did."""

    types: tuple[str, ...] = TEXT_TYPES


@dataclass(frozen=True, slots=True)
class Cache:
    """How much of routes' answers each node keeps in memory, and for how long."""

    total_mb: int = 64
    max_object_bytes: int = 65_536
    max_age_s: int = 60


class TraceMode(StrEnum):
    """Whether a trace is also made where none came, or those that clients began are kept alone."""

    MAKE = "make"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Tracing:
    """Traces of requests (W3C Trace Context): which there are, and of how many requests spans are wanted (per cent).

    Clients in the networks `sampled_from` (CIDR) decide that themselves.
    """

    mode: TraceMode = TraceMode.MAKE
    sample_percent: float = 1.0
    sampled_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SniRoute:
    """Connections of TLS whose client asks for the hostname (`*.` for one label) go to the pool.

    They go as they are, unless the listener ends TLS; then `passthrough` says so of one name.
    """

    hostname: str
    pool_id: str
    passthrough: bool = False

    @property
    def said(self) -> str:
        """What is asked."""
        return self.hostname


class ClientProtocol(StrEnum):
    """What clients of a tcp listener send first; `silent` ones wait for the server to speak."""

    TLS = "tls"
    HTTP = "http"
    WEBSOCKET = "websocket"
    SSH = "ssh"
    RDP = "rdp"
    SOCKS5 = "socks5"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class ProtocolRoute:
    """Connections that begin so, or whose TLS offers the protocol `alpn`, go to the pool: one of both is said."""

    pool_id: str
    protocol: ClientProtocol | None = None
    alpn: str = ""

    @property
    def said(self) -> str:
        """What is asked: `ssh`, or the name of ALPN."""
        return self.protocol or self.alpn


ConnectionRoute = SniRoute | ProtocolRoute


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerOptions:
    """What a listener has of it."""

    access: ConnectionAccess | None = None
    connections: Connections | None = None
    client_limit: ConnectionLimit | None = None
    client_address: ClientAddress | None = None
    tls: ListenerTls | None = None
    compression: Compression | None = None
    cache: Cache | None = None
    tracing: Tracing | None = None
    monitor_path: str | None = None
    default_certificate_id: str | None = None
    sni_routes: tuple[SniRoute, ...] = ()
    protocol_routes: tuple[ProtocolRoute, ...] = ()
    client_certificates: tuple[ClientCertificates, ...] = ()

    @property
    def connection_routes(self) -> tuple[ConnectionRoute, ...]:
        """All that lead connections to pools; the rest is for the default pool."""
        return (*self.sni_routes, *self.protocol_routes)
