"""The precedence of routes against a real HAProxy: the rendered bundle answers what the reference says."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from apps.compiler.checks.snapshot import examine
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import FixedResponse, LoadBalancer, PathKind, Route, ValueCondition, ValueMatch
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
    front,
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
