"""The precedence of routes: the written-down reference against what maps and groups say."""

from __future__ import annotations

from itertools import product

import pytest

from apps.compiler.checks.snapshot import examine
from apps.compiler.model.shared import HeaderCondition, HeaderMatch, LoadBalancer, PathKind, Route
from apps.compiler.routing import as_served_by, holds, winning_route
from apps.compiler.targets.haproxy.maps import RouteMaps, route_maps
from tests.pure.compiler_fixtures import (
    ASKED_HEADERS,
    ASKED_HOSTS,
    ASKED_METHODS,
    ASKED_PATHS,
    ASKED_PROTOCOLS,
    crowd,
    front,
    fronts,
    route,
    snapshot,
)
from tests.pure.properties import always, examples

CANARY = (HeaderCondition("X-Canary", HeaderMatch.EQUALS, "yes"),)


def _look_up(maps: RouteMaps, host: str, path: str, method: str, headers: dict[str, str]) -> str | None:
    """What the rendered rules do, step by step, in Python."""
    lower = {name.lower(): value for name, value in headers.items()}
    host = host.partition(":")[0].lower()
    for name in (host, "*." + host.partition(".")[2]):
        found = maps.exact.get(name + path) or _longest_beginning(maps.prefix, f"{name}{path}/")
        for group in maps.groups:
            if group.id == found and group.wildcard == name.startswith("*."):
                found = _first_that_holds(group.candidates, method, lower)
        if found:
            return found
    return None


def _longest_beginning(entries: dict[str, str], text: str) -> str | None:
    return max(
        ((key, value) for key, value in entries.items() if text.startswith(key)),
        default=("", None),
        key=lambda each: len(each[0]),
    )[1]


def _first_that_holds(candidates: tuple[Route, ...], method: str, headers: dict[str, str]) -> str | None:
    return next(
        (
            each.id
            for each in candidates
            if (not each.methods or method in each.methods)
            and all(holds(condition, headers) for condition in each.headers)
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
            assert _look_up(maps, host, path, method, headers) == (winner.id if winner else None)


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
        (route(9, "b.a.example", "/api", path_kind=PathKind.EXACT), route(1, "b.a.example", "/api", headers=CANARY)),
        (route(9, "b.a.example", "/api"), route(1, "b.a.example", "/", headers=CANARY)),
        (route(9, "b.a.example", "/", headers=CANARY), route(1, "b.a.example", "/", methods=("GET",))),
        (route(9, "b.a.example", "/", methods=("GET",)), route(1, "b.a.example", "/")),
        (route(9, "b.a.example", "/", scheme="http"), route(1, "b.a.example", "/")),
        (route(1, "b.a.example", "/", methods=("GET",)), route(9, "b.a.example", "/", methods=("GET", "POST"))),
    ],
    ids=["exact host", "exact path", "longer prefix", "more headers", "methods", "scheme", "older"],
)
def test_each_rule_of_the_precedence_beats_all_later_rules(better: Route, worse: Route) -> None:
    for routes in ((better, worse), (worse, better)):
        assert winning_route(front(*routes), "b.a.example", "/api", "GET", {"x-canary": "yes"}) == better


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
