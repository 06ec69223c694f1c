"""A trace against a real HAProxy: the rendered bundle answers, redirects and refuses as the trace says."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from apps.compiler.checks.snapshot import examine
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import FixedResponse, PathKind, Protocol, Redirect, Route, ValueCondition, ValueMatch
from apps.compiler.questions.trace import Question, trace
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

CANARY = (ValueCondition("X-Canary", ValueMatch.EQUALS, "yes"),)
REDIRECTS = (
    Redirect(301, scheme="https"),
    Redirect(302, host="b.example"),
    Redirect(307, path="/there", keep_query=False),
    Redirect(308, scheme="https", host="c.example", path="/x"),
    Redirect(303, port=8443, query="a=1&b=%7C"),
    Redirect(302, scheme="https", port=8443, keep_query=False, query="only"),
    Redirect(302, host="d.example", port=80, query="more"),
    Redirect(301, prefix="/moved/to"),
    Redirect(301, prefix="/", port=443),
)


def _random_route(dice: random.Random, number: int) -> Route:
    """A route that answers by itself: half of them redirect."""
    redirect = dice.choice((None, *REDIRECTS))
    return route(
        number,
        dice.choice(HOSTS),
        dice.choice(PATHS),
        path_kind=PathKind.PREFIX if redirect and redirect.prefix else dice.choice((PathKind.EXACT, PathKind.PREFIX)),
        methods=dice.choice([(), (), ("GET",)]),
        headers=dice.choice([(), (), CANARY]),
        pools=(),
        redirect=redirect,
        fixed_response=None if redirect else FixedResponse(200 + number, body=f"route-{number}"),
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_haproxy_does_what_the_trace_says(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    env = snapshot(front(*(_random_route(dice, number) for number in range(1, 31))))
    accepted = examine(env).accepted.load_balancers[0]
    paths = [*ASKED_PATHS, "/api?x=1", "/api/v2/deep/er?a=b&c"]
    locations = 0
    with running(compile_snapshot(env).output, tmp_path) as proxy:
        for host, path, method, headers in product(ASKED_HOSTS, paths, ASKED_METHODS, ASKED_HEADERS):
            asked = Question(host, path, method, Protocol.HTTP, headers)
            told = trace(accepted, asked)
            answer = proxy.ask("lst-1", host, path, method, headers)
            assert (answer.status, answer.headers.get("location")) == (told.status, told.location), asked
            locations += told.location is not None
    assert locations > 50
