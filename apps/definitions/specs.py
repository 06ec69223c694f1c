"""DEFINE: the frozen specification of every kind of object, as reading a document gives it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from apps.compiler.model import (
    Assertion,
    Balance,
    FixedResponse,
    HeaderCondition,
    HealthCheck,
    Limit,
    PathKind,
    Protocol,
    Redirect,
    ServerState,
    WhenFull,
)

NO_LIMIT = Limit()


@dataclass(frozen=True, slots=True)
class AccountSpec:
    """A tenant. What is None of `quotas` and `suspended` stays as it is; quotas hold what differs from the usual."""

    title: str
    kind: str
    quotas: tuple[tuple[str, int], ...] | None = None
    suspended: bool | None = None


@dataclass(frozen=True, slots=True)
class LatencySpec:
    """The round trip to another region, ms."""

    to: str
    ms: float


@dataclass(frozen=True, slots=True)
class RegionSpec:
    """A place; degrees. What is None of `drained` and `latency` stays as it is: people set both by hand as well."""

    title: str
    latitude: float | None = None
    longitude: float | None = None
    drained: bool | None = None
    latency: tuple[LatencySpec, ...] | None = None


@dataclass(frozen=True, slots=True)
class FleetSpec:
    """The nodes of a region that run the same; the ports are those of the nodes among themselves."""

    region: str
    local_development: bool = False
    peer_port: int = 9700
    overflow_port: int = 9800
    overflow_tcp_port: int = 9900


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One HAProxy with its agent."""

    fleet: str
    url: str
    address: str = "127.0.0.1"
    port_offset: int = 0


@dataclass(frozen=True, slots=True)
class StaticIPSpec:
    """An address that stays; None for the region where it is announced everywhere."""

    address: str
    region: str | None = None


@dataclass(frozen=True, slots=True)
class GrantSpec:
    """What an operator lets an account use: a hostname (`*.` for all below) or a tag (`key=value`), never both."""

    account: str
    hostname: str | None = None
    tag: str | None = None
    may_load_test: bool = True
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CertificateSpec:
    """A PEM chain and its key; the key may be left out when the stored one still fits."""

    chain: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One address that answers."""

    name: str
    address: str
    port: int
    weight: int = 100
    state: ServerState = ServerState.READY


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A pool's share in one region; a blank `measured_by` stays as it is as long as the limit does."""

    region: str
    limit: Limit = NO_LIMIT
    capacity_scaler: float = 1.0
    servers: tuple[ServerSpec, ...] = ()
    measured_by: str = ""


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """One service; times in ms."""

    protocol: Protocol = Protocol.HTTP
    balance: Balance = Balance.LEASTCONN
    connect_timeout_ms: int = 2000
    server_timeout_ms: int = 30_000
    queue_timeout_ms: int = 10_000
    server_keepalive_ms: int | None = None
    health_check: HealthCheck | None = None
    backends: tuple[BackendSpec, ...] = ()
    when_full: WhenFull = WhenFull.SPREAD
    overflow_order: tuple[str, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ListenerSpec:
    """Where clients connect."""

    name: str
    protocol: Protocol
    port: int
    static_ip: str | None = None
    certificates: tuple[str, ...] = ()
    default_pool: str | None = None


@dataclass(frozen=True, slots=True)
class LoadBalancerSpec:
    """The front."""

    fleets: tuple[str, ...] = ()
    listeners: tuple[ListenerSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareSpec:
    """A pool's share of a route: weight out of the sum of the weights."""

    pool: str
    weight: int = 100


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """Hostname + path (+ methods, headers) → pools, a redirect or a fixed response: exactly one of them.

    Assertions name pools and routes as they were sent; None leaves the stored ones as they are.
    """

    load_balancer: str
    hostname: str
    path: str
    path_kind: PathKind
    methods: tuple[str, ...] = ()
    headers: tuple[HeaderCondition, ...] = ()
    pools: tuple[ShareSpec, ...] = ()
    redirect: Redirect | None = None
    fixed_response: FixedResponse | None = None
    prefix_rewrite: str | None = None
    assertions: tuple[Assertion, ...] | None = None


Spec = (
    AccountSpec
    | RegionSpec
    | FleetSpec
    | NodeSpec
    | StaticIPSpec
    | GrantSpec
    | CertificateSpec
    | PoolSpec
    | LoadBalancerSpec
    | RouteSpec
)
