"""The precedence of routes against a real HAProxy: the rendered bundle answers what the reference says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from apps.compiler.checks.snapshot import examine
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import ClientAddress
from apps.compiler.model.policy import Rules, SecurityHeaders
from apps.compiler.model.shared import (
    FixedResponse,
    LoadBalancer,
    PathKind,
    Protocol,
    Redirect,
    Route,
    ValueCondition,
    ValueMatch,
)
from apps.compiler.policies import rule_set
from apps.compiler.routing import winning_route
from tests.e2e.rendered_proxy import running
from tests.pure.compiler_fixtures import (
    ASKED_HEADERS,
    ASKED_HOSTS,
    ASKED_METHODS,
    ASKED_PATHS,
    HOSTS,
    PATHS,
    RICH_ASKED_HEADERS,
    RICH_ASKED_HOSTS,
    RICH_ASKED_PATHS,
    crowd,
    front,
    listener,
    rich_crowd,
    route,
    snapshot,
)

pytestmark = pytest.mark.e2e

CONDITIONS: tuple[tuple[ValueCondition, ...], ...] = (
    (),
    (),
    (ValueCondition("X-Canary", ValueMatch.EQUALS, "yes"),),
    (ValueCondition("X-Canary", ValueMatch.PRESENT), ValueCondition("X-Beta", ValueMatch.ABSENT)),
)


def _crowded_front(seed: int) -> LoadBalancer:
    """Thirty routes that answer with their own id, on few hosts and paths, so that they get in each other's way."""
    dice = random.Random(seed)
    return front(*(_random_route(dice, number) for number in range(1, 31)))


def _random_route(dice: random.Random, number: int) -> Route:
    return route(
        number,
        dice.choice(HOSTS),
        dice.choice(PATHS),
        path_kind=dice.choice((PathKind.EXACT, PathKind.PREFIX)),
        methods=dice.choice([(), (), ("GET",), ("POST", "PUT")]),
        headers=dice.choice(CONDITIONS),
        fixed_response=FixedResponse(200, body=f"route-{number}"),
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_haproxy_chooses_the_route_that_the_reference_chooses(seed: int, tmp_path: Path) -> None:
    env = snapshot(_crowded_front(seed))
    accepted = examine(env).accepted.load_balancers[0]
    with running(compile_snapshot(env).output, tmp_path) as proxy:
        for host, path, method, headers in product(ASKED_HOSTS, ASKED_PATHS, ASKED_METHODS, ASKED_HEADERS):
            winner = winning_route(accepted, host, path, method, headers)
            answer = proxy.ask("lst-1", host, path, method, headers)
            asked = (host, path, method, headers)
            assert (answer.status, answer.body if winner else None) == ((200, winner.id) if winner else (404, None)), (
                asked
            )


@pytest.mark.parametrize("seed", [1, 2])
def test_haproxy_chooses_the_same_route_where_routes_ask_for_everything(seed: int, tmp_path: Path) -> None:
    definitions = snapshot(rich_crowd(seed))
    accepted = examine(definitions).accepted.load_balancers[0]
    winners = Counter[str]()
    with running(compile_snapshot(definitions).output, tmp_path) as proxy:
        for host, path, headers in product(RICH_ASKED_HOSTS, RICH_ASKED_PATHS, RICH_ASKED_HEADERS):
            winner = winning_route(accepted, host, path, "GET", headers, client="127.0.0.1")
            answer = proxy.ask("lst-1", host, path, "GET", headers)
            asked = (host, path, headers)
            assert (answer.status, answer.body if winner else None) == ((200, winner.id) if winner else (404, None)), (
                asked
            )
            winners[winner.id if winner else ""] += 1
    assert len(winners) > 15


@pytest.mark.parametrize("crowded", [crowd, rich_crowd])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_proxy_that_is_trusted_says_of_which_scheme_a_request_is(
    trusted: bool, crowded: Callable[[int], LoadBalancer], tmp_path: Path
) -> None:
    dice = random.Random(3)
    routes = [replace(each, scheme=dice.choice([None, "http", "https"])) for each in crowded(3).routes]
    proxies = ClientAddress(forwarded_from=("127.0.0.1/32" if trusted else "127.0.0.2/32",))
    definitions = snapshot(front(*routes, listeners=(listener(1, client_address=proxies),)))
    accepted = examine(definitions).accepted.load_balancers[0]
    winners = Counter[str]()
    with running(compile_snapshot(definitions).output, tmp_path) as proxy:
        for host, path, told in product(RICH_ASKED_HOSTS, RICH_ASKED_PATHS, (Protocol.HTTP, Protocol.HTTPS)):
            headers = {"X-Forwarded-Proto": told.value, "X-Forwarded-For": "10.1.2.3"}
            client, scheme = ("10.1.2.3", told) if trusted else ("127.0.0.1", Protocol.HTTP)
            winner = winning_route(accepted, host, path, "GET", {}, scheme, client)
            answer = proxy.ask("lst-1", host, path, "GET", headers)
            asked = (host, path, told)
            assert (answer.status, answer.body if winner else None) == ((200, winner.id) if winner else (404, None)), (
                asked
            )
            winners[winner.id if winner else ""] += 1
    assert len(winners) > 3


def test_redirects_and_headers_say_the_scheme_that_a_trusted_proxy_names(tmp_path: Path) -> None:
    rules = rule_set(Rules(security_headers=SecurityHeaders(hsts_seconds=60)))
    routes = (
        route(1, "a.example", "/old", redirect=Redirect(302, path="/new")),
        route(2, "a.example", scheme="http", redirect=Redirect(308, "https")),
        route(3, "a.example", scheme="https", fixed_response=FixedResponse(200), rule_set=rules.id),
    )
    proxies = ClientAddress(forwarded_from=("127.0.0.1/32",))
    served = front(*routes, listeners=(listener(1, client_address=proxies),))
    definitions = snapshot(replace(served, rule_sets=(rules,)))
    with running(compile_snapshot(definitions).output, tmp_path) as proxy:
        secure, plain = {"X-Forwarded-Proto": "https"}, {"X-Forwarded-Proto": "http"}
        assert proxy.ask("lst-1", "a.example", "/old", headers=secure).headers["location"] == "https://a.example/new"
        assert proxy.ask("lst-1", "a.example", "/old", headers=plain).headers["location"] == "http://a.example/new"
        assert proxy.ask("lst-1", "a.example", "/", headers=plain).headers["location"] == "https://a.example/"
        answer = proxy.ask("lst-1", "a.example", "/", headers=secure)
        assert (answer.status, answer.headers["strict-transport-security"]) == (200, "max-age=60")
        assert proxy.ask("lst-1", "a.example", "/").headers["location"] == "https://a.example/"
