"""The precedence: which of a load balancer's routes gets a request, written down once for every target.

Among the routes whose host, path and conditions all match, the first one by this order wins:

1. the host: the exact one, `*.` for one label, `**.` with the longest suffix first, `*`;
2. the path: the exact one, prefixes with the longest first, patterns, `/` (as a prefix, which takes what is left);
3. a route that names methods before one that takes all;
4. more conditions before fewer: on headers, then on query parameters, then on cookies;
5. a route for some client networks before one for all clients;
6. a route of one scheme before one of both;
7. the older route (the lower number). So patterns with equal conditions come in the order in which they were made.

Rules 1 to 4 and 7 are those of the Gateway API's HTTPRoute, which leaves patterns and the rest open.

Before that, a request must be one for routes at all: :func:`refusal_of` says which are not, :func:`bare_host` how a
host is read. A route whose conditions do not match steps aside for the next one. :func:`winning_route` is the reference
that the rendered maps and a running proxy are tested against; the renderers build on :func:`ordered` and
:func:`as_served_by`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from apps.compiler.matching import hosts, patterns
from apps.compiler.matching.conditions import Sent, failing
from apps.compiler.model.shared import LoadBalancer, PathKind, Protocol, Route

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
Rank = tuple[tuple[int, int], int, int, bool, int, int, int, bool, bool, int]
PATH_KINDS = (PathKind.EXACT, PathKind.PREFIX, PathKind.REGEX)
_EVERY_PATH = len(PATH_KINDS)


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
        hosts.position_of(route.hostname),
        position_of_path(route),
        0 if route.path_kind is PathKind.REGEX else -len(route.path),
        not route.methods,
        -len(route.headers),
        -len(route.query),
        -len(route.cookies),
        not route.client_networks,
        route.scheme is None,
        number_of(route.id),
    )


def position_of_path(route: Route) -> int:
    """0 for a whole path, 1 for a prefix, 2 for a pattern, 3 for `/` as a prefix."""
    if route.path == "/" and route.path_kind is PathKind.PREFIX:
        return _EVERY_PATH
    return PATH_KINDS.index(route.path_kind)


def ordered(routes: Iterable[Route]) -> list[Route]:
    """The routes in the order of precedence."""
    return sorted(routes, key=rank)


def is_conditional(route: Route) -> bool:
    """Whether the route may step aside after the maps found its host and path; a pattern is no key of a map."""
    named = route.methods or route.headers or route.query or route.cookies or route.client_networks
    return bool(named) or route.path_kind is PathKind.REGEX


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
    """Whether the route's hostname stands for this host."""
    return hosts.covers(route.hostname, host)


def covers_path(route: Route, path: str) -> bool:
    """Whole path for an exact route and a pattern; whole segments for a prefix: `/api` covers not `/apiary`."""
    if route.path_kind is PathKind.EXACT:
        return route.path == path
    if route.path_kind is PathKind.REGEX:
        return patterns.matches(route.path, path)
    return (path + "/").startswith(route.path.rstrip("/") + "/")


def takes(route: Route, path: str, method: str, sent: Sent) -> bool:
    """Whether path and conditions match; its host and scheme do."""
    named = not route.methods or method in route.methods
    return named and covers_path(route, path) and failing(route, sent) is None


def winning_route(
    load_balancer: LoadBalancer,
    host: str,
    path: str,
    method: str,
    headers: Mapping[str, str],
    protocol: Protocol = Protocol.HTTP,
    client: str = "",
) -> Route | None:
    """The route that gets this request, None when none does.

    `host` may carry a port, a final dot and any case, `path` a query; a `client` that is not said is in no network.
    """
    bare, _, query = path.partition("?")
    if refusal_of(host, bare, method) is not None:
        return None
    name = bare_host(host)
    sent = Sent({key.lower(): value for key, value in headers.items()}, query, client)
    matching = (
        route
        for route in load_balancer.routes
        if covers_scheme(route, protocol) and covers_host(route, name) and takes(route, bare, method, sent)
    )
    return min(matching, key=rank, default=None)
