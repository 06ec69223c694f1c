"""Routes as map entries, so that their number costs nothing and a change needs no reload.

Several maps per load balancer, each `key value` per line, sorted by key; where a route is of one scheme, as many for
the listeners of http and for those of https (`maps/lb-1-https-exact.map`). Where a proxy in front says the scheme, both
are asked for the route, and `lb-1-either` for the rest:

| map | key | value |
|---|---|---|
| `maps/lb-1-exact.map` | `host/path`, looked up as it is | route or group |
| `maps/lb-1-prefix.map` | `host/path/`, the longest beginning of host + path + `/` | route or group |
| `maps/lb-1-action.map` | route | `pool-17`, `split…`, `redirect…`, or `route-9` for its own fixed response |
| `maps/lb-1-rewrite.map` | route with a prefix rewrite | `<length of the prefix>|<new prefix>` |
| `maps/lb-1-rules.map`, `values` | what policies say | see policies/attach.py |
| `maps/lb-1-limits.map` | route with a limit per client | its terms (policies/client_limit.py) |
| `maps/lb-1-cached.map` | route of which answers are kept | `1` (listeners/cache.py) |
| `maps/lb-1-pages.map` | a line of an error page | its text (policies/error_pages.py) |

A group (`group-9`, named after its best route) stands for the ordered candidates of one key of which the best has
conditions: routes of the same host only, because the wildcard is looked up after the exact host has given up.

A path that is a pattern is no key: it is a condition of a candidate at the root of its host, behind the prefixes there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from apps.compiler.matching.hosts import ANY, SUFFIX
from apps.compiler.model.shared import Listener, LoadBalancer, PathKind, Protocol, Route
from apps.compiler.routing import as_served_by, is_conditional, number_of, rank
from apps.compiler.targets.haproxy.actions import action_of, rewrite_length
from apps.compiler.targets.haproxy.listeners.cache import cached_map
from apps.compiler.targets.haproxy.policies.attach import pages_map, rules_map, values_map
from apps.compiler.targets.haproxy.policies.client_limit import limits_map

GROUP = "group-"
EITHER = "-either"
TOLD = ("{", "var(txn.proto)", "-m", "str")

Entries = dict[str, str]


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates of one key, best first; the last one may be unconditional."""

    id: str
    hostname: str
    candidates: tuple[Route, ...]


@dataclass(frozen=True, slots=True)
class RouteMaps:
    """The entries of one load balancer's maps, and what its frontends must spell out.

    These are groups, how many labels behind `**.` hostnames have (most first), and whether any is `*`.
    """

    exact: Entries
    prefix: Entries
    action: Entries
    rewrite: Entries
    rules: Entries
    values: Entries
    limits: Entries
    pages: Entries
    cached: Entries | None
    groups: tuple[Group, ...]
    suffix_labels: tuple[int, ...] = ()
    any_host: bool = False

    def keys(self, load_balancer_id: str) -> dict[str, Entries]:
        """What routes are found by: entries by the path of their file."""
        return {map_path(load_balancer_id, "exact"): self.exact, map_path(load_balancer_id, "prefix"): self.prefix}

    def of_routes(self, load_balancer_id: str) -> dict[str, Entries]:
        """What holds for routes once they are found: entries by the path of their file."""
        names = {"action": self.action, "rewrite": self.rewrite}
        if self.rules:  # without policies nobody asks for it
            names |= {"rules": self.rules, "values": self.values}
        if self.limits:
            names |= {"limits": self.limits}
        if self.pages:
            names |= {"pages": self.pages}
        if self.cached is not None:
            names |= {"cached": self.cached}
        return {map_path(load_balancer_id, name): entries for name, entries in names.items()}


def map_path(load_balancer_id: str, name: str) -> str:
    """`lb-1`, `exact` → `maps/lb-1-exact.map`."""
    return f"maps/{load_balancer_id}-{name}.map"


def route_maps(load_balancer: LoadBalancer) -> RouteMaps:
    """Turn the routes of one load balancer into map entries.

    1. Routes without conditions of their own key's best rank go straight into the map.
    2. Every key with a conditional route gets a group of its candidates, filled up with shorter prefixes.
    """
    by_key: dict[str, dict[str, list[Route]]] = {"exact": defaultdict(list), "prefix": defaultdict(list)}
    for route in load_balancer.routes:
        kind = "exact" if route.path_kind is PathKind.EXACT else "prefix"
        by_key[kind][key_of(route)].append(route)
    groups: list[Group] = []
    wildcards = {route.hostname for route in load_balancer.routes if route.hostname[:1] == "*"}
    exact = {key: _target(key, routes, by_key["prefix"], groups) for key, routes in by_key["exact"].items()}
    prefix = {key: _target(key, routes, by_key["prefix"], groups) for key, routes in by_key["prefix"].items()}
    return RouteMaps(
        exact,
        prefix,
        {route.id: action_of(route) for route in load_balancer.routes},
        {route.id: rewrite_of(route) for route in load_balancer.routes if route.prefix_rewrite is not None},
        rules_map(load_balancer.routes),
        values_map(load_balancer),
        limits_map(load_balancer, load_balancer.routes),
        pages_map(load_balancer),
        cached_map(load_balancer),
        tuple(sorted(groups, key=lambda group: number_of(group.id))),
        tuple(sorted({name.count(".") for name in wildcards if name.startswith(SUFFIX)}, reverse=True)),
        ANY in wildcards,
    )


def key_of(route: Route) -> str:
    """The map key of a route: host and path, a prefix closed with `/` so that it ends at a segment."""
    if route.path_kind is PathKind.REGEX:
        return f"{route.hostname}/"
    if route.path_kind is PathKind.EXACT or route.path == "/":
        return route.hostname + route.path
    return f"{route.hostname}{route.path}/"


def _target(key: str, routes: list[Route], prefixes: dict[str, list[Route]], groups: list[Group]) -> str:
    """What the map says for this key: a route, or a group that is added to `groups`."""
    best = routes[0] if len(routes) == 1 else min(routes, key=rank)
    if not is_conditional(best):
        return best.id
    group = Group(f"{GROUP}{number_of(best.id)}", best.hostname, _candidates(key, routes, prefixes))
    groups.append(group)
    return group.id


def _candidates(key: str, routes: list[Route], prefixes: dict[str, list[Route]]) -> tuple[Route, ...]:
    """All routes of the key, then of ever shorter prefixes of the same host, down to the first without conditions."""
    found: list[Route] = []
    for level in (routes, *(prefixes.get(shorter, []) for shorter in _shorter_prefixes(key, routes))):
        for route in sorted(level, key=rank):
            found.append(route)
            if not is_conditional(route):
                return tuple(found)
    return tuple(found)


def _shorter_prefixes(key: str, routes: list[Route]) -> list[str]:
    """Keys of the prefixes that also cover this key, longest first, without the key of `routes` itself."""
    host, _, path = key.partition("/")
    if routes[0].path_kind is PathKind.EXACT:
        path += "/"
    segments = path.split("/")[:-1]
    whole = len(segments) if routes[0].path_kind is PathKind.EXACT else len(segments) - 1
    return [f"{host}/" + "".join(f"{segment}/" for segment in segments[:count]) for count in range(whole, -1, -1)]


def rewrite_of(route: Route) -> str:
    """`<length of the matched prefix>|<what stands in its place>`, without a final slash on either."""
    return f"{rewrite_length(route)}|{(route.prefix_rewrite or '').rstrip('/')}"


def map_content(entries: Entries) -> bytes:
    """The bytes of a map file: `key SPACE value LF`, sorted by key."""
    return "".join(f"{key} {entries[key]}\n" for key in sorted(entries)).encode("ascii")


def served_at(load_balancer: LoadBalancer, listener: Listener) -> LoadBalancer:
    """The load balancer as an http listener serves it; `lb-1-either` has the routes of both schemes."""
    of_protocol = as_served_by(load_balancer, listener.protocol)
    if of_protocol is load_balancer or not listener.has_forwarders:
        return of_protocol
    return replace(load_balancer, id=load_balancer.id + EITHER)


def asked_at(load_balancer: LoadBalancer, listener: Listener) -> list[tuple[LoadBalancer, tuple[str, ...]]]:
    """Whose maps are asked for the route of a request, and under which condition."""
    served = served_at(load_balancer, listener)
    if not served.id.endswith(EITHER):
        return [(served, ())]
    return [
        (as_served_by(load_balancer, protocol), (*TOLD, protocol.value, "}"))
        for protocol in (Protocol.HTTP, Protocol.HTTPS)
    ]
