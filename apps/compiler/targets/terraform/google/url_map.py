"""The routes of a load balancer as the URL map of one of its http or https listeners.

Google looks for the host first and never comes back: a request belongs to the path matcher of its exact host, else of
the longest wildcard, and what no rule there takes goes to that matcher's default. Our routes fall through to the
wildcards, so the matcher of a host ends with the rules of the wildcards over it. `**.` is Google's `*.`; our `*.` is
one label alone and becomes the same.

1. One path matcher for each host, named after a digest of it, since host names are no names of RFC 1035.
2. Its route rules in our precedence (routing.py), numbered from 1; the first one that matches wins.
3. A prefix of ours is made of whole segments, `prefixMatch` of characters: `/a` becomes the whole path `/a` or what
   begins with `/a/`. Both have rules of their own when the prefix is replaced, since Google replaces what matched.
4. Methods are matched as the header `:method`; what a rule's match rules say is alternatives, so each method and each
   path makes one, with all conditions on headers in it.
5. What nobody takes goes to the listener's default pool, or is answered 404 by a fault that is injected always: a URL
   map has no answers of its own, and it must name a service. The same answers fixed responses.

Each listener has its own map, since `httpsRedirect` may stand in maps of http proxies only and default pools differ.
What Google documents: https://cloud.google.com/compute/docs/reference/rest/v1/urlMaps (HttpHeaderMatch.headerName says
`:method`; HttpRouteRule.priority; HttpRedirectAction; HttpFaultAbort).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count, groupby
from typing import Any

from apps.compiler.matching import hosts
from apps.compiler.model.shared import (
    Listener,
    LoadBalancer,
    PathKind,
    Protocol,
    Redirect,
    Route,
    ValueCondition,
    ValueMatch,
)
from apps.compiler.questions.trace import NO_ROUTE_STATUS
from apps.compiler.routing import as_served_by, is_conditional, ordered
from apps.compiler.targets.terraform.expressions import literal
from apps.compiler.targets.terraform.google.resources import NOBODY, Resource, resource, service_of

Block = dict[str, Any]

REDIRECT_CODES = {
    301: "MOVED_PERMANENTLY_DEFAULT",
    302: "FOUND",
    303: "SEE_OTHER",
    307: "TEMPORARY_REDIRECT",
    308: "PERMANENT_REDIRECT",
}
# A client's word about itself is dropped, as on our own nodes; Google itself appends to X-Forwarded-For.
FORGED_HEADERS = ("Forwarded", "X-Forwarded-Port", "X-Real-IP")


def url_map(stack_id: str, load_balancer: LoadBalancer, listener: Listener) -> Resource:
    """The URL map of one http or https listener."""
    by_matcher = routes_by_matcher(as_served_by(load_balancer, listener.protocol))
    body = {
        **_default(listener),
        "header_action": [{"request_headers_to_remove": list(FORGED_HEADERS)}],
        "host_rule": [{"hosts": [host], "path_matcher": matcher_name(host)} for host in by_matcher],
        "path_matcher": [_path_matcher(host, routes, listener) for host, routes in by_matcher.items()],
    }
    return resource(
        "google_compute_url_map", stack_id, listener.id, {key: value for key, value in body.items() if value}
    )


def matcher_name(host: str) -> str:
    """`shop.example.com` → `host-` and twelve digits of a digest."""
    return f"host-{hashlib.sha256(host.encode()).hexdigest()[:12]}"


def _default(listener: Listener) -> Block:
    """What becomes of a request that no rule takes."""
    if listener.default_pool_id:
        return {"default_service": service_of(listener.default_pool_id)}
    return {"default_service": service_of(NOBODY), "default_route_action": [_answer(NO_ROUTE_STATUS)]}


def _answer(status: int) -> Block:
    """The action that answers by itself: every request is aborted with this status."""
    return {"fault_injection_policy": [{"abort": [{"http_status": status, "percentage": 100}]}]}


def routes_by_matcher(load_balancer: LoadBalancer) -> dict[str, list[Route]]:
    """The routes whose rules the path matcher of each host holds, its own and those of the wildcards over it."""
    by_host: dict[str, list[Route]] = defaultdict(list)
    for route in load_balancer.routes:
        by_host[route.hostname].append(route)
    return {host: _routes_of(host, by_host) for host in sorted(map(pattern_of, by_host))}


def pattern_of(hostname: str) -> str:
    """The hostname as Google writes it."""
    return hostname.removeprefix("*") if hostname.startswith(hosts.SUFFIX) else hostname


def predicates_of(route: Route) -> int:
    """What of a path matcher the route takes up: each alternative counts its path and its headers."""
    rules = route_rules(route, Protocol.HTTP)
    words = ("header_matches", "query_parameter_matches")
    return sum(1 + sum(len(match.get(word, ())) for word in words) for rule in rules for match in rule["match_rules"])


def _routes_of(host: str, by_host: dict[str, list[Route]]) -> list[Route]:
    found: list[Route] = []
    for name in (host,) if host == hosts.ANY else hosts.names_that_cover(hosts.example_of(host)):
        if name in by_host:
            found += _reachable(found, ordered(by_host[name]))
    return found


def _path_matcher(host: str, routes: list[Route], listener: Listener) -> Block:
    numbers = count(1)
    rules = [{"priority": next(numbers), **rule} for route in routes for rule in route_rules(route, listener.protocol)]
    return {"name": matcher_name(host), **_default(listener), "route_rules": rules}


def _reachable(own: Sequence[Route], inherited: Sequence[Route]) -> Iterator[Route]:
    """A wildcard's routes without those that a route before it always takes first."""
    closed = {route.path for route in own if route.path_kind is PathKind.PREFIX and not is_conditional(route)}
    for route in inherited:
        if closed.isdisjoint(_prefixes(route.path)):
            yield route


def _prefixes(path: str) -> Iterator[str]:
    """`/a/b` → `/`, `/a`, `/a/b`."""
    yield "/"
    segments = path.strip("/").split("/")
    yield from ("/" + "/".join(segments[:length]) for length in range(1, len(segments) + 1))


def route_rules(route: Route, protocol: Protocol) -> Iterator[Block]:
    """One rule without its priority, or one for each way in which the path is rewritten."""
    for rewrite, paths in groupby(_paths(route), key=lambda pair: pair[1]):
        yield {
            "match_rules": [
                {**path, **_headers(route, method), **_query(route)}
                for path, _ in paths
                for method in sorted(route.methods) or (None,)
            ],
            **_action(route, protocol, rewrite),
        }


def _paths(route: Route) -> list[tuple[Block, str | None]]:
    """The ways to match the path, each with what replaces the matched part."""
    stem, rewrite = route.path.rstrip("/"), route.redirect.prefix if route.redirect else route.prefix_rewrite
    below = None if rewrite is None else rewrite.rstrip("/") + "/"
    if route.path_kind is PathKind.EXACT:
        return [({"full_path_match": route.path}, rewrite)]
    if not stem:
        return [({"prefix_match": "/"}, below)]
    return [({"full_path_match": stem}, rewrite), ({"prefix_match": f"{stem}/"}, below)]


def _headers(route: Route, method: str | None) -> Block:
    conditions = [_header_match(condition) for condition in route.headers]
    if method is not None:
        conditions.insert(0, {"header_name": ":method", "exact_match": method})
    return {"header_matches": conditions} if conditions else {}


def _header_match(condition: ValueCondition) -> Block:
    match condition.match:
        case ValueMatch.EQUALS:
            return {"header_name": condition.name, "exact_match": literal(condition.value)}
        case ValueMatch.PREFIX:
            return {"header_name": condition.name, "prefix_match": literal(condition.value)}
        case ValueMatch.REGEX:
            return {"header_name": condition.name, "regex_match": literal(condition.value)}
        case ValueMatch.PRESENT:
            return {"header_name": condition.name, "present_match": True}
        case ValueMatch.ABSENT:
            return {"header_name": condition.name, "present_match": True, "invert_match": True}


def _query(route: Route) -> Block:
    """Only what capabilities.py lets through: values as a whole, and presence."""
    conditions = [
        {"name": each.name, "present_match": True}
        if each.match is ValueMatch.PRESENT
        else {"name": each.name, "exact_match": literal(each.value)}
        for each in route.query
    ]
    return {"query_parameter_matches": conditions} if conditions else {}


def _action(route: Route, protocol: Protocol, rewrite: str | None) -> Block:
    if route.redirect is not None:
        return {"url_redirect": [_redirect(route.redirect, protocol, rewrite)]}
    if route.fixed_response is not None:
        return {"service": service_of(NOBODY), "route_action": [_answer(route.fixed_response.status)]}
    shares = [share for share in route.pools if share.weight > 0]
    action: Block = {} if rewrite is None else {"url_rewrite": [{"path_prefix_rewrite": rewrite}]}
    if len(shares) > 1:
        action["weighted_backend_services"] = [
            {"backend_service": service_of(share.pool_id), "weight": share.weight} for share in shares
        ]
    if route.mirror_pool_id is not None:
        action["request_mirror_policy"] = [{"backend_service": service_of(route.mirror_pool_id)}]
    service = {} if len(shares) > 1 else {"service": service_of(shares[0].pool_id)}
    return {**service, "route_action": [action]} if action else service


def _redirect(redirect: Redirect, protocol: Protocol, prefix: str | None) -> Block:
    """On https the scheme stays as it is, which is what a redirect to https wants there."""
    body: Block = {
        "redirect_response_code": REDIRECT_CODES[redirect.code],
        "strip_query": not redirect.keep_query,
        "https_redirect": True if redirect.scheme == "https" and protocol is Protocol.HTTP else None,
        "host_redirect": redirect.host,
        "path_redirect": redirect.path,
        "prefix_redirect": prefix,
    }
    return {name: value for name, value in body.items() if value is not None}
