"""The input: frozen definitions of one fleet, as plain data that knows neither Django nor HAProxy.

A :class:`Snapshot` is everything that one fleet must run. `definitions/freezing/snapshot.py` makes it from
database rows; `compiler/targets/` turns it into the files of a target. Equal snapshots compile to
byte-equal files, so every collection here is a tuple and the compiler sorts where order has no meaning.

Identifiers (`id`) are ours: a short prefix, a hyphen and a number (`pool-17`). They are the only words of
ours that reach a file name, a section name or a map value; names chosen by people never do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from apps.compiler.addresses import ALL_PRIVATE


class Protocol(StrEnum):
    """What a listener speaks with clients."""

    HTTP = "http"
    HTTPS = "https"
    TCP = "tcp"


class PathKind(StrEnum):
    """How a route's path is compared: the whole path, or whole segments from the start."""

    EXACT = "exact"
    PREFIX = "prefix"


class ServerState(StrEnum):
    """Administrative state of a server: takes traffic, finishes what it has, or gets none at all."""

    READY = "ready"
    DRAIN = "drain"
    MAINTENANCE = "maintenance"


class Balance(StrEnum):
    """How a pool chooses among its servers."""

    ROUNDROBIN = "roundrobin"
    LEASTCONN = "leastconn"
    SOURCE = "source"
    RANDOM = "random"


class LimitKind(StrEnum):
    """What a backend's limit counts: requests per second, requests in flight, or nothing."""

    NONE = "none"
    RATE = "rate"
    CONNECTIONS = "connections"


class LimitScope(StrEnum):
    """Whether a limit's value holds for the whole backend or for each of its servers."""

    BACKEND = "backend"
    SERVER = "server"


class WhenFull(StrEnum):
    """What happens to a request when every region is at its limit: by capacity over all, wait at home, or 503."""

    SPREAD = "spread"
    QUEUE = "queue"
    REFUSE = "refuse"


class HeaderMatch(StrEnum):
    """How a route compares a request header."""

    EQUALS = "equals"
    PRESENT = "present"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class HeaderCondition:
    """One condition on a request header; `value` is empty unless `match` is EQUALS."""

    name: str
    match: HeaderMatch
    value: str = ""


@dataclass(frozen=True, slots=True)
class WeightedPool:
    """One share of a route's traffic: weight out of the sum of the route's weights (0–1000)."""

    pool_id: str
    weight: int


@dataclass(frozen=True, slots=True)
class Redirect:
    """Answer with a redirect; parts left as None are taken from the request."""

    code: int
    scheme: str | None = None
    host: str | None = None
    path: str | None = None
    keep_query: bool = True


@dataclass(frozen=True, slots=True)
class FixedResponse:
    """Answer without any server."""

    status: int
    content_type: str = "text/plain; charset=utf-8"
    body: str = ""


@dataclass(frozen=True, slots=True)
class Assertion:
    """What must happen to a request: exactly one of `pool`, `route` (labels), `redirect`, `status` says it.

    An empty `host` is the route's own; `redirect` "" is any location; a pool must get all of the request's traffic.
    """

    path: str
    method: str = "GET"
    host: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    pool: str = ""
    route: str = ""
    redirect: str | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """Hostname + path (+ methods, headers) → exactly one of weighted pools, a redirect, a fixed response.

    `hostname` is canonical (lower case, IDNA, no final dot); a leading `*.` makes it a wildcard for exactly
    one label. `path` starts with `/`; a prefix carries no final `/` except the root. `prefix_rewrite`
    replaces the matched prefix. `scheme` is http or https for a route of one of them, None for one of both.
    `label` is what people call the route: for messages, never for files.
    """

    id: str
    label: str
    account: str
    hostname: str
    path: str
    path_kind: PathKind
    methods: tuple[str, ...] = ()
    headers: tuple[HeaderCondition, ...] = ()
    pools: tuple[WeightedPool, ...] = ()
    redirect: Redirect | None = None
    fixed_response: FixedResponse | None = None
    prefix_rewrite: str | None = None
    assertions: tuple[Assertion, ...] = ()
    scheme: str | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """One address that answers; `weight` is 0–256 as in HAProxy."""

    id: str
    label: str
    address: str
    port: int
    weight: int = 100
    state: ServerState = ServerState.READY


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """How the proxy asks a server whether it works; `path` is empty for a bare TCP connect.

    Times are milliseconds.
    """

    path: str = ""
    method: str = "GET"
    host: str = ""
    expect_status: int = 200
    interval_ms: int = 2000
    timeout_ms: int = 2000
    rise: int = 2
    fall: int = 3


@dataclass(frozen=True, slots=True)
class Limit:
    """What a backend may take; `value` is requests per second or requests in flight, after no scaler."""

    kind: LimitKind = LimitKind.NONE
    value: int = 0
    scope: LimitScope = LimitScope.BACKEND


@dataclass(frozen=True, slots=True)
class RegionShare:
    """A pool's backend in another region, as far as those who send overflow there must know it.

    `ready_servers` counts the servers that are neither drained nor in maintenance: a limit per server is that many
    times its value. A drained region has a scaler of 0.
    """

    region_id: str
    limit: Limit = Limit()
    capacity_scaler: float = 1.0
    ready_servers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """What a pool is told in every region and on every target; it is frozen by name, as it is stored. Times in ms."""

    connect_timeout_ms: int = 2000
    server_timeout_ms: int = 30_000
    queue_timeout_ms: int = 10_000
    server_keepalive_ms: int | None = None


def options_of(pool: Any) -> dict[str, Any]:
    """The options of whatever has them: a stored pool, or one of another target."""
    return {name: getattr(pool, name) for name in PoolOptions.__slots__}


@dataclass(frozen=True, slots=True)
class Pool(PoolOptions):
    """One service as this fleet sees it: the servers of the fleet's own region, and how to treat them.

    `elsewhere` are its backends in other regions in the order in which overflow tries them, nearest first unless
    somebody ordered them; a pool may have servers elsewhere only. A drained region has a `capacity_scaler` of 0.
    """

    id: str
    label: str
    account: str
    protocol: Protocol
    balance: Balance = Balance.LEASTCONN
    servers: tuple[Server, ...] = ()
    health_check: HealthCheck | None = None
    limit: Limit = Limit()
    capacity_scaler: float = 1.0
    elsewhere: tuple[RegionShare, ...] = ()
    when_full: WhenFull = WhenFull.SPREAD


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate chain with its key, PEM; `hostnames` are the names it is valid for."""

    id: str
    label: str
    account: str
    pem: str
    hostnames: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listener:
    """Where clients connect: `address` is a static IP, or None for each node's own address."""

    id: str
    label: str
    protocol: Protocol
    port: int
    address: str | None = None
    certificate_ids: tuple[str, ...] = ()
    default_pool_id: str | None = None


@dataclass(frozen=True, slots=True)
class LoadBalancer:
    """The front of a set of routes: its HTTP listeners all serve the same routes but those of the other scheme."""

    id: str
    label: str
    account: str
    listeners: tuple[Listener, ...] = ()
    routes: tuple[Route, ...] = ()


@dataclass(frozen=True, slots=True)
class RegionNode:
    """A node as the others reach it: each port with the node's own offset added.

    `id` is `node-5`, `name` what the node calls itself (its agent finds itself in the manifest by it).
    """

    id: str
    name: str
    address: str
    peer_port: int
    overflow_port: int
    overflow_tcp_port: int


@dataclass(frozen=True, slots=True)
class Region:
    """A region with the nodes of all its fleets, those that count together and take each other's overflow."""

    id: str
    label: str
    nodes: tuple[RegionNode, ...] = ()


@dataclass(frozen=True, slots=True)
class OverflowPorts:
    """Where each node of this fleet listens for its peers and for overflow, before the node's own offset."""

    peer: int = 9700
    http: int = 9800
    tcp: int = 9900


class FleetAddressKind(StrEnum):
    """How a static IP finds a node: VRRP moves it among the nodes, or every healthy node announces it by BGP."""

    VIP = "vip"
    ANYCAST = "anycast"


@dataclass(frozen=True, slots=True)
class FleetAddress:
    """A static IP that the nodes of a fleet hold or announce; listeners name it by `address`.

    `nodes` are the ids of those that stand in for each other (vip only; in the order of their ids), `router_id`
    (1–255) is the vip's name to VRRP.
    """

    id: str
    label: str
    address: str
    kind: FleetAddressKind
    router_id: int = 0
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object whose stored row says nothing that could be meant; `field` is the column."""

    id: str
    label: str
    field: str


@dataclass(frozen=True, slots=True)
class BypassToken:
    """Requests of a running capacity test: whoever shows the token with this SHA-256 (hex) is served by the pool here.

    The pool's limit does not send them away; health and draining do.
    """

    digest: str
    pool_id: str

    @property
    def id(self) -> str:
        """What findings name it by."""
        return f"bypass token of {self.pool_id}"

    @property
    def label(self) -> str:
        """What it opens."""
        return self.pool_id


@dataclass(frozen=True, slots=True)
class AccountShare:
    """The most that the pools of an account (`id` is `acc-3`) together have of a node: percent of its connections, and
    requests (tcp: new connections) per second."""

    id: str
    account: str
    percent: int
    rps: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the nodes of one fleet must run.

    `haproxy_version` is the oldest version that the fleet's nodes reported, (2, 6) when none did.
    `local_development` allows loopback server addresses (see security notes in THREAT_MODEL.md).
    `regions` are all regions that have nodes, the fleet's own (`region_id`) among them; `overflow_key` is the secret
    by which fleets know each other's overflow. Without them every limit is this fleet's alone and nothing overflows.
    `unreadable` are objects that could not even be frozen; they are left out and named like others that are refused.
    `bypass_tokens` are the bypass tokens of the capacity tests that run here now. `addresses` are the static IPs of
    listeners that are not simply there: the nodes hold or announce them only while they serve. `loop_mark` is the word
    by which forwarded requests are known when they come back; `own_addresses` are addresses, networks and names at
    which the installation itself is reached, where no server may be. Of private networks servers may only be in
    `private_networks`. `shares` are those of the accounts that have a ceiling.
    """

    fleet: str
    region: str
    load_balancers: tuple[LoadBalancer, ...] = ()
    pools: tuple[Pool, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    haproxy_version: tuple[int, int] = (2, 6)
    local_development: bool = False
    region_id: str = ""
    regions: tuple[Region, ...] = ()
    overflow_key: str = ""
    overflow_ports: OverflowPorts = OverflowPorts()
    unreadable: tuple[Unreadable, ...] = ()
    bypass_tokens: tuple[BypassToken, ...] = ()
    addresses: tuple[FleetAddress, ...] = ()
    loop_mark: str = ""
    own_addresses: tuple[str, ...] = ()
    private_networks: tuple[str, ...] = ALL_PRIVATE
    shares: tuple[AccountShare, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict of the checks: which object, what is wrong, what to do.

    `object_id` is a model id (`route-9`), `label` what people call it, `line` the line of `haproxy.cfg`
    when HAProxy itself found it.
    """

    code: str
    object_id: str
    label: str
    message: str
    field: str = ""
    line: int | None = None
