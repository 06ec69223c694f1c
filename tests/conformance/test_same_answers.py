"""The same routes give the same answers on every target, or the target said before that they would not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from apps.compiler.compile import Compilation, compile_snapshot, compile_stack
from apps.compiler.model.shared import Finding, Server
from apps.compiler.model.stack import Cloud, CloudBackend, CloudPool, Network, StackSnapshot
from apps.compiler.portability.incompatibilities import Target
from apps.compiler.portability.report import portability
from apps.compiler.questions.trace import trace
from apps.compiler.targets.terraform.document import StackDocument, terraform_name
from tests.conformance import alb_rules, google_url_map
from tests.conformance.same_answers import LOAD_BALANCER, REFUSED, REQUESTS, Answer, Request
from tests.e2e.rendered_proxy import RenderedProxy, echo_servers, running
from tests.pure import aws_fixtures
from tests.pure.compiler_fixtures import pool, server, snapshot

pytestmark = pytest.mark.e2e

NUMBERS = (1, 2, 3)
ASKED = 300
DEVIATIONS = 6
NETWORK = Network("vpc", ("subnet-a", "subnet-b"), zones=(("eu", "europe-west3-a"),))


def _cloud_pools() -> tuple[CloudPool, ...]:
    return tuple(aws_fixtures.pool(number) for number in NUMBERS)


def _stack(cloud: Cloud) -> StackSnapshot:
    return StackSnapshot(
        "stk-3", "stack", cloud, "region", "eu", network=NETWORK, load_balancers=(LOAD_BALANCER,), pools=_cloud_pools()
    )


@dataclass(frozen=True, slots=True)
class Asker:
    """A target that can be asked; `refused` and `warnings` are what compiling for it said."""

    ask: Callable[[Request], Answer]
    refused: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    exact: bool = True


def _ask_reference(request: Request) -> Answer:
    told = trace(LOAD_BALANCER, request.question)
    return Answer(tuple((each.pool_id, each.part) for each in told.pools), told.path, told.status, told.location)


def _aws() -> Asker:
    compilation = compile_stack(_stack(Cloud.AWS))
    owner = {backend.id: pool.id for pool in _cloud_pools() for backend in pool.backends}

    def ask(request: Request) -> Answer:
        listener = terraform_name(request.listener)
        told = alb_rules.evaluate(compilation.output, listener, request.question)
        shares: dict[str, float] = {}
        for backend, part in told.shares:
            shares[owner[backend]] = shares.get(owner[backend], 0) + part
        return Answer(tuple(shares.items()), told.path, told.status, told.location)

    return _asker(ask, compilation)


def _google() -> Asker:
    compilation = compile_stack(_stack(Cloud.GOOGLE))
    maps = compilation.output.resources["google_compute_url_map"]

    def ask(request: Request) -> Answer:
        told = google_url_map.evaluate(maps[terraform_name(request.listener)], request.question)
        shares = tuple((each.pool_id, each.part) for each in told.pools)
        return Answer(shares, told.path, told.status, told.location)

    return _asker(ask, compilation)


def _asker(ask: Callable[[Request], Answer], compilation: Compilation[StackDocument]) -> Asker:
    return Asker(ask, compilation.left_out, compilation.warnings)


@dataclass(frozen=True, slots=True)
class _Haproxy:
    """A running HAProxy; `owner` says which pool answers on which port."""

    proxy: RenderedProxy
    owner: Mapping[int, str]

    def ask(self, request: Request) -> Answer:
        """A request that is shared among pools is asked often."""
        counts: Counter[str] = Counter()
        path = ""
        for _ in range(ASKED if len(request.answer.pools) > 1 else 1):
            told = self.proxy.ask(request.listener, request.host, request.path, request.method, request.headers)
            if "x-echo-port" not in told.headers:
                return Answer(status=told.status, location=told.headers.get("location"))
            counts[self.owner[int(told.headers["x-echo-port"])]] += 1
            path = told.headers["x-echo-path"]
        return Answer(tuple((pool_id, count / counts.total()) for pool_id, count in counts.items()), path)


@pytest.fixture(scope="module")
def askers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Asker]]:
    with echo_servers(len(NUMBERS)) as ports:
        servers = {number: _local(number, port) for number, port in zip(NUMBERS, ports, strict=True)}
        pools = tuple(pool(number, servers=(each,)) for number, each in servers.items())
        compilation = compile_snapshot(snapshot(LOAD_BALANCER, pools=pools, local_development=True))
        with running(compilation.output, tmp_path_factory.mktemp("proxy")) as proxy:
            haproxy = _Haproxy(proxy, {each.port: f"pool-{number}" for number, each in servers.items()})
            yield {
                "reference": Asker(_ask_reference, (), ()),
                Target.HAPROXY: Asker(haproxy.ask, compilation.left_out, compilation.warnings, exact=False),
                Target.AWS: _aws(),
                Target.GOOGLE: _google(),
            }


def _local(number: int, port: int) -> Server:
    return server(number, address="127.0.0.1", port=port)


@pytest.mark.parametrize("target", ["reference", *Target])
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.name)
def test_a_request_is_answered_alike_everywhere(target: str, request_: Request, askers: Mapping[str, Asker]) -> None:
    asker = askers[target]
    winner = trace(LOAD_BALANCER, request_.question).winner
    refusal = REFUSED.get(Target(target), {}).get(winner.id) if winner and target != "reference" else None
    if refusal is not None:
        assert winner is not None
        assert refusal in {each.code for each in asker.refused if each.object_id == winner.id}
        return
    expected = request_.answer
    if target in request_.differs:
        object_id, code, expected = request_.differs[Target(target)]
        assert (object_id, code) in {(each.object_id, each.code) for each in asker.warnings}
    _compare(asker.ask(request_), expected, exact=asker.exact)


def _compare(answer: Answer, expected: Answer, *, exact: bool) -> None:
    assert (answer.status, answer.location) == (expected.status, expected.location)
    assert answer.path == expected.path
    found, wanted = dict(answer.pools), dict(expected.pools)
    assert set(found) == set(wanted)
    for pool_id, part in wanted.items():
        air = 1e-9 if exact else DEVIATIONS * math.sqrt(part * (1 - part) / ASKED)
        assert abs(found[pool_id] - part) <= air, pool_id


@pytest.mark.parametrize("target", list(Target))
def test_a_target_refuses_exactly_these_routes(target: Target, askers: Mapping[str, Asker]) -> None:
    assert {each.object_id: each.code for each in askers[target].refused} == REFUSED[target]


def test_portability_lists_exactly_what_compiling_says(askers: Mapping[str, Asker]) -> None:
    listed = portability(LOAD_BALANCER, _cloud_pools())
    assert not [each for each in listed if each.target is Target.HAPROXY]
    for target in (Target.AWS, Target.GOOGLE):
        incompatibilities = [each for each in listed if each.target is target]
        asker = askers[target]
        assert {each.finding for each in incompatibilities if each.refused} == set(asker.refused)
        assert {each.finding for each in incompatibilities if not each.refused} == set(asker.warnings)


def test_there_are_many_requests_and_every_route_is_asked() -> None:
    assert len(REQUESTS) >= 60
    won = {winner.id for each in REQUESTS if (winner := trace(LOAD_BALANCER, each.question).winner)}
    assert won == {route.id for route in LOAD_BALANCER.routes}


def test_the_comparison_notices_a_wrong_pool_share_path_status_and_location() -> None:
    right = Answer((("pool-1", 0.2), ("pool-2", 0.8)), "/")
    wrong = (
        Answer((("pool-1", 0.8), ("pool-2", 0.2)), "/"),
        Answer((("pool-1", 1.0),), "/"),
        Answer((("pool-1", 0.2), ("pool-2", 0.8)), "/x"),
        Answer(status=404),
    )
    _compare(right, right, exact=True)
    for each in wrong:
        for exact in (True, False):
            with pytest.raises(AssertionError):
                _compare(each, right, exact=exact)
    with pytest.raises(AssertionError):
        _compare(Answer(status=301, location="http://a/"), Answer(status=301, location="http://b/"), exact=True)


def test_pools_in_several_regions_share_by_the_products_of_weights() -> None:
    two = CloudPool(
        "pool-1", "pool", "acme", aws_fixtures.pool(1).protocol,
        backends=(CloudBackend("bkd-1", "eu", weight=3), CloudBackend("bkd-9", "us", weight=1)),
    )  # fmt: skip
    env = aws_fixtures.stack(LOAD_BALANCER, pools=(two, *_cloud_pools()[1:]))
    split = next(each for each in REQUESTS if (each.host, each.path) == ("split.example", "/"))
    told = alb_rules.evaluate(compile_stack(env).output, "lst_1", split.question)
    assert dict(told.shares) == pytest.approx({"bkd-1": 0.15, "bkd-9": 0.05, "bkd-2": 0.8})
