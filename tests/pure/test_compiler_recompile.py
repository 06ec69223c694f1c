"""The short way of the compiler: whatever changes, its bytes are those of the long way."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.compiler import recompile
from apps.compiler.compile import compile_snapshot
from apps.compiler.model import LoadBalancer, PathKind, Redirect, Route, Snapshot, WeightedPool
from apps.compiler.recompile import compile_change
from tests.pure.compiler_worlds import front, fronts, pool, route, snapshot

POOLS = (pool(1), pool(2))


def _plain(drawn: LoadBalancer) -> Snapshot:
    shares = (WeightedPool("pool-1", 1),)
    routes = (replace(each, fixed_response=None, pools=shares, methods=(), headers=()) for each in drawn.routes)
    return snapshot(replace(drawn, routes=tuple(routes)), pools=POOLS)


CHANGES = st.sampled_from(
    [
        {"pools": (WeightedPool("pool-2", 1),)},
        {"pools": (WeightedPool("pool-1", 3), WeightedPool("pool-2", 5))},
        {"pools": (), "redirect": Redirect(302, path="/else")},
        {"path": "/api"},
        {"path": "/moved", "path_kind": PathKind.EXACT},
        {"hostname": "a.example"},
        {"account": "rival"},
        {"methods": ("GET",)},
        {"path": "/bad path"},
        {"pools": (WeightedPool("pool-9", 1),)},
        {"id": "route-77"},
    ]
)


@given(fronts(), CHANGES, st.data())
@settings(max_examples=120, deadline=None)
def test_the_short_way_gives_the_bytes_of_the_long_way(
    drawn: LoadBalancer, change: dict[str, object], data: st.DataObject
) -> None:
    before = _plain(drawn)
    balancer = before.load_balancers[0]
    place = data.draw(st.integers(0, len(balancer.routes) - 1))
    routes = list(balancer.routes)
    routes[place] = replace(routes[place], **change)  # type: ignore[arg-type]  # fields of a route
    after = replace(before, load_balancers=(replace(balancer, routes=tuple(routes)),))
    assert compile_change(compile_snapshot(before), before, after) == compile_snapshot(after)


def test_a_moved_pool_is_compiled_the_short_way() -> None:
    before = snapshot(front(route(1), route(2, path="/x")), pools=POOLS)
    moved: tuple[Route, ...] = (route(1), route(2, path="/x", pools=(WeightedPool("pool-2", 1),)))
    after = snapshot(front(*moved), pools=POOLS)
    files = recompile._patched(
        compile_snapshot(before), "lb-1", list(before.load_balancers[0].routes[1:]), list(moved[1:])
    )
    assert files is not None
    assert files["maps/lb-1-action.map"] == b"route-1 pool-1\nroute-2 pool-2\n"
    assert compile_change(compile_snapshot(before), before, after) == compile_snapshot(after)
