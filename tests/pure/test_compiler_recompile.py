"""The short way of the compiler: whatever changes, its bytes are those of the long way."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import strategies as st

from apps.compiler import recompile
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.policy import ClientLimit, Rules, SecurityHeaders
from apps.compiler.model.shared import LoadBalancer, PathKind, Redirect, Route, WeightedPool
from apps.compiler.policies import rule_set
from apps.compiler.recompile import compile_change
from tests.pure.compiler_fixtures import HOSTS, PATHS, front, fronts, pool, route, snapshot
from tests.pure.properties import always

POOLS = (pool(1), pool(2))


def _plain(drawn: LoadBalancer) -> Snapshot:
    shares = (WeightedPool("pool-1", 1),)
    routes = (
        replace(each, fixed_response=None, pools=shares, methods=(), headers=(), scheme=None) for each in drawn.routes
    )
    return snapshot(replace(drawn, routes=tuple(routes)), pools=POOLS)


CHANGES: tuple[dict[str, object], ...] = (
    {"pools": (WeightedPool("pool-2", 1),)},
    {"pools": (WeightedPool("pool-1", 3), WeightedPool("pool-2", 5))},
    {"pools": (), "redirect": Redirect(302, path="/else")},
    {"path": "/api"},
    {"path": "/moved", "path_kind": PathKind.EXACT},
    {"hostname": "a.example"},
    {"account": "rival"},
    {"methods": ("GET",)},
    {"scheme": "https"},
    {"pools": (), "redirect": Redirect(302, path="/api/v2")},
    {"path": "/bad path"},
    {"pools": (WeightedPool("pool-9", 1),)},
    {"id": "route-77"},
)


def the_short_way_is_the_long_way(before: Snapshot, index: int, change: dict[str, object]) -> None:
    """With this change of one route, both ways of the compiler give the same bytes."""
    balancer = before.load_balancers[0]
    routes = list(balancer.routes)
    routes[index] = replace(routes[index], **change)  # type: ignore[arg-type]  # fields of a route
    after = replace(before, load_balancers=(replace(balancer, routes=tuple(routes)),))
    assert compile_change(compile_snapshot(before), before, after) == compile_snapshot(after)


ALL = tuple(route(number, host, path) for number, (host, path) in enumerate(product(HOSTS, PATHS), 1))
# Some requests for what ALL[1] takes go to this one, by rules in the configuration.
BESIDE = route(90, ALL[1].hostname, ALL[1].path, methods=("GET",))


@pytest.mark.parametrize("routes", [ALL, (*ALL, BESIDE)], ids=["maps alone", "a group"])
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_short_way_gives_the_bytes_of_the_long_way_where_routes_crowd(
    change: dict[str, object], routes: tuple[Route, ...]
) -> None:
    for index in (0, 1, 17):
        the_short_way_is_the_long_way(snapshot(front(*routes), pools=POOLS), index, change)


SETS = tuple(
    rule_set(Rules(security_headers=SecurityHeaders(hsts_seconds=number), client_limit=limit))
    for number, limit in ((1, None), (2, ClientLimit(requests=5)), (3, None))
)


@pytest.mark.parametrize("taken", [SETS[0].id, SETS[1].id, SETS[2].id, ""])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_the_short_way_gives_the_bytes_of_the_long_way_where_rules_hold(index: int, taken: str) -> None:
    """Two routes follow the first rules, one the second, nobody the third."""
    routes = [route(number, path=f"/{number}", rule_set=SETS[number // 3].id) for number in (1, 2, 3)]
    before = snapshot(replace(front(*routes, route(4, path="/4")), rule_sets=SETS), pools=POOLS)
    the_short_way_is_the_long_way(before, index, {"rule_set": taken})


@pytest.mark.exhaustive
def test_the_short_way_gives_the_bytes_of_the_long_way() -> None:
    def law(drawn: LoadBalancer, change: dict[str, object], data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(drawn.routes) - 1))
        the_short_way_is_the_long_way(_plain(drawn), index, change)

    always(law, fronts(), st.sampled_from(CHANGES), st.data(), count=300, repeatable=False)


def test_a_moved_pool_is_compiled_the_short_way() -> None:
    before = snapshot(front(route(1), route(2, path="/x")), pools=POOLS)
    moved: tuple[Route, ...] = (route(1), route(2, path="/x", pools=(WeightedPool("pool-2", 1),)))
    after = snapshot(front(*moved), pools=POOLS)
    balancer = before.load_balancers[0]
    files = recompile._patched(compile_snapshot(before).output, balancer, list(balancer.routes[1:]), list(moved[1:]))
    assert files is not None
    assert files["maps/lb-1-action.map"] == b"route-1 pool-1\nroute-2 pool-2\n"
    assert compile_change(compile_snapshot(before), before, after) == compile_snapshot(after)
