"""The input, as far as fleets and stacks share it: plain data that knows neither Django nor any target.

`definitions/freezing/` makes it from database rows; `compiler/targets/` turns it into the files of a target. Equal
snapshots compile to byte-equal files, so every collection here is a tuple and the compiler sorts where order has no
meaning.

Identifiers (`id`) are ours: a short prefix, a hyphen and a number (`pool-17`). They are the only words of
ours that reach a file name, a section name or a map value; names chosen by people never do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apps.compiler.model.access import NetworkList
from apps.compiler.model.listener_options import ListenerOptions
from apps.compiler.model.policy import RuleSet
from apps.compiler.model.servers import CheckKind, ServerOptions


class Protocol(StrEnum):
    """What a listener speaks with clients."""

    HTTP = "http"
    HTTPS = "https"
    TCP = "tcp"


class PathKind(StrEnum):
    """How a route's path is compared: the whole path, whole segments from the start, or all of it with a pattern."""

    EXACT = "exact"
    PREFIX = "prefix"
    REGEX = "regex"


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


class ValueMatch(StrEnum):
    """How a route compares a header, a query parameter or a cookie."""

    EQUALS = "equals"
    PREFIX = "prefix"
    REGEX = "regex"
    PRESENT = "present"
    ABSENT = "absent"


COMPARING = frozenset({ValueMatch.EQUALS, ValueMatch.PREFIX, ValueMatch.REGEX})


@dataclass(frozen=True, slots=True)
class ValueCondition:
    """One condition on a header, a query parameter or a cookie; `value` is empty unless `match` is of COMPARING."""

    name: str
    match: ValueMatch
    value: str = ""


@dataclass(frozen=True, slots=True)
class WeightedPool:
    """One share of a route's traffic: weight out of the sum of the route's weights (0–1000)."""

    pool_id: str
    weight: int


@dataclass(frozen=True, slots=True)
class Redirect:
    """Answer with a redirect; parts left as None are taken from the request.

    `prefix` replaces the matched prefix of the path, `path` all of it. `query` is added at the end of what is kept.
    """

    code: int
    scheme: str | None = None
    host: str | None = None
    path: str | None = None
    keep_query: bool = True
    port: int | None = None
    prefix: str | None = None
    query: str | None = None


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
    """Hostname + path (+ methods, headers …) → exactly one of weighted pools, a redirect, a fixed response.

    `hostname` is canonical (lower case, IDNA, no final dot); a leading `*.` makes it a wildcard for exactly
    one label, `**.` for one or more, and `*` alone is any host. `path` starts with `/`; a prefix carries no final `/`
    except the root, a pattern is one of matching/patterns.py. `prefix_rewrite` replaces the matched prefix. `scheme`
    is http or https for a route of one of them, None for one of both. `client_networks` are CIDR blocks, none for all.
    `mirror_pool_id` is the pool that gets a copy of every request. `rule_set` names the rules of its load balancer that
    hold for it, empty for none. `label` is what people call the route: for messages, never for files.
    """

    id: str
    label: str
    account: str
    hostname: str
    path: str
    path_kind: PathKind
    methods: tuple[str, ...] = ()
    headers: tuple[ValueCondition, ...] = ()
    pools: tuple[WeightedPool, ...] = ()
    redirect: Redirect | None = None
    fixed_response: FixedResponse | None = None
    prefix_rewrite: str | None = None
    assertions: tuple[Assertion, ...] = ()
    scheme: str | None = None
    rule_set: str = ""
    query: tuple[ValueCondition, ...] = ()
    cookies: tuple[ValueCondition, ...] = ()
    client_networks: tuple[str, ...] = ()
    mirror_pool_id: str | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """One address that answers; `weight` is 0–256 as in HAProxy."""

    id: str
    label: str
    address: str
    port: int
    weight: int = 100
    state: ServerState = ServerState.READY
    backup: bool = False


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """How the proxy asks a server whether it works; `path` is empty for a bare TCP connect.

    Times are milliseconds. `expect_statuses` (`200-399`) stand in for `expect_status`; `send` and `expect` are for tcp,
    `service` for grpc, `user` for databases, `host` names who greets for smtp, `port` is None where servers serve.
    """

    path: str = ""
    method: str = "GET"
    host: str = ""
    expect_status: int = 200
    interval_ms: int = 2000
    timeout_ms: int = 2000
    rise: int = 2
    fall: int = 3
    kind: CheckKind = CheckKind.HTTP
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    expect_statuses: tuple[str, ...] = ()
    expect_body: str = ""
    send: str = ""
    expect: str = ""
    service: str = ""
    user: str = ""
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """What a backend may take; `value` is requests per second or requests in flight, after no scaler."""

    kind: LimitKind = LimitKind.NONE
    value: int = 0
    scope: LimitScope = LimitScope.BACKEND


NO_LIMIT = Limit()
CONNECT_TIMEOUT_MS = 2000  # of a pool that says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions(ServerOptions):
    """What a pool is told in every region and on every target; it is frozen by name, as it is stored. Times in ms."""

    connect_timeout_ms: int = CONNECT_TIMEOUT_MS
    server_timeout_ms: int = 30_000
    queue_timeout_ms: int = 10_000
    server_keepalive_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AnyPool(PoolOptions):
    """One service, whichever target it is seen from."""

    id: str
    label: str
    account: str
    protocol: Protocol
    balance: Balance = Balance.LEASTCONN
    health_check: HealthCheck | None = None
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
class Listener(ListenerOptions):
    """Where clients connect: `address` is a static IP, or None for each node's own address.

    `ends_tls` is of tcp, for a listener that names certificates, whether or not it may present any of them now.
    """

    id: str
    label: str
    protocol: Protocol
    port: int
    address: str | None = None
    certificate_ids: tuple[str, ...] = ()
    default_pool_id: str | None = None
    ends_tls: bool = False

    @property
    def speaks_tls(self) -> bool:
        """Whether TLS of its clients ends here."""
        return self.ends_tls or self.protocol is Protocol.HTTPS

    @property
    def pool_ids(self) -> set[str]:
        """The pools that it leads to without any route of its load balancer."""
        own = {self.default_pool_id} if self.default_pool_id else set()
        return own | {each.pool_id for each in self.connection_routes}

    @property
    def has_forwarders(self) -> bool:
        """Whether the X-Forwarded-For or Forwarded of some is believed."""
        said = self.client_address
        is_said = said is not None and bool(said.forwarded_from or said.forwarded_header_from)
        return is_said and self.protocol is not Protocol.TCP


@dataclass(frozen=True, slots=True)
class LoadBalancer:
    """The front of a set of routes: its HTTP listeners all serve the same routes but those of the other scheme."""

    id: str
    label: str
    account: str
    listeners: tuple[Listener, ...] = ()
    routes: tuple[Route, ...] = ()
    rule_sets: tuple[RuleSet, ...] = ()
    network_lists: tuple[NetworkList, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object whose stored row says nothing that could be meant; `field` is the column."""

    id: str
    label: str
    field: str


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
