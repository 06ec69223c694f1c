"""The precedence of routes against a real HAProxy: the rendered bundle answers what the reference says."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from apps.compiler.checks.snapshot import examine
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import FixedResponse, HeaderCondition, HeaderMatch, LoadBalancer, PathKind, Route
from apps.compiler.routing import winning_route
from tests.e2e.rendered_proxy import running
from tests.pure.compiler_fixtures import (
    ASKED_HEADERS,
    ASKED_HOSTS,
    ASKED_METHODS,
    ASKED_PATHS,
    HOSTS,
    PATHS,
    front,
    route,
    snapshot,
)

pytestmark = pytest.mark.e2e

CONDITIONS: tuple[tuple[HeaderCondition, ...], ...] = (
    (),
    (),
    (HeaderCondition("X-Canary", HeaderMatch.EQUALS, "yes"),),
    (HeaderCondition("X-Canary", HeaderMatch.PRESENT), HeaderCondition("X-Beta", HeaderMatch.ABSENT)),
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
        path_kind=dice.choice(list(PathKind)),
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
