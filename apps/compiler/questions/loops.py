"""The question whether a redirect leads to itself: pure, asked at every write and before every push."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from apps.compiler.matching import hosts, patterns
from apps.compiler.matching.conditions import fulfilling
from apps.compiler.model.shared import LoadBalancer, PathKind, Protocol, Redirect, Route
from apps.compiler.routing import covers_host, covers_path, covers_scheme, winning_route

# Clients ask again with GET after these, unless they asked with HEAD (RFC 9110, 15.4).
_TURNED_INTO_GET = (301, 302, 303)


def loop_of(route: Route, load_balancer: LoadBalancer) -> Protocol | None:
    """The protocol on whose listeners the route's redirect leads back to the route, None where there is none.

    A client that follows it sends what it sent before, so the route's own conditions hold again. A more specific route
    at the address to which it leads ends the circle.
    """
    return next((each for each in _at_risk(route, load_balancer) if _wins_again(route, load_balancer, each)), None)


def may_loop(route: Route, load_balancer: LoadBalancer) -> bool:
    """Whether it depends on the other routes that the redirect does not lead to itself."""
    return any(_at_risk(route, load_balancer))


def loop_message(protocol: Protocol) -> str:
    """What is wrong and what to do."""
    other = Protocol.HTTP if protocol is Protocol.HTTPS else Protocol.HTTPS
    return (
        f"On {protocol} the redirect leads to itself. Make the route one of {other} alone (scheme: {other}), "
        "or redirect to another host or path."
    )


def _at_risk(route: Route, load_balancer: LoadBalancer) -> Iterator[Protocol]:
    """Protocols on which the route takes the request that follows its redirect, unless another route does."""
    redirect = route.redirect
    if redirect is None or not _covers_target(route, redirect):
        return
    for protocol in sorted({each.protocol for each in load_balancer.listeners} - {Protocol.TCP}):
        ports = {each.port for each in load_balancer.listeners if each.protocol is protocol}
        here = redirect.port is None or redirect.port in ports
        if here and covers_scheme(route, protocol) and redirect.scheme in (None, protocol.value):
            yield protocol


def _target(route: Route, redirect: Redirect) -> tuple[str, str]:
    """Host and path to which it leads; any name of a wildcard, any path of a pattern stands for all."""
    path = patterns.example_of(route.path) if route.path_kind is PathKind.REGEX else route.path
    if redirect.prefix is not None:
        path = redirect.prefix
    return redirect.host or hosts.example_of(route.hostname), redirect.path or path


def _covers_target(route: Route, redirect: Redirect) -> bool:
    host, path = _target(route, redirect)
    return covers_host(route, host) and covers_path(route, path)


def _wins_again(route: Route, load_balancer: LoadBalancer, protocol: Protocol) -> bool:
    assert route.redirect is not None  # noqa: S101 - else it is not at risk
    host, path = _target(route, route.redirect)
    near = (each for each in load_balancer.routes if covers_host(each, host) and covers_path(each, path))
    front = replace(load_balancer, routes=tuple(near))
    sent = fulfilling(route)
    query = "?" + "&".join(filter(None, (sent.query if route.redirect.keep_query else "", route.redirect.query)))
    return any(
        winning_route(front, host, path + query, method, sent.headers, protocol, sent.client) == route
        for method in _methods_of_followers(route, route.redirect)
    )


def _methods_of_followers(route: Route, redirect: Redirect) -> tuple[str, ...]:
    """With which methods clients of the route ask where it leads."""
    if redirect.code not in _TURNED_INTO_GET:
        return route.methods or ("GET",)
    return tuple({"HEAD" if method == "HEAD" else "GET" for method in route.methods}) or ("GET",)
