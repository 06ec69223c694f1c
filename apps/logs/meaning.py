"""A line of identifiers becomes a record of names, and says why the request ended as it did; pure.

One request is one record, also where another region served it: the node where the client came in writes the line and
was told the server; the node of the other region writes none.

| why | when |
|---|---|
| `no_route` | nothing was defined for it |
| `malformed` | it was no request, or named no host as it has to |
| `loop` | a server leads back to the load balancer |
| `denied`, `unauthenticated`, `too_large`, `limited`, `maintenance`, `preflight` | a policy answered |
| `redirect`, `fixed_answer` | the route says so |
| `cached` | a listener's cache answered |
| `over_limit` | its region was at its limit and nobody took it, or its account was over its share of the node |
| `held` | every region was at its limit; it waited in the queue |
| `overflow` | another region served it |
| `no_server` | no server was up |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.policies import MAINTENANCE_STATUS, NOTHING
from apps.compiler.routing import BAD_HOST_STATUS, NOT_FOR_ROUTES_STATUS
from apps.compiler.targets.haproxy.refusals import LOOP_STATUS
from apps.drivers.logs.contract import SAMPLED, UNSAMPLED, Record
from apps.logs.lines import Line

# What was answered before a route was looked for.
_BEFORE_ROUTES = {
    LOOP_STATUS: "loop",
    BAD_HOST_STATUS: "malformed",
    NOT_FOR_ROUTES_STATUS: "malformed",
    408: "malformed",
    421: "denied",
    403: "denied",
    404: "no_route",
}
# What a block of a policy says when it answers (compiler/targets/haproxy/policies) → why.
BLOCKS = {
    "access": "denied",
    "basic_auth": "unauthenticated",
    "api_keys": "unauthenticated",
    "jwt": "unauthenticated",
    "maintenance": "maintenance",
    "body": "too_large",
    "cors": "preflight",
    "client_limit": "limited",
}
_WHO_ARE_YOU = ("basic_auth", "api_keys", "jwt")
_TOO_LARGE = (411, 413)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Named:
    """What people call an object, and whose it is (the account's primary key; 0 when that is unknown)."""

    name: str
    account: int


@dataclass(frozen=True, slots=True)
class Names:
    """What the identifiers of a live revision meant, of one node.

    `listeners` → (load balancer, listener); `routes`, `pools` by id; `servers`, `regions`, `lists` by id → name.
    `rules` are those that hold for a route, `deciders` who says a block of them (`route-9`, `access`); `test_runs` by
    the pool that is tested.
    """

    node: str
    fleet: str
    region: str
    listeners: Mapping[str, tuple[Named, str]] = field(default_factory=dict)
    routes: Mapping[str, Named] = field(default_factory=dict)
    pools: Mapping[str, Named] = field(default_factory=dict)
    servers: Mapping[str, str] = field(default_factory=dict)
    regions: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, Rules] = field(default_factory=dict)
    deciders: Mapping[tuple[str, str], str] = field(default_factory=dict)
    test_runs: Mapping[str, str] = field(default_factory=dict)


def names_of(
    snapshot: Snapshot, *, node: str, fleet: str, accounts: Mapping[str, int], elsewhere: Iterable[Snapshot] = ()
) -> Names:
    """Names of everything in a snapshot; `accounts` are primary keys by name.

    `elsewhere` are the snapshots of fleets of other regions, whose servers answer what this one could not take.
    """

    def named(label: str, account: str) -> Named:
        return Named(label.removeprefix(f"{account}/"), accounts.get(account, 0))

    fronts = snapshot.load_balancers
    return Names(
        node=node,
        fleet=fleet,
        region=snapshot.region,
        listeners={
            each.id: (named(front.label, front.account), each.label) for front in fronts for each in front.listeners
        },
        routes={route.id: named(route.label, route.account) for front in fronts for route in front.routes},
        pools={pool.id: named(pool.label, pool.account) for pool in snapshot.pools},
        servers={
            server.id: server.label for each in (*elsewhere, snapshot) for pool in each.pools for server in pool.servers
        },
        regions={region.id: region.label for region in snapshot.regions},
        rules={route: rules for front in fronts for route, rules in _rules_by_route(front)},
        test_runs={each.pool_id: each.run for each in snapshot.bypass_tokens},
        lists={each.id: each.label.rpartition("/")[2] for front in fronts for each in front.network_lists},
    )


def _rules_by_route(front: LoadBalancer) -> Iterator[tuple[str, Rules]]:
    sets = {each.id: each.rules for each in front.rule_sets}
    return ((route.id, sets[route.rule_set]) for route in front.routes if route.rule_set in sets)


def record_of(line: Line, names: Names) -> Record | None:
    """The record of a line; None for what is nobody's: a listener that is unknown, a check that moved no byte."""
    front = names.listeners.get(line.listener)
    if front is None or _is_check(line):
        return None
    route = names.routes.get(line.route)
    pool_id = _pool_of(line)
    pool = names.pools.get(pool_id)
    why, decided_by = reason(line, names)
    served = _served_in(line, names)
    owner = route or pool if not line.is_request else route
    return Record(
        time=_EPOCH + timedelta(milliseconds=line.at_ms),
        id=line.id,
        parent_id=line.parent,
        kind="request" if line.is_request else "connection",
        node=names.node,
        fleet=names.fleet,
        account=(owner or front[0]).account,
        load_balancer=front[0].name,
        listener=front[1],
        route=route.name if route else "",
        pool=pool.name if pool else "",
        server=names.servers.get(line.served_by or line.server, ""),
        region=served,
        home_region=names.region,
        why=why,
        decided_by=decided_by,
        status=line.status,
        termination=line.termination,
        queue_ms=line.queue_ms,
        connect_ms=line.connect_ms,
        response_ms=line.response_ms,
        total_ms=line.total_ms,
        request_ms=line.request_ms,
        bytes_in=line.bytes_in,
        bytes_out=line.bytes_out,
        tls=line.tls,
        cipher=line.cipher,
        client=line.client,
        method=line.method,
        host=line.host,
        path=line.path,
        query=line.query,
        headers=line.headers,
        test_run=names.test_runs.get(line.bypass) or "unknown" if line.bypass else "",
        trace_id=line.trace_id,
        span_id=line.span_id,
        parent_span_id=line.parent_span_id,
        sampled="" if line.sampled is None else SAMPLED if line.sampled else UNSAMPLED,
    )


def reason(line: Line, names: Names) -> tuple[str, str]:
    """Why it was not simply served, and who decided that; two empty words when it was."""
    if line.refused_by:
        why, decided_by = _by(line, "access", names)
        return why, names.lists.get(line.refused_by.partition(":")[2], decided_by)
    if line.capped:
        return "over_limit", "share of the account"
    if not line.backend.startswith(_SERVING):
        return _without_server(line, names)
    return _by_limit(line, names)


def _by_limit(line: Line, names: Names) -> tuple[str, str]:
    """It came to a pool, or to the way into another region."""
    verb, cause = _flow(line)[1::2]
    limit = _limit_of(line, names)
    if line.cached:
        return "cached", ""
    if verb == "refuse":
        return "over_limit", limit
    if verb == "queue":
        return "held", limit
    if verb == "to" and line.backend.startswith(_GATES):
        return ("no_server", "") if cause == "down" else ("overflow", limit)
    nobody = not line.server and not line.served_by and line.termination.startswith("S")
    return ("no_server" if nobody else ""), ""


_GATES = ("to-", "tcp-")
_SERVING = ("pool-", "queue-", *_GATES)


def _without_server(line: Line, names: Names) -> tuple[str, str]:
    """It was answered before any pool was chosen."""
    if line.backend == "redirect" or line.backend.startswith("route-"):
        return ("redirect" if line.backend == "redirect" else "fixed_answer"), ""
    if line.over:
        return _by(line, "client_limit", names)
    if _flow(line)[1] == "refuse":
        return "over_limit", _limit_of(line, names)
    if line.is_request and not line.route:
        return _BEFORE_ROUTES.get(line.status or 0, "" if line.status is None else "denied"), ""
    return ("", "") if line.status is None else _by(line, _block(line, names.rules.get(line.route, NOTHING)), names)


def _block(line: Line, rules: Rules) -> str:
    """Which block of the route's policies answers with this status, in the order in which a request meets them."""
    if rules.cors and line.method == "OPTIONS" and line.status == 204:
        return "cors"
    asking = [block for block in _WHO_ARE_YOU if getattr(rules, block)]
    if line.status == 401 and asking:
        return asking[0]
    closed = rules.maintenance if rules.maintenance and rules.maintenance.enabled else None
    if closed and line.status == (closed.status or MAINTENANCE_STATUS):
        return "maintenance"
    return "body" if rules.body and line.status in _TOO_LARGE else "access"


def _by(line: Line, block: str, names: Names) -> tuple[str, str]:
    """Why a block answers, and whose it is."""
    return BLOCKS[block], names.deciders.get((line.route, block), "")


def _flow(line: Line) -> tuple[str, str, str, str]:
    """`pool-17/to/rgn-2/rate` → its four words."""
    pool, verb, region, cause = (*line.flow.split("/"), "", "", "", "")[:4]
    return pool, verb, region, cause


def _limit_of(line: Line, names: Names) -> str:
    """A limit has no name of its own: it is its pool's."""
    pool = names.pools.get(_pool_of(line))
    return f"limit of {pool.name}" if pool else ""


def _pool_of(line: Line) -> str:
    """The pool that served or should have; a queue is its pool's twin."""
    if line.backend.startswith("queue-"):
        return "pool-" + line.backend.removeprefix("queue-")
    if line.backend.startswith("pool-"):
        return line.backend
    return line.pool if line.pool.startswith("pool-") else ""


def _served_in(line: Line, names: Names) -> str:
    """The region that served it; empty where nobody did."""
    _, verb, region, _ = _flow(line)
    if line.backend.startswith(_GATES) and verb == "to":
        return names.regions.get(region, "")
    return names.region if line.server else ""


def _is_check(line: Line) -> bool:
    """A connection that only looked whether the port is open: the agent does so, and checks of others."""
    nothing = not line.is_request and not line.bytes_in and not line.bytes_out
    return nothing and not line.capped and not line.flow and line.termination[:1] in ("-", "C")
