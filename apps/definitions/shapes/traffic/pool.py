"""The shape of a Pool: one service, its health check, and a backend with servers in each region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.model.shared import Balance, LimitKind, LimitScope, Protocol, ServerState, WhenFull
from apps.compiler.model.shared import Limit as PlainLimit
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import ALWAYS, About, Check, Data, Distinct, Grammar, Shape, Wrong
from apps.definitions.shapes.base.words import (
    LISTED,
    METHODS,
    ByName,
    Name,
    Port,
    ServerAddress,
    Tags,
    TimeMs,
    real,
    text,
    whole,
    word,
)

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
# Forms offer those that a server answers without a body.
CHECK_METHOD = Grammar(
    grammar.method, {"type": "string", "enum": METHODS}, labels={name: name for name in ("GET", "HEAD", "OPTIONS")}
)
PROTOCOLS = {Protocol.HTTP: "HTTP", Protocol.TCP: "TCP"}


@dataclass(frozen=True, slots=True)
class ServerSpec(Shape):
    """One address that answers."""

    name: Annotated[Name, About("What people call it.", "Name", "", "shop-1")]
    address: Annotated[
        ServerAddress, About("IPv4, IPv6 or a name that resolves; never this installation.", "Address", "", "10.0.0.1")
    ]
    port: Annotated[Port, About("Where it listens.", "Port", "", 8080)]
    weight: Annotated[
        int, whole(0, 256), About("Its share of the backend, out of the sum of the weights.", "Weight", "")
    ] = 100
    state: Annotated[
        ServerState,
        word(ServerState, STATES),
        About("`drain` finishes what it has and takes nothing new; `maintenance` closes it.", "State", ""),
    ] = ServerState.READY


def _fits_kind(value: int, data: Data) -> None:
    kind = data.get("kind")
    if kind is LimitKind.NONE and value:
        raise GrammarError("limit", "A limit of kind none has no value; leave it out.")
    if kind in (LimitKind.RATE, LimitKind.CONNECTIONS) and value == 0:
        raise GrammarError("limit", "Fill in a value of at least 1.")


@dataclass(frozen=True, slots=True)
class LimitSpec(Shape):
    """What a backend takes: requests per second or requests in flight; `measured_by` names a capacity run."""

    component: ClassVar[str] = "Limit"

    kind: Annotated[LimitKind, word(LimitKind, LIMITS), About("What is counted.", "Limit", "", "rate")]
    value: Annotated[
        int,
        whole(0, HIGHEST_LIMIT),
        Check(_fits_kind),
        ALWAYS,
        About("Requests per second, or requests in flight.", "How much", "", 400),
    ] = 0
    scope: Annotated[
        LimitScope, word(LimitScope, SCOPES), About("Whether the number is that of each server.", "For", "")
    ] = LimitScope.BACKEND
    measured_by: Annotated[
        str,
        text(grammar.name, "a name", pattern=RUN, blank=True),
        About("The capacity run that found it; kept as long as the limit is.", absent_when_empty=True),
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


@dataclass(frozen=True, slots=True)
class BackendSpec(Shape):
    """A pool's share in one region."""

    region: Annotated[ByName, About("Whose clients it serves first.", example="europe-west1")]
    limit: Annotated[LimitSpec, About("What it takes; what is over goes to the next region with room.")] = NO_LIMIT
    capacity_scaler: Annotated[
        float,
        real(0, 1),
        About("The part of the limit that is in use; 0 drains.", "Traffic share", "0 to 1"),
    ] = 1.0
    servers: Annotated[
        tuple[ServerSpec, ...],
        LISTED,
        Distinct(("name",), ("address", "port")),
        About("Those of this region."),
    ] = ()


@dataclass(frozen=True, slots=True)
class HealthCheckSpec(Shape):
    """How servers are asked whether they are well; an empty path only connects."""

    component: ClassVar[str] = "HealthCheck"

    path: Annotated[
        str,
        text(grammar.check_path, "a path with an optional query", 1024, blank=True),
        About("What is asked for.", "Path", "Leave empty to check only the TCP connection.", "/up"),
    ] = ""
    method: Annotated[str, CHECK_METHOD, About("How it is asked.", "Method", "")] = "GET"
    host: Annotated[
        str,
        text(grammar.redirect_host, "a host name without wildcard", 253, blank=True),
        About("The Host header of the question.", "Host header", ""),
    ] = ""
    expect_status: Annotated[int, whole(200, 599), About("What a well server answers.", "Expected status", "")] = 200
    interval_ms: Annotated[TimeMs, About("Time between two checks.", "Every", "ms")] = 2000
    timeout_ms: Annotated[TimeMs, About("Time for an answer.", "Response timeout", "ms")] = 2000
    rise: Annotated[
        int, whole(1, 100), About("A server is up after so many.", "Up after", "consecutive successful checks")
    ] = 2
    fall: Annotated[
        int, whole(1, 100), About("A server is down after so many.", "Down after", "consecutive failed checks")
    ] = 3


@dataclass(frozen=True, slots=True)
class Overflow(Shape):
    """What happens when all regions are full, and which regions are tried first."""

    when_full: Annotated[
        WhenFull,
        word(WhenFull, WHEN_FULL),
        About(
            "What happens when no region has room.", "When every region is full", "Queueing requires connection limits."
        ),
    ] = WhenFull.SPREAD
    order: Annotated[
        tuple[ByName, ...],
        LISTED,
        Distinct(),
        About("Regions that are tried first.", "Overflow order", "Region names in order. Default: nearest first."),
    ] = ()


def _can_wait(value: Overflow, data: Data) -> None:
    backends = data.get("backends", ())
    if value.when_full is WhenFull.QUEUE and any(each.limit.kind is LimitKind.RATE for each in backends):
        raise Wrong(FieldError("/when_full", "queue", QUEUE_NEEDS_CONNECTIONS))


def _spoken_with_servers(value: Protocol, _: Data) -> None:
    if value is Protocol.HTTPS:
        raise GrammarError("choice", "Pools speak http or tcp with their servers.")


NO_OVERFLOW = Overflow()


@dataclass(frozen=True, slots=True)
class PoolSpec(Shape):
    """One service; times in ms."""

    protocol: Annotated[
        Protocol,
        word(Protocol, PROTOCOLS, only=PROTOCOLS),
        Check(_spoken_with_servers),
        About("What is spoken with the servers.", "Protocol", ""),
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
    health_check: Annotated[HealthCheckSpec | None, About("How servers are asked whether they are well.")] = None
    backends: Annotated[
        tuple[BackendSpec, ...], LISTED, Distinct(("region",)), About("The pool's share in each region.")
    ] = ()
    overflow: Annotated[Overflow, Check(_can_wait), About("Where traffic goes that a region has no room for.")] = (
        NO_OVERFLOW
    )
    tags: Annotated[
        Tags,
        About(
            "An operator shares pools by their tags.",
            "Tags",
            "For example customer=acme. An operator shares pools by tag.",
            {"customer": "acme"},
        ),
    ] = ()
