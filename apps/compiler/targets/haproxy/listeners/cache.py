"""Answers that a node keeps in memory and gives to everybody: a cache for each listener that has one.

HAProxy knows an object by its host, path and query alone. It would also keep what was answered to one client's cookie
or password, and hand it to the next. So a request asks the cache only where nothing but host and path decides:

* its route sends to one pool, has no conditions, and no policy that looks at the client; a map says which routes those
  are, so that another route of the same path never meets their objects;
* it is a GET or HEAD without Cookie and Authorization.

What sets a cookie is not kept. Two routes never share an object: each listener has its own cache, and host and path
lead to one route. The cache is asked before paths and hosts are rewritten, after which they could be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apps.compiler.header_text import is_format
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import Listener, LoadBalancer, Protocol, Route
from apps.compiler.policies import rules_of
from apps.compiler.routing import is_conditional
from apps.compiler.targets.haproxy.writer import Document, Section, Value

# Blocks of policies that say the same to every client, and nothing before the cache is asked.
_ALIKE = frozenset({"security_headers", "response_headers", "typed_headers", "timeouts", "retries", "error_pages"})
_CACHED = ("{", "var(txn.cached)", "-m", "bool", "}")


def has_cache(listener: Listener) -> bool:
    """Whether the listener keeps answers; certificates of clients say who asks, so it does not with them."""
    return listener.cache is not None and listener.protocol is not Protocol.TCP and not listener.client_certificates


def cached_map(load_balancer: LoadBalancer) -> dict[str, str] | None:
    """The routes of which answers are kept; no map where no listener keeps any."""
    if not any(map(has_cache, load_balancer.listeners)):
        return None
    return {route.id: "1" for route in load_balancer.routes if _answers_everybody(route, load_balancer)}


def _answers_everybody(route: Route, load_balancer: LoadBalancer) -> bool:
    alone = sum(share.weight > 0 for share in route.pools) == 1
    return alone and not is_conditional(route) and _is_alike(rules_of(load_balancer, route))


def _is_alike(rules: Rules) -> bool:
    said = {name for name in Rules.__dataclass_fields__ if getattr(rules, name) is not None}
    blocks = [block for block in (rules.response_headers, rules.typed_headers) if block is not None]
    values = [value for block in blocks for _, pairs in block.written for _, value in pairs]
    return said <= _ALIKE and not any(is_format(value) for value in values)


def add_caches(document: Document, load_balancers: Iterable[LoadBalancer]) -> None:
    """A section for each listener that has one, named after it."""
    for listener in (each for front in load_balancers for each in front.listeners if has_cache(each)):
        section = document.section("cache", listener.id, owner=listener.id)
        if listener.cache is not None:
            section.add("total-max-size", Value(str(listener.cache.total_mb)))
            section.add("max-object-size", Value(str(listener.cache.max_object_bytes)))
            section.add("max-age", Value(str(listener.cache.max_age_s)))
        section.add("process-vary", "on")


def add_filter(section: Section, listener: Listener) -> None:
    """Before that of compression, so that what is kept is not compressed."""
    if has_cache(listener):
        section.add("filter", "cache", listener.id)


def add_cache(section: Section, listener: Listener, path: Callable[[str], str]) -> None:
    """Ask it, and keep what was not there."""
    if not has_cache(listener):
        return
    of_route = ("{", f"var(txn.route),map_str({path('cached')})", "-m", "found", "}")
    plain = ("!", "{", "req.hdr(cookie)", "-m", "found", "}", "!", "{", "req.hdr(authorization)", "-m", "found", "}")
    asks = ("{", "method", "GET", "HEAD", "}", *plain)
    section.add("http-request", "set-var(txn.cached)", "bool(true)", "if", *asks, *of_route)
    section.add("http-request", "cache-use", listener.id, "if", *_CACHED)
    no_cookie = ("!", "{", "res.hdr(set-cookie)", "-m", "found", "}")
    section.add("http-response", "cache-store", listener.id, "if", *_CACHED, *no_cookie)
