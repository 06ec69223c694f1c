"""The shapes of what a listener may be told: connections, client addresses, TLS, compression, cache, traces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars.client_certificates import MAX_CRL, MOST_HOSTNAMES, revocation_lists
from apps.compiler.grammars.servers import MAX_CA, ca_bundle
from apps.compiler.grammars.tracing import percentage
from apps.compiler.model import listener_options as model
from apps.compiler.model.listener_options import TEXT_TYPES, ClientVerify, KeepAlive, TlsPreset, TlsVersion, TraceMode
from apps.core.errors import FieldError
from apps.definitions.shapes.base.networks import CIDR
from apps.definitions.shapes.base.shape import SORTED, About, Check, Data, Distinct, Grammar, Shape
from apps.definitions.shapes.base.words import LISTED, Boolean, Hostname, TimeMs, at_most, text, whole, word
from apps.definitions.values.authorities import (
    complaint_about_authorities,
    complaint_about_revocation_lists,
    complaint_about_roots,
)
from apps.definitions.values.certificates import canonical_pem

MAX_NETWORKS = 200
MAX_TYPES = 32
MAX_PROTOCOLS = 8
KEEP_ALIVE = {
    KeepAlive.BOTH: "Clients and servers",
    KeepAlive.CLIENTS: "Clients only",
    KeepAlive.NONE: "None: one request for each connection",
}
PRESETS = {
    TlsPreset.INTERMEDIATE: "Intermediate: TLS 1.2 and 1.3",
    TlsPreset.MODERN: "Modern: TLS 1.3 only",
}
CLIENT_VERIFY = {
    ClientVerify.REQUIRED: "Required",
    ClientVerify.OPTIONAL: "Optional",
}
TRACE_MODES = {
    TraceMode.MAKE: "Keep and begin traces",
    TraceMode.KEEP: "Keep traces of clients",
}
VERSIONS = {TlsVersion.V12: "TLS 1.2", TlsVersion.V13: "TLS 1.3"}
NETWORK = text(grammar.trusted_network, "a network in CIDR", pattern=CIDR)
Networks = tuple[Annotated[str, NETWORK], ...]
PROTOCOL = text(grammar.alpn, "the registered name of a protocol", 64)
PERCENTAGE = Grammar(percentage, {"type": "number", "minimum": 0, "maximum": 100})
MEDIA_TYPE = text(grammar.media_type, "a media type", 97)


@dataclass(frozen=True, slots=True)
class ConnectionsSpec(model.Connections, Shape):
    """How many clients may be connected, and how long they may be idle; tcp has only the first two."""

    component: ClassVar[str] = "ListenerConnections"

    max_connections: Annotated[
        int | None,
        whole(1, grammar.MAX_CLIENTS),
        About(
            "Concurrent connections on each node; further ones wait. Default: the limit of the node.",
            "Max. connections",
        ),
    ] = None
    client_timeout_ms: Annotated[
        TimeMs, About("ms. An idle client is disconnected after this time.", "Client timeout", "ms")
    ] = 60_000
    request_timeout_ms: Annotated[
        TimeMs, About("ms. A request's headers must arrive within this time.", "Request timeout", "ms")
    ] = 10_000
    keepalive_timeout_ms: Annotated[
        TimeMs, About("ms. An idle connection of a client is closed after this time.", "Keep-alive timeout", "ms")
    ] = 60_000
    keep_alive: Annotated[
        KeepAlive, word(KeepAlive, KEEP_ALIVE), About("Which connections stay open after a response.", "Keep open")
    ] = KeepAlive.BOTH


def _texts(value: object) -> set[str]:
    return {each for each in value if isinstance(each, str)} if isinstance(value, list | tuple) else set()


@dataclass(frozen=True, slots=True)
class ClientAddressSpec(model.ClientAddress, Shape):
    """Which proxies are trusted to report a client's address. Any other peer is treated as the client."""

    component: ClassVar[str] = "ListenerClientAddress"

    proxy_protocol_from: Annotated[
        Networks,
        LISTED,
        Distinct(),
        at_most(MAX_NETWORKS, "networks"),
        SORTED,
        About(
            "Networks of load balancers that start each connection with the PROXY protocol (version 1 or 2).",
            "PROXY protocol from",
            most=MAX_NETWORKS,
        ),
    ] = ()
    forwarded_from: Annotated[
        Networks,
        LISTED,
        Distinct(),
        at_most(MAX_NETWORKS, "networks"),
        SORTED,
        About(
            "Networks of proxies, such as a CDN, whose X-Forwarded-For, -Proto and -Port are trusted.",
            "X-Forwarded-For from",
            most=MAX_NETWORKS,
        ),
    ] = ()
    forwarded_header_from: Annotated[
        Networks,
        LISTED,
        Distinct(),
        at_most(MAX_NETWORKS, "networks"),
        SORTED,
        About(
            "Networks of proxies whose Forwarded header (RFC 7239) is trusted instead.",
            "Forwarded from",
            most=MAX_NETWORKS,
        ),
    ] = ()
    send_forwarded: Annotated[
        Boolean, About("Whether servers also get the Forwarded header (RFC 7239).", "Send Forwarded", "")
    ] = False

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """It says something, and nobody is trusted for two headers."""
        names = ("proxy_protocol_from", "forwarded_from", "forwarded_header_from", "send_forwarded")
        if not any(sent.get(name) for name in names):
            yield FieldError("", "missing", "Name at least one network, or leave client_address out.")
        both = _texts(sent.get("forwarded_from")) & _texts(sent.get("forwarded_header_from"))
        if both:
            message = f"Trust {min(both)} for one header only: a proxy passes on what clients write in the other."
            yield FieldError("/forwarded_header_from", "twice", message)


def _fits_preset(version: TlsVersion | None, data: Data) -> None:
    if version is TlsVersion.V12 and data.get("preset") is TlsPreset.MODERN:
        raise GrammarError("tls_version", "The modern preset speaks TLS 1.3 only; choose intermediate for TLS 1.2.")


@dataclass(frozen=True, slots=True)
class TlsSpec(model.ListenerTls, Shape):
    """What is offered to clients of a listener with certificates. TLS 1.3's early data (0-RTT) is never taken."""

    component: ClassVar[str] = "ListenerTls"

    preset: Annotated[
        TlsPreset | None,
        word(TlsPreset, PRESETS),
        About("Versions and ciphers, by Mozilla's names. Default: the preset of the fleet.", "TLS preset"),
    ] = None
    minimum_version: Annotated[
        TlsVersion | None,
        word(TlsVersion, VERSIONS),
        Check(_fits_preset),
        About("The oldest accepted version. Default: that of the preset.", "Oldest TLS version"),
    ] = None
    http2: Annotated[Boolean, About("Whether clients of https may use HTTP/2 (ALPN).", "HTTP/2")] = True
    http3: Annotated[
        Boolean,
        About(
            "Whether clients of https may use HTTP/3, on the UDP port of the same number. Each node of the fleets "
            "needs HAProxy 2.8 or later with QUIC.",
            "HTTP/3",
        ),
    ] = False
    same_certificate: Annotated[
        Boolean,
        About(
            "Whether a connection only serves hosts of the certificate that it began with; other hosts get 421.",
            "Only hosts of the presented certificate",
        ),
    ] = False
    session_tickets: Annotated[
        Boolean,
        About(
            "Whether clients get session tickets, with which they resume at any node of the fleet. Listeners with "
            "client_certificates never give any.",
            "Session tickets",
        ),
    ] = True
    alpn: Annotated[
        tuple[Annotated[str, PROTOCOL], ...],
        LISTED,
        Distinct(),
        at_most(MAX_PROTOCOLS, "protocols"),
        About(
            "The protocols that a tcp listener offers (ALPN), by their registered names, best first. Default: none.",
            "ALPN",
            most=MAX_PROTOCOLS,
            absent_when_empty=True,
        ),
    ] = ()


def _authorities(value: object) -> str:
    pem = ca_bundle(canonical_pem(value) if isinstance(value, str) else value)
    if complaint := complaint_about_authorities(pem) or complaint_about_roots(pem):
        raise GrammarError(*complaint)
    return pem


def _revocation_lists(value: object) -> str:
    return revocation_lists(canonical_pem(value) if isinstance(value, str) else value)


def _of_these_authorities(crl: str, data: Data) -> None:
    if crl and "ca" in data and (complaint := complaint_about_revocation_lists(crl, data["ca"])):
        raise GrammarError(*complaint)


@dataclass(frozen=True, slots=True)
class ClientCertificatesSpec(model.ClientCertificates, Shape):
    """Mutual TLS: what clients of these hostnames present."""

    component: ClassVar[str] = "ListenerClientCertificates"

    mode: Annotated[
        ClientVerify,
        word(ClientVerify, CLIENT_VERIFY),
        About("Whether requests without a valid certificate are rejected.", "Mode"),
    ]
    ca: Annotated[
        str,
        text(_authorities, "PEM text", MAX_CA),
        About(
            "The certificates of the authorities that issue client certificates, with their roots, in PEM.", "Issuers"
        ),
    ]
    crl: Annotated[
        str,
        text(_revocation_lists, "PEM text", MAX_CRL, blank=True),
        Check(_of_these_authorities),
        About(
            "A revocation list of each of the authorities, in PEM. An expired list makes every certificate invalid.",
            "Revocation lists",
            absent_when_empty=True,
        ),
    ] = ""
    hostnames: Annotated[
        tuple[Hostname, ...],
        LISTED,
        Distinct(),
        at_most(MOST_HOSTNAMES, "hostnames"),
        SORTED,
        About(
            "The hostnames of this entry, `*.` for one label. Default: all that no other entry names.",
            "Hostnames",
            most=MOST_HOSTNAMES,
            absent_when_empty=True,
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class CompressionSpec(model.Compression, Shape):
    """Responses are compressed (gzip) for clients that accept it, unless the server has compressed them."""

    component: ClassVar[str] = "ListenerCompression"

    types: Annotated[
        tuple[Annotated[str, MEDIA_TYPE], ...],
        LISTED,
        Distinct(),
        at_most(MAX_TYPES, "media types"),
        Check(lambda types, _: grammar.some(types)),
        SORTED,
        About("The media types that are compressed.", "Media types", "Default: texts.", most=MAX_TYPES),
    ] = TEXT_TYPES


@dataclass(frozen=True, slots=True)
class CacheSpec(model.Cache, Shape):
    """Responses that each node caches for all clients that request the same host, path and query."""

    component: ClassVar[str] = "ListenerCache"

    total_mb: Annotated[
        int,
        whole(*grammar.CACHE_MB),
        About("The memory of the cache on each node, in MB.", "Memory (MB)", "On each node."),
    ] = 64
    max_object_bytes: Annotated[
        int,
        whole(*grammar.CACHE_OBJECT),
        About(
            "Responses larger than this, with their headers, are not cached.",
            "Largest response (bytes)",
            "With its headers.",
        ),
    ] = 65_536
    max_age_s: Annotated[
        int,
        whole(*grammar.CACHE_AGE),
        About(
            "Responses are cached for at most this time; servers may set less.",
            "Max. age (s)",
            "Servers may set less.",
        ),
    ] = 60

    def contradictions(self) -> Iterable[FieldError]:
        """A response that takes more than half of the memory."""
        if self.max_object_bytes > grammar.largest_object(self.total_mb):
            detail = "Use at most half of the memory for one response."
            yield FieldError("/max_object_bytes", "too_large", detail)


@dataclass(frozen=True, slots=True)
class TracingSpec(model.Tracing, Shape):
    """Traces of requests by `traceparent` (W3C Trace Context)."""

    component: ClassVar[str] = "ListenerTracing"

    mode: Annotated[
        TraceMode,
        word(TraceMode, TRACE_MODES),
        About("Whether traces also begin here, where a client sent none or a malformed one.", "Mode"),
    ] = TraceMode.MAKE
    sample_percent: Annotated[
        Annotated[float, PERCENTAGE],
        About("Percent of the requests that are sampled, by chance.", "Sampled", "% of the requests."),
    ] = 1.0
    sampled_from: Annotated[
        Networks,
        LISTED,
        Distinct(),
        at_most(MAX_NETWORKS, "networks"),
        SORTED,
        About(
            "Networks of clients whose own decision to sample is followed. That of others is not.",
            "Sampled by clients of",
            most=MAX_NETWORKS,
        ),
    ] = ()
