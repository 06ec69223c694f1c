"""The precedence: which of a load balancer's routes gets a request, written down once for every target.

Among the routes whose host, path, methods and headers all match, the first one by this order wins:

1. a route of the exact host before one of the wildcard host;
2. an exact path before a prefix;
3. a longer prefix before a shorter one;
4. more header conditions before fewer;
5. a route that names methods before one that takes all;
6. a route of one scheme before one of both;
7. the older route (the lower number).

Before that, a request must be one for routes at all: :func:`refusal_of` says which are not, :func:`bare_host` how a
host is read. A route whose conditions do not match steps aside for the next one. :func:`winning_route` is the reference
that the rendered maps and a running proxy are tested against; the renderers build on :func:`ordered` and
:func:`as_served_by`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from apps.compiler.model.shared import HeaderCondition, HeaderMatch, LoadBalancer, PathKind, Protocol, Route

NO_ROUTE = "No route is defined for this host and path.\n"
"""What a client reads that no route takes, with 404, whatever the target."""
# Labels of letters, digits and hyphens with one final dot at most, or an IPv6 address in brackets; then a port.
HOST_PATTERN = r"([a-z0-9-]+([.][a-z0-9-]+)*[.]?|\[[0-9a-f:.]+\])(:[0-9]*)?"
BAD_HOST_STATUS = 400
BAD_HOST = "Send a host of letters, digits, hyphens and dots, with or without a port.\n"
NOT_FOR_ROUTES_STATUS = 405
NOT_FOR_ROUTES = "Ask for a path; this is no proxy, and it has nothing to say about itself.\n"
NOT_FOR_ROUTES_METHOD, NOT_FOR_ROUTES_PATH = "CONNECT", "*"
_HOST = re.compile(HOST_PATTERN, re.ASCII | re.IGNORECASE)
Rank = tuple[bool, bool, int, int, bool, bool, int]


def refusal_of(host: str, path: str, method: str) -> int | None:
    """The status by which a request is refused that is for no route, whatever the routes are; None for all others."""
    if method == NOT_FOR_ROUTES_METHOD or path == NOT_FOR_ROUTES_PATH:
        return NOT_FOR_ROUTES_STATUS
    return None if not host or _HOST.fullmatch(host) else BAD_HOST_STATUS


def bare_host(host: str) -> str:
    """The host as routes have it: lower case, without port and final dot."""
    return re.sub(r":[0-9]*\Z", "", host).lower().removesuffix(".")


def number_of(object_id: str) -> int:
    """The number in one of our ids: `route-9` → 9. Lower is older."""
    return int(object_id.rpartition("-")[2])


def rank(route: Route) -> Rank:
    """Sorts routes into the order of precedence, first one first."""
    return (
        route.hostname.startswith("*."),
        route.path_kind is PathKind.PREFIX,
        -len(route.path),
        -len(route.headers),
        not route.methods,
        route.scheme is None,
        number_of(route.id),
    )


def ordered(routes: Iterable[Route]) -> list[Route]:
    """The routes in the order of precedence."""
    return sorted(routes, key=rank)


def is_conditional(route: Route) -> bool:
    """Whether the route may step aside after host and path matched."""
    return bool(route.methods or route.headers)


def covers_scheme(route: Route, protocol: Protocol) -> bool:
    """Whether the route takes requests of this scheme at all."""
    return route.scheme is None or route.scheme == protocol.value


def as_served_by(load_balancer: LoadBalancer, protocol: Protocol) -> LoadBalancer:
    """The load balancer as the listeners of this protocol serve it; itself where its routes are all of both schemes.

    Where they are not, its id says of which protocol it is (`lb-1-http`), so that each has maps of its own: a route of
    one scheme is a map entry like any other.
    """
    if all(route.scheme is None for route in load_balancer.routes):
        return load_balancer
    routes = tuple(route for route in load_balancer.routes if covers_scheme(route, protocol))
    return replace(load_balancer, id=f"{load_balancer.id}-{protocol.value}", routes=routes)


def covers_host(route: Route, host: str) -> bool:
    """Whether the route's host is this one, or a wildcard for its first label."""
    return route.hostname == host or route.hostname == "*." + host.partition(".")[2]


def covers_path(route: Route, path: str) -> bool:
    """Whole path for an exact route; whole segments from the start for a prefix: `/api` covers not `/apiary`."""
    if route.path_kind is PathKind.EXACT:
        return route.path == path
    return (path + "/").startswith(route.path.rstrip("/") + "/")


def holds(condition: HeaderCondition, headers: Mapping[str, str]) -> bool:
    """Whether one header condition holds; `headers` has lower-case names, values are compared with their case."""
    value = headers.get(condition.name.lower())
    match condition.match:
        case HeaderMatch.PRESENT:
            return value is not None
        case HeaderMatch.ABSENT:
            return value is None
        case HeaderMatch.EQUALS:
            return value == condition.value


def winning_route(
    load_balancer: LoadBalancer,
    host: str,
    path: str,
    method: str,
    headers: Mapping[str, str],
    protocol: Protocol = Protocol.HTTP,
) -> Route | None:
    """The route that gets this request, None when none does. `host` may carry a port, a final dot and any case."""
    if refusal_of(host, path, method) is not None:
        return None
    name = bare_host(host)
    lower = {key.lower(): value for key, value in headers.items()}
    matching = (
        route
        for route in load_balancer.routes
        if covers_scheme(route, protocol)
        and covers_host(route, name)
        and covers_path(route, path)
        and (not route.methods or method in route.methods)
        and all(holds(condition, lower) for condition in route.headers)
    )
    return min(matching, key=rank, default=None)
