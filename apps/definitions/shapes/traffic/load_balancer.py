"""The shape of a LoadBalancer: where it stands, and the ports that clients connect to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars.client_certificates import MOST_ENTRIES, distinct, without_default
from apps.compiler.model.listener_options import ClientProtocol
from apps.compiler.model.shared import Protocol
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import ALWAYS, UNORDERED, About, Check, Data, Distinct, Shape
from apps.definitions.shapes.base.words import (
    LISTED,
    Boolean,
    ByName,
    Hostname,
    Name,
    Path,
    Port,
    Reference,
    at_most,
    word,
)
from apps.definitions.shapes.traffic.access import ConnectionAccess
from apps.definitions.shapes.traffic.client_limit import ConnectionLimitSpec
from apps.definitions.shapes.traffic.listener_options import (
    MAX_PROTOCOLS,
    PROTOCOL,
    CacheSpec,
    ClientAddressSpec,
    ClientCertificatesSpec,
    CompressionSpec,
    ConnectionsSpec,
    TlsSpec,
    TracingSpec,
)

PROTOCOLS = {Protocol.HTTP: "HTTP", Protocol.HTTPS: "HTTPS", Protocol.TCP: "TCP"}
CLIENT_PROTOCOLS = {
    ClientProtocol.TLS: "TLS",
    ClientProtocol.HTTP: "HTTP",
    ClientProtocol.WEBSOCKET: "WebSocket",
    ClientProtocol.SSH: "SSH",
    ClientProtocol.RDP: "RDP",
    ClientProtocol.SOCKS5: "SOCKS 5",
    ClientProtocol.SILENT: "Nothing for five seconds",
}


def _where_tls_ends(certificates: tuple[str, ...], data: Data) -> None:
    protocol = data.get("protocol")
    if protocol is Protocol.HTTPS and not certificates:
        raise GrammarError("missing", "An https listener needs at least one certificate.")
    if protocol is Protocol.HTTP and certificates:
        raise GrammarError("protocol", "An http listener has no certificates; choose https, or tcp with TLS.")


def _of_tcp(pool: str | None, data: Data) -> None:
    chosen = data.get("sni_routes", True) or data.get("protocol_routes", True)
    if data.get("protocol") is Protocol.TCP and pool is None and not chosen:
        detail = "A tcp listener needs a default_pool, sni_routes or protocol_routes; it has no routes."
        raise GrammarError("missing", detail)


def _one_of_them(certificate: str | None, data: Data) -> None:
    if certificate is not None and certificate not in data.get("certificates", (certificate,)):
        raise GrammarError("unknown", "Name the default certificate among the listener's certificates as well.")


def _without_requests(value: ConnectionsSpec, data: Data) -> None:
    plain = ConnectionsSpec(value.max_connections, value.client_timeout_ms)
    if data.get("protocol") is Protocol.TCP and value != plain:
        raise GrammarError(
            "protocol", "A tcp listener has no requests; set only max_connections and client_timeout_ms."
        )


def _without_headers(value: ClientAddressSpec, data: Data) -> None:
    if data.get("protocol") is Protocol.TCP and value.forwarded_from:
        raise GrammarError("protocol", "A tcp listener has no X-Forwarded-For; leave forwarded_from out.")


def _without_headers_to_tell(value: ConnectionLimitSpec, data: Data) -> None:
    if data.get("protocol") is Protocol.TCP and value.log_only:
        raise GrammarError("protocol", "A tcp listener has no header to tell its servers by; leave log_only out.")


def _without_answers(value: object, data: Data) -> None:
    if value is not None and data.get("protocol") is Protocol.TCP:
        raise GrammarError("protocol", "Only listeners of http and https can do this; leave it out.")


def _without_client_certificates(value: object, data: Data) -> None:
    if value is not None and data.get("client_certificates"):
        raise GrammarError("client_certificates", "Leave the cache out where clients present certificates.")


def _with_tls(value: object, data: Data) -> None:
    protocol = data.get("protocol")
    if value is not None and protocol is Protocol.HTTP:
        raise GrammarError("protocol", "Only a listener that ends TLS has this; leave it out.")
    if value is not None and protocol is Protocol.TCP and not data.get("certificates", True):
        raise GrammarError("protocol", "A tcp listener has this only with certificates; name one, or leave it out.")


def _of_its_protocol(value: TlsSpec | None, data: Data) -> None:
    protocol = data.get("protocol")
    if value is None:
        return
    if protocol is Protocol.HTTPS and value.alpn:
        raise GrammarError("protocol", "An https listener offers h2 and http/1.1 (http2); leave alpn out.")
    of_connections = TlsSpec(
        value.preset, value.minimum_version, session_tickets=value.session_tickets, alpn=value.alpn
    )
    if protocol is Protocol.TCP and value != of_connections:
        detail = "A tcp listener has no requests; leave http2, http3 and same_certificate out."
        raise GrammarError("protocol", detail)


def _takes_http3(data: Data) -> bool:
    tls = data.get("tls")
    return isinstance(tls, TlsSpec) and tls.http3


def _without_http3(value: ClientAddressSpec, data: Data) -> None:
    if value.proxy_protocol_from and _takes_http3(data):
        raise GrammarError("http3", "Turn tls.http3 off: HTTP/3 comes without the PROXY protocol.")


def _of_clients(entries: tuple[ClientCertificatesSpec, ...], data: Data) -> None:
    if entries:
        _with_tls(entries, data)
        if _takes_http3(data):
            raise GrammarError("http3", "Turn tls.http3 off where clients present certificates.")
    distinct(entries)
    without_default(entries, data.get("default_certificate"))


def _only_of_tcp(routes: tuple[object, ...], data: Data) -> None:
    if routes and data.get("protocol") in (Protocol.HTTP, Protocol.HTTPS):
        raise GrammarError("protocol", "Only a tcp listener has these; http and https have routes.")


def _besides_ended(routes: tuple[SniRouteSpec, ...], data: Data) -> None:
    if any(each.passthrough for each in routes) and not data.get("certificates", True):
        detail = "Without certificates every connection is passed on; leave passthrough out."
        raise GrammarError("passthrough", detail)


def _told_apart(routes: tuple[ProtocolRouteSpec, ...], data: Data) -> None:
    if data.get("certificates") and any(each.protocol is ClientProtocol.TLS for each in routes):
        detail = "All clients of a listener with certificates speak TLS; lead what begins otherwise, or choose by alpn."
        raise GrammarError("protocol", detail)


def _offered(value: TlsSpec | None, data: Data) -> None:
    asked = {each.alpn for each in data.get("protocol_routes", ()) if each.alpn} if data.get("certificates") else set()
    if missing := sorted(asked - set(value.alpn if value else ())):
        detail = f"Offer {', '.join(missing)} in alpn as well: protocol_routes choose by what was agreed on."
        raise GrammarError("alpn", detail)


@dataclass(frozen=True, slots=True)
class ProtocolRouteSpec(Shape):
    """How clients begin, and the pool that gets their connections."""

    component: ClassVar[str] = "ProtocolRoute"

    pool: Annotated[Reference, About("A tcp pool.", "Pool")]
    protocol: Annotated[
        ClientProtocol | None,
        word(ClientProtocol, CLIENT_PROTOCOLS),
        About("What clients send first.", "Protocol", absent_when_empty=True),
    ] = None
    alpn: Annotated[
        str,
        PROTOCOL,
        About(
            "A protocol of ALPN: one that the client's TLS offers, or that a listener with certificates agreed on.",
            "ALPN",
            absent_when_empty=True,
        ),
    ] = ""

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """Exactly one of the two."""
        if ("protocol" in sent) == ("alpn" in sent):
            yield FieldError("", "one_of", "Say exactly one of protocol and alpn.")


@dataclass(frozen=True, slots=True)
class SniRouteSpec(Shape):
    """A name that clients of TLS ask for, and the pool that gets their connections."""

    component: ClassVar[str] = "SniRoute"

    hostname: Annotated[Hostname, About("`*.` for one label below a domain.", "Hostname")]
    pool: Annotated[Reference, About("A tcp pool.", "Pool")]
    passthrough: Annotated[
        Boolean,
        About("Whether a listener with certificates passes TLS of this name on to the servers.", "Pass TLS on"),
    ] = False


@dataclass(frozen=True, slots=True)
class ListenerSpec(Shape):
    """Where clients connect; certificates and pools of others are not shown to customers."""

    may_be_absent: ClassVar[tuple[str, ...]] = ("certificates", "default_pool")

    name: Annotated[Name, About("The name of the listener.", "Name", "", "web")]
    protocol: Annotated[
        Protocol, word(Protocol, PROTOCOLS), About("The protocol of the clients.", "Protocol", "", "http")
    ]
    port: Annotated[Port, About("The port on the static IP, or on each node's own address.", "Port", "", 80)]
    static_ip: Annotated[ByName | None, About("Default: each node's own address.", "Static IP")] = None
    certificates: Annotated[
        tuple[Reference, ...],
        LISTED,
        Distinct(),
        UNORDERED,
        Check(_where_tls_ends),
        ALWAYS,
        About(
            "The certificates of an https listener, or of a tcp listener that ends TLS, chosen by the name that "
            "clients request.",
            "Certificates",
        ),
    ] = ()
    sni_routes: Annotated[
        tuple[SniRouteSpec, ...],
        LISTED,
        Distinct(("hostname",)),
        Check(_only_of_tcp),
        Check(_besides_ended),
        About(
            "Pools of a tcp listener, by the TLS name that clients request; without certificates TLS is passed on. "
            "The rest goes to the default pool, or is closed if there is none.",
            "SNI routes",
            absent_when_empty=True,
        ),
    ] = ()
    protocol_routes: Annotated[
        tuple[ProtocolRouteSpec, ...],
        LISTED,
        Distinct(("protocol", "alpn")),
        at_most(MAX_PROTOCOLS, "protocols"),
        Check(_only_of_tcp),
        Check(_told_apart),
        About(
            "Pools of a tcp listener, by what clients send first, so that SSH, HTTP and TLS share a port; with "
            "certificates, by what they send inside TLS. An `alpn` is looked at before `sni_routes`, the rest after.",
            "Protocol routes",
            most=MAX_PROTOCOLS,
            absent_when_empty=True,
        ),
    ] = ()
    default_pool: Annotated[
        Reference | None,
        Check(_of_tcp),
        ALWAYS,
        About("The pool for requests that match no route; a tcp listener has no routes.", "Default pool"),
    ] = None
    default_certificate: Annotated[
        Reference | None,
        Check(_one_of_them),
        About(
            "Presented to clients that request no name or an unknown one; without it they are rejected.",
            "Default certificate",
            absent_when_empty=True,
        ),
    ] = None
    tls: Annotated[
        TlsSpec | None,
        Check(_with_tls),
        Check(_of_its_protocol),
        Check(_offered),
        ALWAYS,
        About("The TLS settings of a listener with certificates.", "TLS", absent_when_empty=True),
    ] = None
    client_certificates: Annotated[
        tuple[ClientCertificatesSpec, ...],
        LISTED,
        at_most(MOST_ENTRIES, "entries"),
        Check(_of_clients),
        About(
            "Certificates that clients of a listener with certificates present (mutual TLS), by hostname.",
            "Client certificates",
            most=MOST_ENTRIES,
            absent_when_empty=True,
        ),
    ] = ()
    client_address: Annotated[
        ClientAddressSpec | None,
        Check(_without_headers),
        Check(_without_http3),
        About("The proxies that are trusted for the client's address.", "Client address", absent_when_empty=True),
    ] = None
    access: Annotated[
        ConnectionAccess | None,
        About(
            "Which networks may connect; others are disconnected before TLS and any request.",
            "Access",
            absent_when_empty=True,
        ),
    ] = None
    connections: Annotated[
        ConnectionsSpec | None,
        Check(_without_requests),
        About("How many clients may connect, and how long they may be idle.", "Connections", absent_when_empty=True),
    ] = None
    client_limit: Annotated[
        ConnectionLimitSpec | None,
        Check(_without_headers_to_tell),
        About("How many connections one client may open.", "New connections per client", absent_when_empty=True),
    ] = None
    compression: Annotated[
        CompressionSpec | None,
        Check(_without_answers),
        About("The compression of responses.", "Compression", absent_when_empty=True),
    ] = None
    cache: Annotated[
        CacheSpec | None,
        Check(_without_answers),
        Check(_without_client_certificates),
        About(
            "Responses that each node caches in memory for all clients.",
            "Cache",
            absent_when_empty=True,
        ),
    ] = None
    tracing: Annotated[
        TracingSpec | None,
        Check(_without_answers),
        About("Takes part in distributed traces, by the header `traceparent`.", "Tracing", absent_when_empty=True),
    ] = None
    monitor_path: Annotated[
        Path | None,
        Check(_without_answers),
        About(
            "Each node responds to this path with 200 on any host, for a load balancer in front.",
            "Monitor path",
            example="/up",
            absent_when_empty=True,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class LoadBalancerSpec(Shape):
    """A front: the fleets that run it, the stacks that it stands in, and its ports."""

    fleets: Annotated[
        tuple[ByName, ...],
        LISTED,
        Distinct(),
        UNORDERED,
        About("The fleets that run it.", "Fleets", example="europe-west1"),
    ] = ()
    stacks: Annotated[
        tuple[ByName, ...], LISTED, Distinct(), UNORDERED, About("The stacks that it is deployed in.", "Stacks")
    ] = ()
    listeners: Annotated[
        tuple[ListenerSpec, ...],
        LISTED,
        Distinct(("name",), ("port", "static_ip")),
        About("The ports that clients connect to."),
    ] = ()
