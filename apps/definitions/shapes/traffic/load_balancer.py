"""The shape of a LoadBalancer: where it stands, and the ports that clients connect to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler.grammar import GrammarError
from apps.compiler.model.shared import Protocol
from apps.definitions.shapes.base.shape import ALWAYS, UNORDERED, About, Check, Data, Distinct, Shape
from apps.definitions.shapes.base.words import LISTED, ByName, Hostname, Name, Path, Port, Reference, word
from apps.definitions.shapes.traffic.listener_options import (
    ClientAddressSpec,
    CompressionSpec,
    ConnectionsSpec,
    TlsSpec,
)


def _of_https(certificates: tuple[str, ...], data: Data) -> None:
    protocol = data.get("protocol")
    if protocol is Protocol.HTTPS and not certificates:
        raise GrammarError("missing", "An https listener needs at least one certificate.")
    if protocol in (Protocol.HTTP, Protocol.TCP) and certificates:
        raise GrammarError("protocol", "Only an https listener has certificates.")


def _of_tcp(pool: str | None, data: Data) -> None:
    if data.get("protocol") is Protocol.TCP and pool is None and not data.get("sni_routes", True):
        raise GrammarError("missing", "A tcp listener needs a default_pool or sni_routes; it has no routes.")


def _one_of_them(certificate: str | None, data: Data) -> None:
    if certificate is not None and certificate not in data.get("certificates", (certificate,)):
        raise GrammarError("unknown", "Name the default certificate among the listener's certificates as well.")


def _without_requests(value: ConnectionsSpec, data: Data) -> None:
    plain = ConnectionsSpec(value.max_connections, value.client_timeout_ms)
    if data.get("protocol") is Protocol.TCP and value != plain:
        raise GrammarError(
            "protocol", "A tcp listener has no requests; set max_connections and client_timeout_ms alone."
        )


def _without_headers(value: ClientAddressSpec, data: Data) -> None:
    if data.get("protocol") is Protocol.TCP and value.forwarded_from:
        raise GrammarError("protocol", "A tcp listener has no X-Forwarded-For; leave forwarded_from out.")


def _without_answers(value: object, data: Data) -> None:
    if value is not None and data.get("protocol") is Protocol.TCP:
        raise GrammarError("protocol", "Only listeners of http and https can do this; leave it out.")


def _without_tls(value: object, data: Data) -> None:
    if value is not None and data.get("protocol") in (Protocol.HTTP, Protocol.TCP):
        raise GrammarError("protocol", "Only an https listener has this; leave it out.")


def _only_of_tcp(routes: tuple[object, ...], data: Data) -> None:
    if routes and data.get("protocol") in (Protocol.HTTP, Protocol.HTTPS):
        raise GrammarError("protocol", "Only a tcp listener passes TLS on; http and https have routes.")


@dataclass(frozen=True, slots=True)
class SniRouteSpec(Shape):
    """A name that clients of TLS ask for, and the pool that gets their connections as they are."""

    component: ClassVar[str] = "SniRoute"

    hostname: Annotated[Hostname, About("`*.` for one label below a domain.", "Hostname")]
    pool: Annotated[Reference, About("A pool of tcp.", "Pool")]


@dataclass(frozen=True, slots=True)
class ListenerSpec(Shape):
    """Where clients connect; certificates and pools of others are not shown to customers."""

    may_be_absent: ClassVar[tuple[str, ...]] = ("certificates", "default_pool")

    name: Annotated[Name, About("What people call it.", "Name", "", "web")]
    protocol: Annotated[Protocol, word(Protocol), About("What clients speak.", "Protocol", "", "http")]
    port: Annotated[Port, About("Of the static IP, or of each node's own address.", "Port", "", 80)]
    static_ip: Annotated[ByName | None, About("None for each node's own address.", "Static IP")] = None
    certificates: Annotated[
        tuple[Reference, ...],
        LISTED,
        Distinct(),
        UNORDERED,
        Check(_of_https),
        ALWAYS,
        About("The chains that are shown, by the name that is asked for; https alone has some.", "Certificates"),
    ] = ()
    sni_routes: Annotated[
        tuple[SniRouteSpec, ...],
        LISTED,
        Distinct(("hostname",)),
        Check(_only_of_tcp),
        About(
            "Of a tcp listener: pools by the name that clients of TLS ask for, without ending TLS. The rest goes to "
            "the default pool, or is closed where there is none.",
            "SNI routes",
            absent_when_empty=True,
        ),
    ] = ()
    default_pool: Annotated[
        Reference | None, Check(_of_tcp), ALWAYS, About("What no route takes; tcp has no routes.", "Default pool")
    ] = None
    default_certificate: Annotated[
        Reference | None,
        Check(_one_of_them),
        About(
            "Shown to clients that ask for a name of none of the certificates, or for none; without it they are "
            "refused.",
            "Default certificate",
            absent_when_empty=True,
        ),
    ] = None
    tls: Annotated[
        TlsSpec | None,
        Check(_without_tls),
        About("What is offered to clients of https.", "TLS", absent_when_empty=True),
    ] = None
    client_address: Annotated[
        ClientAddressSpec | None,
        Check(_without_headers),
        About("Whose word is taken for where a client is.", "Client address", absent_when_empty=True),
    ] = None
    connections: Annotated[
        ConnectionsSpec | None,
        Check(_without_requests),
        About("How many clients, and how long they may be silent.", "Connections", absent_when_empty=True),
    ] = None
    compression: Annotated[
        CompressionSpec | None,
        Check(_without_answers),
        About("Answers that are compressed for clients.", "Compression", absent_when_empty=True),
    ] = None
    monitor_path: Annotated[
        Path | None,
        Check(_without_answers),
        About(
            "Each node answers this path itself with 200, on any host: for a balancer in front.",
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
        About("Those that run it.", "Fleets", example="europe-west1"),
    ] = ()
    stacks: Annotated[
        tuple[ByName, ...], LISTED, Distinct(), UNORDERED, About("Those that it stands in.", "Stacks")
    ] = ()
    listeners: Annotated[
        tuple[ListenerSpec, ...], LISTED, Distinct(("name",), ("port", "static_ip")), About("Its ports.")
    ] = ()
