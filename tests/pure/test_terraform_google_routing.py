"""The URL map that is rendered for Google answers every request as our own precedence does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from apps.compiler.model.shared import FixedResponse, Listener, LoadBalancer, PathKind, Protocol, Redirect, WeightedPool
from apps.compiler.questions.trace import Question, Share, trace
from apps.compiler.routing import number_of
from apps.compiler.targets.terraform.google.capabilities import unsupported_in_route
from apps.compiler.targets.terraform.google.conditions import unsupported_conditions
from apps.compiler.targets.terraform.google.url_map import url_map
from tests.conformance.google_url_map import Outcome, evaluate
from tests.pure.compiler_fixtures import (
    RICH_ASKED_HEADERS,
    RICH_ASKED_HOSTS,
    RICH_ASKED_PATHS,
    front,
    listener,
    rich_crowd,
    route,
)
from tests.pure.google_fixtures import google_fronts
from tests.pure.properties import always, examples

HOSTS = ("a.example.com", "b.a.example.com", "x.a.example.com", "c.b.a.example.com", "y.b.a.example.com", "other.org")
PATHS = ("/", "/api", "/api/", "/api/v2", "/api/v2/deep/er?q=1", "/apiary", "/apiary/x?", "/ap", "/api/v2/deep", "/API")
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"X-Canary": "yes"},
    {"x-canary": "no"},
    {"X-Canary": "yes", "X-Beta": "1"},
)


def _answer(load_balancer: LoadBalancer, listener: Listener, question: Question) -> Outcome:
    return evaluate(url_map("stk-3", load_balancer, listener).body, question)


def _expected(load_balancer: LoadBalancer, question: Question) -> Outcome:
    found = trace(load_balancer, question)
    return Outcome(found.pools, found.path, found.status, found.location, found.mirror_pool_id)


def _too_deep(load_balancer: LoadBalancer, host: str) -> bool:
    """Whether a wildcard takes the host at Google alone, where it stands for more than one label: it says so."""
    names = {route.hostname for route in load_balancer.routes}
    if host in names or "*." + host.partition(".")[2] in names:
        return False
    return any(name.startswith("*.") and host.endswith(name[1:]) for name in names)


def questions(load_balancer: LoadBalancer) -> Iterator[Question]:
    """Requests over hosts, paths, methods and headers, without those that a wildcard takes at Google alone."""
    hosts = [host for host in HOSTS if not _too_deep(load_balancer, host)]
    ways = (("GET", Protocol.HTTP), ("POST", Protocol.HTTPS))
    for host, path, (method, scheme), headers in product(hosts, PATHS, ways, HEADERS):
        yield Question(host, path, method, scheme, headers)


def _answers_as_our_precedence(load_balancer: LoadBalancer) -> None:
    maps = {each.protocol: url_map("stk-3", load_balancer, each).body for each in load_balancer.listeners}
    for question in questions(load_balancer):
        assert evaluate(maps[question.scheme], question) == _expected(load_balancer, question), question


@examples(few=15, many=150)
def test_every_request_is_answered_as_our_precedence_says(count: int, *, repeatable: bool) -> None:
    always(_answers_as_our_precedence, google_fronts(), count=count, repeatable=repeatable)


def test_a_prefix_is_made_of_whole_segments() -> None:
    shop = front(route(1, path="/a"))
    answers = [_answer(shop, listener(1), Question("a.example", path)) for path in ("/a", "/a/", "/a/b", "/ab", "/A")]
    assert [bool(answer.pools) for answer in answers] == [True, True, True, False, False]


def test_an_exact_host_falls_through_to_its_wildcard() -> None:
    shop = front(route(1, "b.a.example", "/x"), route(2, "*.a.example", "/", pools=(WeightedPool("pool-2", 1),)))
    assert _answer(shop, listener(1), Question("b.a.example", "/y")).pools == (Share("pool-2", 1.0),)


def test_what_a_host_takes_itself_is_not_said_again_for_its_wildcard() -> None:
    shop = front(route(1, "b.a.example", "/"), *(route(number, "*.a.example", f"/{number}") for number in range(2, 50)))
    matchers = url_map("stk-3", shop, listener(1)).body["path_matcher"]
    assert sorted(len(each["route_rules"]) for each in matchers) == [1, 48]


def test_a_redirect_to_https_is_said_in_maps_of_http_alone() -> None:
    shop = front(route(1, redirect=Redirect(301, scheme="https", path="/new")))
    secure = listener(2, protocol=Protocol.HTTPS)
    asked = Question("a.example:8080", "/old?q=1", scheme=Protocol.HTTP)
    assert _answer(shop, listener(1), asked).location == "https://a.example/new?q=1"
    assert "https_redirect" not in str(url_map("stk-3", shop, secure).body)


def test_a_rewritten_prefix_is_replaced_as_a_whole() -> None:
    shop = front(route(1, path="/v1", prefix_rewrite="/"), route(2, path="/", prefix_rewrite="/all"))
    paths = {path: _answer(shop, listener(1), Question("a.example", path)).path for path in ("/v1", "/v1/x?q", "/z")}
    assert paths == {"/v1": "/", "/v1/x?q": "/x?q", "/z": "/all/z"}


def test_a_fixed_response_is_its_status() -> None:
    shop = front(route(1, fixed_response=FixedResponse(503)))
    assert _answer(shop, listener(1), Question("a.example")) == Outcome(status=503)


def test_a_request_without_a_route_goes_to_the_default_pool_or_is_answered_404() -> None:
    shop = front(route(1, path="/a"))
    for host in ("a.example", "other.example"):
        assert _answer(shop, listener(1), Question(host, "/b")) == Outcome(status=404)
        with_default = _answer(shop, listener(1, default_pool_id="pool-9"), Question(host, "/b"))
        assert with_default.pools == (Share("pool-9", 1.0),)


def test_a_wildcard_takes_deeper_hosts_at_google_and_that_is_said() -> None:
    wild = route(1, "*.a.example")
    assert _answer(front(wild), listener(1), Question("x.y.a.example")).pools
    assert [each.code for each in unsupported_in_route(wild, front(wild))] == ["wildcard_depth"]


# --- the evaluator itself: it must be able to say no


def test_the_evaluator_sees_a_prefix_that_is_not_cut_at_a_segment() -> None:
    body = dict(url_map("stk-3", front(route(1, path="/a")), listener(1)).body)
    body["path_matcher"][0]["route_rules"][0]["match_rules"] = [{"prefix_match": "/a"}]
    assert evaluate(body, Question("a.example", "/ab")).pools


def test_the_evaluator_sees_rules_in_the_wrong_order() -> None:
    shop = front(route(1, path="/"), route(2, path="/a", pools=(WeightedPool("pool-2", 1),)))
    body = url_map("stk-3", shop, listener(1)).body
    rules = body["path_matcher"][0]["route_rules"]
    rules[0]["priority"], rules[1]["priority"] = rules[1]["priority"], rules[0]["priority"]
    assert evaluate(body, Question("a.example", "/a")).pools != _expected(shop, Question("a.example", "/a")).pools


@pytest.mark.parametrize(
    "condition",
    [
        {"header_name": "x", "regex_match": "a"},
        {"header_name": "x"},
        {"header_name": "x", "exact_match": "a", "present_match": True},
    ],
)
def test_the_evaluator_refuses_what_google_refuses(condition: dict[str, object]) -> None:
    body = url_map("stk-3", front(route(1)), listener(1)).body
    body["path_matcher"][0]["route_rules"][0]["match_rules"][0]["header_matches"] = [condition]
    with pytest.raises(AssertionError):
        evaluate(body, Question("a.example", "/", headers={"x": "a"}))


def test_the_evaluator_takes_the_exact_host_then_the_longest_wildcard() -> None:
    shop = front(
        route(1, "*.a.example", pools=(WeightedPool("pool-1", 1),)),
        route(2, "*.b.a.example", pools=(WeightedPool("pool-2", 1),)),
        route(3, "x.b.a.example", path="/", path_kind=PathKind.PREFIX, pools=(WeightedPool("pool-3", 1),)),
    )
    found = {
        host: _answer(shop, listener(1), Question(host)).pools
        for host in ("y.a.example", "y.b.a.example", "x.b.a.example")
    }
    assert [shares[0].pool_id for shares in found.values()] == ["pool-1", "pool-2", "pool-3"]


@pytest.mark.parametrize("seed", range(2))
def test_suffixes_any_host_and_queries_become_rules_that_choose_as_the_reference(seed: int) -> None:
    """Without hostnames for one label, which Google takes for any number of them."""
    drawn = rich_crowd(seed, 400)
    routes = tuple(
        replace(each, fixed_response=None, pools=(WeightedPool(f"pool-{number_of(each.id)}", 1),))
        for each in drawn.routes
        if not each.hostname.startswith("*.") and not any(found.refused for found in unsupported_conditions(each))
    )
    shop = front(*routes)
    assert len(routes) > 15
    for host, path, headers in product(RICH_ASKED_HOSTS, RICH_ASKED_PATHS, RICH_ASKED_HEADERS):
        asked = Question(host, path, scheme=Protocol.HTTP, headers=headers)
        assert _answer(shop, listener(1), asked) == _expected(shop, asked), asked
