"""The shape of a Pool: one service, its health check, and a backend with servers in each region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import grammar, header_text
from apps.compiler.grammar import GrammarError
from apps.compiler.model.servers import HttpVersion, OverflowMode, ProxyProtocol, Reuse
from apps.compiler.model.shared import Balance, LimitKind, LimitScope, Protocol, ServerState, WhenFull
from apps.compiler.model.shared import Limit as PlainLimit
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import ALWAYS, About, Check, Data, Distinct, Grammar, Shape, Wrong
from apps.definitions.shapes.base.words import (
    LISTED,
    Boolean,
    ByName,
    Name,
    Pairs,
    Port,
    ServerAddress,
    Tags,
    TimeMs,
    read_pairs,
    real,
    sorted_pairs,
    text,
    whole,
    word,
)
from apps.definitions.shapes.servers.connections import PROXY_PROTOCOLS, REUSE, VERSIONS, Connections, Retries
from apps.definitions.shapes.servers.fitting import fits
from apps.definitions.shapes.servers.health import AgentCheck, HealthCheckSpec, OutlierEjection
from apps.definitions.shapes.servers.objective import ServiceObjective
from apps.definitions.shapes.servers.persistence import Persistence
from apps.definitions.shapes.servers.server_tls import ServerTls
from apps.definitions.shapes.servers.source import LONGEST as LONGEST_SOURCE
from apps.definitions.shapes.servers.source import source

HIGHEST_LIMIT = 10_000_000
RUN = r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$"
QUEUE_NEEDS_CONNECTIONS = (
    "Requests can wait only for a limit of connections: choose refuse or spread when all regions are full, "
    "or limit by connections in every region."
)
LIMITS = {
    LimitKind.NONE: "No limit",
    LimitKind.RATE: "Requests per second",
    LimitKind.CONNECTIONS: "Concurrent connections",
}
SCOPES = {LimitScope.BACKEND: "All servers together", LimitScope.SERVER: "Each server"}
STATES = {ServerState.READY: "Ready", ServerState.DRAIN: "Drain", ServerState.MAINTENANCE: "Maintenance"}
BALANCE = {
    Balance.LEASTCONN: "Least connections",
    Balance.ROUNDROBIN: "Round robin",
    Balance.SOURCE: "Client address hash",
    Balance.RANDOM: "Random",
}
WHEN_FULL = {
    WhenFull.SPREAD: "Spread over all regions by capacity",
    WhenFull.QUEUE: "Queue in the local region",
    WhenFull.REFUSE: "Answer 503",
}
MODES = {
    OverflowMode.ANYWHERE: "Every region with servers",
    OverflowMode.LISTED: "The regions listed below",
    OverflowMode.NEVER: "Nowhere",
}
MOST_HEADERS = 8


def _read_headers(value: object) -> Pairs:
    found = read_pairs(value, header_text.request_header, grammar.header_value)
    if len(found) > MOST_HEADERS:
        raise GrammarError("too_many", f"Use at most {MOST_HEADERS} headers.")
    if len({name.lower() for name, _ in found}) < len(found):
        raise GrammarError("twice", "Name each header once, in one spelling.")
    return found


REQUEST_HEADERS = Grammar(
    _read_headers,
    {
        "type": "object",
        "title": f"at most {MOST_HEADERS} names of headers with a value each",
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 256},
    },
    sorted_pairs,
)
PROTOCOLS = {Protocol.HTTP: "HTTP", Protocol.TCP: "TCP"}


@dataclass(frozen=True, slots=True)
class ServerSpec(Shape):
    """One address that answers."""

    name: Annotated[Name, About("The name of the server.", "Name", "", "shop-1")]
    address: Annotated[
        ServerAddress,
        About(
            "An IPv4 or IPv6 address, or a name that resolves to one; never this installation.",
            "Address",
            "",
            "10.0.0.1",
        ),
    ]
    port: Annotated[Port, About("The port of the server.", "Port", "", 8080)]
    weight: Annotated[
        int, whole(0, 256), About("Its share of requests, relative to the sum of all weights.", "Weight", "")
    ] = 100
    state: Annotated[
        ServerState,
        word(ServerState, STATES),
        About("`drain` finishes active requests and gets no new ones; `maintenance` gets none.", "State", ""),
    ] = ServerState.READY
    backup: Annotated[
        Boolean, About("Whether it gets requests only while no other server of the region is up.", "Backup", "")
    ] = False


def _fits_kind(value: int, data: Data) -> None:
    kind = data.get("kind")
    if kind is LimitKind.NONE and value:
        raise GrammarError("limit", "A limit of kind none has no value; leave it out.")
    if kind in (LimitKind.RATE, LimitKind.CONNECTIONS) and value == 0:
        raise GrammarError("limit", "Fill in a value of at least 1.")


@dataclass(frozen=True, slots=True)
class LimitSpec(Shape):
    """What a backend accepts: requests per second or requests in flight; `measured_by` names a capacity run."""

    component: ClassVar[str] = "Limit"

    kind: Annotated[LimitKind, word(LimitKind, LIMITS), About("What the limit counts.", "Limit", "", "rate")]
    value: Annotated[
        int,
        whole(0, HIGHEST_LIMIT),
        Check(_fits_kind),
        ALWAYS,
        About("Requests per second, or requests in flight.", "Value", "", 400),
    ] = 0
    scope: Annotated[
        LimitScope,
        word(LimitScope, SCOPES),
        About("Whether the value applies to each server or to all of them.", "For", ""),
    ] = LimitScope.BACKEND
    measured_by: Annotated[
        str,
        text(grammar.name, "a name", pattern=RUN, blank=True),
        About("The capacity run that measured it; kept as long as the limit.", absent_when_empty=True),
    ] = ""

    @property
    def plain(self) -> PlainLimit:
        """The limit as the compiler knows it."""
        return PlainLimit(self.kind, self.value, self.scope)


@dataclass(frozen=True, slots=True)
class LimitChange(LimitSpec):
    """What a small call says about one backend: the whole limit, and a scaler where it names one."""

    capacity_scaler: Annotated[float, real(0, 1)] | None = None

    @property
    def limit(self) -> PlainLimit:
        """The limit alone."""
        return self.plain


NO_LIMIT = LimitSpec(LimitKind.NONE)


def _listed_by_hand(value: tuple[ServerSpec, ...], data: Data) -> None:
    if value and data.get("servers_from"):
        raise GrammarError("found", "Leave the servers out: servers_from says where they are looked up.")


@dataclass(frozen=True, slots=True)
class BackendSpec(Shape):
    """A pool's share in one region."""

    region: Annotated[ByName, About("The region of the servers; its clients come first.", example="europe-west1")]
    limit: Annotated[LimitSpec, About("The limit; excess goes to the next region with capacity.")] = NO_LIMIT
    capacity_scaler: Annotated[
        float,
        real(0, 1),
        About("The share of the limit in use; 0 drains the backend.", "Traffic share", "0 to 1"),
    ] = 1.0
    servers_from: Annotated[
        str,
        text(source, "a source of servers", LONGEST_SOURCE, blank=True),
        About(
            "Where the servers of this region are looked up: `dns://name:port` (A, AAAA), `srv://_service._tcp.name`, "
            "the https URL of a target list (Prometheus `http_sd`) or `file://name` with such a list, every two "
            "seconds; `autoscaling://registry/group:port`, `ecs://registry/cluster/service:port` or "
            "`ec2://registry/tag=value:port`, every ten; `kubernetes://cluster/namespace/service:port`, "
            "`etcd://registry/prefix/` or `consul://registry/service`, which are watched; or `heartbeat://30`: "
            "servers register themselves, and leave when they say nothing for so many seconds.",
            "Servers from",
            "Such as dns://app.internal:8080, kubernetes://prod/shop/web:http, consul://prod/web, file://shop or "
            "heartbeat://30. Default: the servers below.",
            absent_when_empty=True,
        ),
    ] = ""
    servers: Annotated[
        tuple[ServerSpec, ...],
        LISTED,
        Distinct(("name",), ("address", "port")),
        Check(_listed_by_hand),
        About("The servers in this region; none where they are looked up."),
    ] = ()


def _names_regions(value: tuple[str, ...], data: Data) -> None:
    mode = data.get("mode")
    if mode is OverflowMode.LISTED and not value:
        raise GrammarError("missing", "Name the regions that overflow may go to, or choose mode never.")
    if mode is OverflowMode.NEVER and value:
        raise GrammarError("mode", "Overflow goes nowhere in mode never; leave the order out or choose listed.")


@dataclass(frozen=True, slots=True)
class Overflow(Shape):
    """Where overflow may go, which regions are tried first, and what happens when all are full."""

    mode: Annotated[
        OverflowMode,
        word(OverflowMode, MODES),
        About(
            "`anywhere`: to every region in which the pool has servers; `listed`: only to those of `order`; "
            "`never`: a region's requests stay in it.",
            "Overflow to",
            "",
        ),
    ] = OverflowMode.ANYWHERE

    when_full: Annotated[
        WhenFull,
        word(WhenFull, WHEN_FULL),
        About(
            "What happens when no region has capacity.",
            "When every region is full",
            "Queueing requires connection limits.",
        ),
    ] = WhenFull.SPREAD
    order: Annotated[
        tuple[ByName, ...],
        LISTED,
        Distinct(),
        Check(_names_regions),
        ALWAYS,
        About("The regions to try first.", "Overflow order", "Region names in order. Default: nearest first."),
    ] = ()


def _can_wait(value: Overflow, data: Data) -> None:
    backends = data.get("backends", ())
    if value.when_full is WhenFull.QUEUE and any(each.limit.kind is LimitKind.RATE for each in backends):
        raise Wrong(FieldError("/when_full", "queue", QUEUE_NEEDS_CONNECTIONS))


def _spoken_with_servers(value: Protocol, _: Data) -> None:
    if value is Protocol.HTTPS:
        raise GrammarError("choice", "Write http or tcp, and server_tls: {} to encrypt it.")


def _has_statuses(value: ServiceObjective | None, data: Data) -> None:
    if value is not None and data.get("protocol") is Protocol.TCP:
        raise GrammarError("protocol", "Only a pool of protocol http has an objective: tcp has no statuses to count.")


NO_OVERFLOW = Overflow()


@dataclass(frozen=True, slots=True)
class PoolSpec(Shape):
    """One service; times in ms."""

    protocol: Annotated[
        Protocol,
        word(Protocol, PROTOCOLS, only=PROTOCOLS),
        Check(_spoken_with_servers),
        About("The protocol of the servers.", "Protocol", ""),
    ] = Protocol.HTTP
    balance: Annotated[Balance, word(Balance, BALANCE), About("How a server is chosen for a request.", "Balance")] = (
        Balance.LEASTCONN
    )
    connect_timeout_ms: Annotated[
        TimeMs, About("ms. The server must accept a connection within this time.", "Connect timeout")
    ] = 2000
    server_timeout_ms: Annotated[TimeMs, About("ms. Max. idle time before the request fails.", "Response timeout")] = (
        30_000
    )
    queue_timeout_ms: Annotated[TimeMs, About("ms. A queued request gets 503 after this time.", "Queue timeout")] = (
        10_000
    )
    server_keepalive_ms: Annotated[
        TimeMs | None,
        About(
            "ms for which the servers keep idle connections; we close ours before.",
            "Idle connection timeout",
            "ms. Default: the HAProxy default.",
        ),
    ] = None
    tunnel_timeout_ms: Annotated[
        TimeMs | None,
        About(
            "ms of silence until a WebSocket or another upgraded connection (tcp: any) is closed.",
            "Tunnel timeout",
            "ms of silence. Default: one hour.",
        ),
    ] = None
    server_tls: Annotated[
        ServerTls | None,
        fits("server_tls"),
        About("TLS settings of connections to servers. Default: no encryption.", "TLS to servers"),
    ] = None
    http_version: Annotated[
        HttpVersion,
        word(HttpVersion, VERSIONS),
        fits("http_version"),
        About(
            "gRPC needs `2`: negotiated by ALPN with TLS, by prior knowledge (h2c) without.",
            "HTTP version to servers",
            "",
        ),
    ] = HttpVersion.HTTP1
    host_header: Annotated[
        str,
        text(grammar.server_host, "a host name without port", 253, blank=True),
        fits("host_header"),
        About("The Host header that servers get; empty keeps that of the request.", "Host header to servers", ""),
    ] = ""
    request_headers: Annotated[
        Pairs,
        REQUEST_HEADERS,
        fits("request_headers"),
        About(
            "Headers that servers of this pool receive, in place of those of the client or of policies.",
            "Request headers",
            "Such as X-Side=blue.",
        ),
    ] = ()
    proxy_protocol: Annotated[
        ProxyProtocol,
        word(ProxyProtocol, PROXY_PROTOCOLS),
        About("Whether each connection to a server starts with the client's address.", "PROXY protocol to servers", ""),
    ] = ProxyProtocol.NONE
    connection_reuse: Annotated[
        Reuse,
        word(Reuse, REUSE),
        About(
            "Which requests an idle connection to a server may take: those that can be repeated (`safe`), `always`, "
            "those of the same client (`never`), none (`close`).",
            "Connection reuse",
            "",
        ),
    ] = Reuse.SAFE
    persistence: Annotated[
        Persistence | None, fits("persistence"), About("How a client stays with its server.", "Session persistence")
    ] = None
    health_check: Annotated[
        HealthCheckSpec | None,
        fits("health_check", "http_version"),
        About("The health check of the servers."),
    ] = None
    agent_check: Annotated[
        AgentCheck | None, About("A program on each server reports how much load the server accepts.", "Agent check")
    ] = None
    outlier_ejection: Annotated[
        OutlierEjection | None,
        fits("outlier_ejection", "health_check"),
        About("Servers that fail requests get no requests for a while.", "Outlier detection"),
    ] = None
    slow_start_ms: Annotated[
        TimeMs | None,
        About("ms until a server that came up gets its full share.", "Slow start", "ms. Default: at once."),
    ] = None
    connections: Annotated[
        Connections | None,
        fits("connections"),
        About("The maximum number of concurrent requests for each server.", "Limits for each server"),
    ] = None
    retries: Annotated[
        Retries | None,
        fits("retries"),
        About(
            "Which requests are retried. Default: three retries after a failed connection or no response.", "Retries"
        ),
    ] = None
    backends: Annotated[
        tuple[BackendSpec, ...], LISTED, Distinct(("region",)), About("The backend of the pool in each region.")
    ] = ()
    overflow: Annotated[Overflow, Check(_can_wait), About("Where excess traffic of a region goes.")] = NO_OVERFLOW
    objective: Annotated[
        ServiceObjective | None,
        Check(_has_statuses),
        About("How many requests must succeed, and be answered in time, over 28 days.", "Objective"),
    ] = None
    tags: Annotated[
        Tags,
        About(
            "Labels. An operator shares pools by their tags.",
            "Tags",
            "For example customer=acme. An operator shares pools by tag.",
            {"customer": "acme"},
        ),
    ] = ()
