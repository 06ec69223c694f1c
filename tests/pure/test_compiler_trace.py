"""Trace and assertions: the same precedence as the proxy's, with reasons, outcomes and sentences."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from apps.compiler.model.shared import (
    Assertion,
    FixedResponse,
    LoadBalancer,
    PathKind,
    Protocol,
    Redirect,
    ValueCondition,
    ValueMatch,
    WeightedPool,
)
from apps.compiler.questions.assertions import broken
from apps.compiler.questions.trace import Question, location_of, rewritten, trace
from apps.compiler.routing import winning_route
from tests.pure.compiler_fixtures import (
    ASKED_HEADERS,
    ASKED_HOSTS,
    ASKED_METHODS,
    ASKED_PATHS,
    ASKED_PROTOCOLS,
    crowd,
    front,
    fronts,
    pool,
    route,
    snapshot,
)
from tests.pure.properties import always

CANARY = (ValueCondition("X-Canary", ValueMatch.EQUALS, "yes"),)


def a_trace_names_the_winner(drawn: LoadBalancer) -> None:
    """Whatever is asked, the trace names the winner of the precedence, and why the others were passed over."""
    asked = product(ASKED_HOSTS, ASKED_PATHS, ASKED_METHODS, ASKED_HEADERS, ASKED_PROTOCOLS)
    for host, path, method, headers, scheme in asked:
        winner = winning_route(drawn, host, path, method, headers, scheme)
        found = trace(drawn, Question(host, path, method, scheme, headers))
        assert found.winner is winner
        assert all(each.route is not winner and each.why for each in found.passed_over)


def test_a_trace_names_the_winner_where_many_routes_crowd() -> None:
    a_trace_names_the_winner(crowd(1))


@pytest.mark.exhaustive
def test_a_trace_names_the_winner_that_the_precedence_names() -> None:
    always(a_trace_names_the_winner, fronts(), count=150, repeatable=False)


@pytest.mark.parametrize(
    ("loser", "code"),
    [
        (route(9, "*.example", "/api/v2"), "host"),
        (route(9, "a.example", "/api"), "path"),
        (route(9, "a.example", "/api/v2", methods=("POST",)), "method"),
        (route(9, "a.example", "/api/v2", headers=CANARY), "header"),
        (route(9, "a.example", "/other"), "path"),
        (route(9, "a.example", "/api/v2"), "order"),
    ],
)
def test_who_was_passed_over_is_told_why(loser: object, code: str) -> None:
    winner = route(1, "a.example", "/api/v2")
    found = trace(front(winner, loser), Question("A.example:443", "/api/v2/x?q=1"))  # type: ignore[arg-type]
    assert found.winner is winner
    assert [each.code for each in found.passed_over] == [code]


def test_shares_redirects_answers_and_rewrites_are_told() -> None:
    shares = (WeightedPool("pool-1", 75), WeightedPool("pool-2", 25), WeightedPool("pool-3", 0))
    split = route(1, "a.example", "/old", pools=shares, prefix_rewrite="/new")
    gone = route(2, "a.example", "/gone", pools=(), redirect=Redirect(301, scheme="https", host="b.example"))
    fixed = route(3, "a.example", "/ping", pools=(), path_kind=PathKind.EXACT, fixed_response=FixedResponse(204))
    case = front(split, gone, fixed)
    found = trace(case, Question("a.example", "/old/x?y=1"))
    assert [(each.pool_id, each.part) for each in found.pools] == [("pool-1", 0.75), ("pool-2", 0.25)]
    assert found.path == "/new/x?y=1"
    assert trace(case, Question("a.example:80", "/gone/x?y", scheme=Protocol.HTTP)).location == (
        "https://b.example/gone/x?y"
    )
    assert trace(case, Question("a.example", "/ping")).status == 204
    assert trace(case, Question("z.example", "/ping")).status == 404


def test_a_rewrite_to_nothing_leaves_the_root() -> None:
    assert rewritten(route(1, "a.example", "/a", prefix_rewrite="/"), "/a?b") == "/?b"


def test_a_redirect_that_keeps_the_scheme_keeps_the_port() -> None:
    asked = Question("a.example:8080", "/x?y=1", scheme=Protocol.HTTP)
    to = Redirect(302, path="/z", keep_query=False)
    assert location_of(route(1, redirect=to), to, asked) == "http://a.example:8080/z"


@pytest.mark.parametrize("asked", ["http://a.example", "http://a.example:8080", "https://a.example:443"])
@pytest.mark.parametrize(
    ("redirect", "http", "https"),
    [
        ({"port": 8443}, "http://a.example:8443/x/y?q=1", "https://a.example:8443/x/y?q=1"),
        ({"port": 443}, "http://a.example:443/x/y?q=1", "https://a.example/x/y?q=1"),
        ({"scheme": "https"}, "https://a.example/x/y?q=1", "https://a.example/x/y?q=1"),
        ({"scheme": "http", "port": 80}, "http://a.example/x/y?q=1", "http://a.example/x/y?q=1"),
        ({"scheme": "https", "port": 80}, "https://a.example:80/x/y?q=1", "https://a.example:80/x/y?q=1"),
        ({"scheme": "https", "query": "b"}, "https://a.example/x/y?q=1&b", "https://a.example/x/y?q=1&b"),
        (
            {"scheme": "https", "keep_query": False, "query": "b"},
            "https://a.example/x/y?b",
            "https://a.example/x/y?b",
        ),
        ({"scheme": "https", "prefix": "/z"}, "https://a.example/z/y?q=1", "https://a.example/z/y?q=1"),
        ({"scheme": "https", "prefix": "/"}, "https://a.example/y?q=1", "https://a.example/y?q=1"),
    ],
)
def test_the_port_is_written_where_it_is_not_the_schemes_own(
    asked: str, redirect: dict[str, Any], http: str, https: str
) -> None:
    scheme, _, host = asked.partition("://")
    to = Redirect(302, **redirect)
    question = Question(host, "/x/y?q=1", scheme=Protocol(scheme))
    assert location_of(route(1, path="/x", redirect=to), to, question) == (https if scheme == "https" else http)


def test_a_prefix_is_replaced_as_the_gateway_api_does_it() -> None:
    for path, prefix, asked, leads in (
        ("/foo", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foo", "/xyz"),
        ("/foo", "/xyz", "/foo/", "/xyz/"),
        ("/foo", "/", "/foo/bar", "/bar"),
        ("/foo", "/", "/foo/", "/"),
        ("/foo", "/", "/foo", "/"),
        ("/", "/xyz", "/foo", "/xyz/foo"),
    ):
        to = Redirect(302, host="b.example", prefix=prefix)
        found = location_of(route(1, path=path, redirect=to), to, Question("a.example", asked, scheme=Protocol.HTTP))
        assert found == f"http://b.example{leads}", (path, prefix, asked)


@pytest.mark.parametrize(
    ("assertion", "instead"),
    [
        (Assertion("/api", pool="acme/pool-1"), ""),
        (Assertion("/api", pool="acme/pool-2"), "goes to pool acme/pool-1 by route acme/route-1"),
        (Assertion("/api", route="acme/route-1"), ""),
        (Assertion("/api", route="acme/route-2"), "goes to pool"),
        (Assertion("/nope", status=404), ""),
        (Assertion("/nope", status=200), "matches no route and gets status 404"),
        (Assertion("/gone", redirect=""), ""),
        (Assertion("/gone", redirect="http://a.example/there"), ""),
        (Assertion("/gone", redirect="http://a.example/"), "is redirected to http://a.example/there"),
        (Assertion("/split", pool="acme/pool-1"), "goes to pool acme/pool-1 (50 %), acme/pool-2 (50 %)"),
    ],
)
def test_an_assertion_holds_or_says_what_happens_instead(assertion: Assertion, instead: str) -> None:
    one, two = replace(pool(1), label="acme/pool-1"), replace(pool(2), label="acme/pool-2")
    api = replace(route(1, "a.example", "/api", pools=(WeightedPool("pool-1", 1),)), label="acme/route-1")
    gone = route(2, "a.example", "/gone", pools=(), redirect=Redirect(301, path="/there"))
    split = route(3, "a.example", "/split", pools=(WeightedPool("pool-1", 5), WeightedPool("pool-2", 5)))
    case = snapshot(front(replace(api, assertions=(assertion,)), gone, split), pools=(one, two))
    found = broken(case)
    assert [each.index for each in found] == ([0] if instead else [])
    assert not instead or instead in found[0].sentence
