"""The precedence of routes: the written-down reference against what maps and groups say."""

from __future__ import annotations

from itertools import product

import pytest

from apps.compiler.checks.snapshot import examine
from apps.compiler.matching.conditions import Sent, failing
from apps.compiler.matching.patterns import matches
from apps.compiler.model.shared import LoadBalancer, PathKind, Route, ValueCondition, ValueMatch
from apps.compiler.routing import as_served_by, winning_route
from apps.compiler.targets.haproxy.maps import RouteMaps, route_maps
from tests.pure.compiler_fixtures import (
    ASKED_HEADERS,
    ASKED_HOSTS,
    ASKED_METHODS,
    ASKED_PATHS,
    ASKED_PROTOCOLS,
    RICH_ASKED_HEADERS,
    RICH_ASKED_HOSTS,
    RICH_ASKED_PATHS,
    crowd,
    front,
    fronts,
    rich_crowd,
    rich_fronts,
    route,
    snapshot,
)
from tests.pure.properties import always, examples

SOME = (ValueCondition("a", ValueMatch.EQUALS, "1"),)
OTHER = (ValueCondition("b", ValueMatch.PRESENT),)
REGEX = PathKind.REGEX
CANARY = (ValueCondition("X-Canary", ValueMatch.EQUALS, "yes"),)


def _look_up(maps: RouteMaps, host: str, path: str, method: str, sent: Sent) -> str | None:
    """What the rendered rules do, step by step, in Python."""
    host = host.partition(":")[0].lower().removesuffix(".")
    labels = host.split(".")
    suffixes = [f"**.{'.'.join(labels[-count:])}" for count in maps.suffix_labels if len(labels) > count]
    for name in (host, "*." + host.partition(".")[2], *suffixes, *("*" * maps.any_host)):
        found = maps.exact.get(name + path) or _longest_beginning(maps.prefix, f"{name}{path}/")
        for group in maps.groups:
            if group.id == found:
                found = _first_that_holds(group.candidates, path, method, sent)
        if found:
            return found
    return None


def _longest_beginning(entries: dict[str, str], text: str) -> str | None:
    return max(
        ((key, value) for key, value in entries.items() if text.startswith(key)),
        default=("", None),
        key=lambda each: len(each[0]),
    )[1]


def _first_that_holds(candidates: tuple[Route, ...], path: str, method: str, sent: Sent) -> str | None:
    return next(
        (
            each.id
            for each in candidates
            if (not each.methods or method in each.methods)
            and (each.path_kind is not PathKind.REGEX or matches(each.path, path))
            and failing(each, sent) is None
        ),
        None,
    )


def maps_agree(drawn: LoadBalancer) -> None:
    """Maps and groups lead every request to the route that the reference names."""
    accepted = examine(snapshot(drawn)).accepted.load_balancers[0]
    for protocol in ASKED_PROTOCOLS:
        maps = route_maps(as_served_by(accepted, protocol))
        for host, path, method, headers in product(ASKED_HOSTS, ASKED_PATHS, ASKED_METHODS, ASKED_HEADERS):
            winner = winning_route(accepted, host, path, method, headers, protocol)
            sent = Sent({name.lower(): value for name, value in headers.items()})
            assert _look_up(maps, host, path, method, sent) == (winner.id if winner else None)


def rich_maps_agree(drawn: LoadBalancer) -> None:
    """The same for routes that use everything that a route can ask for."""
    accepted = examine(snapshot(drawn)).accepted.load_balancers[0]
    maps = route_maps(accepted)
    clients = ("", "127.0.0.1", "2001:db8::1")
    for host, path, headers, client in product(RICH_ASKED_HOSTS, RICH_ASKED_PATHS, RICH_ASKED_HEADERS, clients):
        winner = winning_route(accepted, host, path, "GET", headers, client=client)
        bare, _, query = path.partition("?")
        sent = Sent({name.lower(): value for name, value in headers.items()}, query, client)
        assert _look_up(maps, host, bare, "GET", sent) == (winner.id if winner else None)


@pytest.mark.parametrize("seed", range(3))
def test_maps_and_groups_agree_where_routes_ask_for_everything(seed: int) -> None:
    rich_maps_agree(rich_crowd(seed))


@examples(few=8, many=200)
def test_maps_and_groups_agree_whatever_routes_ask_for(count: int, *, repeatable: bool) -> None:
    always(rich_maps_agree, rich_fronts(), count=count, repeatable=repeatable)


@pytest.mark.parametrize("seed", range(3))
def test_maps_and_groups_agree_with_the_reference_where_many_routes_crowd(seed: int) -> None:
    maps_agree(crowd(seed))


@examples(few=12, many=300)
def test_maps_and_groups_agree_with_the_reference_for_every_request(count: int, *, repeatable: bool) -> None:
    always(maps_agree, fronts(), count=count, repeatable=repeatable)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (route(9, "b.a.example", "/"), route(1, "*.a.example", "/api", path_kind=PathKind.EXACT)),
        (route(9, "*.a.example", "/"), route(1, "**.a.example", "/api", path_kind=PathKind.EXACT)),
        (route(9, "**.a.example", "/"), route(1, "**.example", "/api", path_kind=PathKind.EXACT)),
        (route(9, "**.example", "/"), route(1, "*", "/api", path_kind=PathKind.EXACT)),
        (route(9, "b.a.example", "/api", path_kind=PathKind.EXACT), route(1, "b.a.example", "/api", headers=CANARY)),
        (route(9, "b.a.example", "/api"), route(1, "b.a.example", "/", headers=CANARY)),
        (route(9, "b.a.example", "/api"), route(1, "b.a.example", "/a.*", path_kind=REGEX, methods=("GET",))),
        (route(9, "b.a.example", "/a.*", path_kind=REGEX), route(1, "b.a.example", "/", methods=("GET",))),
        (route(1, "b.a.example", "/a.*", path_kind=REGEX), route(9, "b.a.example", "/ap.", path_kind=REGEX)),
        (route(9, "b.a.example", "/", methods=("GET",)), route(1, "b.a.example", "/", headers=CANARY)),
        (route(9, "b.a.example", "/", headers=CANARY), route(1, "b.a.example", "/", query=(*SOME, *OTHER))),
        (route(9, "b.a.example", "/", query=(*SOME, *OTHER)), route(1, "b.a.example", "/", query=SOME)),
        (route(9, "b.a.example", "/", query=SOME), route(1, "b.a.example", "/", cookies=SOME)),
        (route(9, "b.a.example", "/", cookies=SOME), route(1, "b.a.example", "/", client_networks=("10.0.0.0/8",))),
        (route(9, "b.a.example", "/", client_networks=("10.0.0.0/8",)), route(1, "b.a.example", "/", scheme="http")),
        (route(9, "b.a.example", "/", scheme="http"), route(1, "b.a.example", "/")),
        (route(1, "b.a.example", "/", methods=("GET",)), route(9, "b.a.example", "/", methods=("GET", "POST"))),
    ],
    ids=[
        "exact host", "one label", "longer suffix", "suffix", "exact path", "longer prefix", "prefix", "pattern",
        "older pattern", "methods", "headers", "more parameters", "query", "cookies", "client", "scheme", "older",
    ],
)  # fmt: skip
def test_each_rule_of_the_precedence_beats_all_later_rules(better: Route, worse: Route) -> None:
    sent = {"x-canary": "yes", "cookie": "a=1"}
    for routes in ((better, worse), (worse, better)):
        won = winning_route(front(*routes), "b.a.example", "/api?a=1&b=2", "GET", sent, client="10.1.2.3")
        assert won == better


def test_a_suffix_stands_for_one_label_or_more() -> None:
    balancer = front(route(1, "**.a.example"))
    asked = {host: winning_route(balancer, host, "/", "GET", {}) is not None for host in ("a.example", "b.a.example")}
    assert asked == {"a.example": False, "b.a.example": True}
    assert winning_route(balancer, "d.c.b.a.example", "/", "GET", {}) is not None
    assert winning_route(balancer, "b.a.example.evil", "/", "GET", {}) is None
    assert winning_route(balancer, "ba.example", "/", "GET", {}) is None


def test_any_host_takes_requests_without_a_host_as_well() -> None:
    balancer = front(route(1, "*"))
    assert all(winning_route(balancer, host, "/", "GET", {}) for host in ("", "localhost", "[::1]:80", "x.y.z"))


def test_a_wildcard_stands_for_exactly_one_label() -> None:
    balancer = front(route(1, "*.a.example"))
    assert winning_route(balancer, "b.a.example", "/", "GET", {}) is not None
    assert winning_route(balancer, "c.b.a.example", "/", "GET", {}) is None
    assert winning_route(balancer, "a.example", "/", "GET", {}) is None


def test_a_prefix_ends_at_a_segment() -> None:
    balancer = front(route(1, path="/api"))
    asked = {
        path: winning_route(balancer, "a.example", path, "GET", {}) is not None
        for path in ("/api", "/api/", "/api/x", "/apiary")
    }
    assert asked == {"/api": True, "/api/": True, "/api/x": True, "/apiary": False}
