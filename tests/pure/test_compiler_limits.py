"""What a limit is counted against: windows, scalers, servers, shares."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from apps.compiler.limits import NOTHING, Bounds, bounds_of, shares_of, short_bound, slots_per_node, times
from apps.compiler.model.fleet import Pool, RegionShare, Snapshot
from apps.compiler.model.shared import Limit, LimitKind, LimitScope, Protocol, Server, ServerState
from apps.compiler.targets.haproxy.overflow.limits import ORDER_MAP, limit_maps

RATE, FLIGHT, NONE = LimitKind.RATE, LimitKind.CONNECTIONS, LimitKind.NONE
POOL = Pool("pool-1", "acme/shop", "acme", Protocol.HTTP, servers=(Server("srv-1", "s", "192.0.2.1", 80),))


def test_a_rate_is_kept_in_ten_seconds_and_in_one() -> None:
    assert bounds_of(Limit(RATE, 10), 1.0) == Bounds(long=100, short=15)
    assert bounds_of(Limit(RATE, 100), 1.0) == Bounds(long=1000, short=130)
    assert bounds_of(Limit(RATE, 5000), 1.0) == Bounds(long=50_000, short=5213)


def test_a_scaler_scales_exactly() -> None:
    assert bounds_of(Limit(RATE, 10), 0.1) == Bounds(long=10, short=2)
    assert bounds_of(Limit(FLIGHT, 10), 0.3) == Bounds(in_flight=3)


def test_nothing_is_admitted_by_a_limit_or_a_scaler_of_zero() -> None:
    assert bounds_of(Limit(RATE, 0), 1.0) == NOTHING
    assert bounds_of(Limit(), 0.0) == NOTHING
    assert NOTHING.nothing


def test_no_limit_bounds_nothing() -> None:
    assert bounds_of(Limit(), 0.5) == Bounds()
    assert not Bounds().nothing


def test_a_limit_per_server_is_multiplied_by_those_that_are_ready() -> None:
    bounds = bounds_of(Limit(RATE, 4, LimitScope.SERVER), 1.0)
    assert times(bounds, 3) == Bounds(long=120, short=18)
    assert times(bounds, 0) == NOTHING
    assert times(Bounds(long=40, short=6), 3) == Bounds(long=40, short=6)


@given(st.integers(1, 1_000_000))
def test_the_short_window_allows_more_than_the_mean_and_never_more_than_half_as_much_again(rate: int) -> None:
    assert rate < short_bound(rate) <= max(2, rate * 1.5 + 1)


@given(st.integers(1, 100_000))
def test_a_larger_limit_never_allows_less(rate: int) -> None:
    assert short_bound(rate) <= short_bound(rate + 1)


def elsewhere(*shares: RegionShare) -> Pool:
    """A pool with a limit of 10 at home."""
    return replace(POOL, limit=Limit(RATE, 10), elsewhere=shares)


def test_what_nobody_has_room_for_is_shared_by_capacity() -> None:
    pool = elsewhere(RegionShare("rgn-2", Limit(RATE, 30), 1.0, 3))
    assert shares_of(pool, "rgn-1") == {"rgn-1": 250, "rgn-2": 750}


def test_regions_that_take_nothing_get_no_share() -> None:
    pool = elsewhere(RegionShare("rgn-2", Limit(RATE, 30), 0.0, 3), RegionShare("rgn-3", Limit(RATE, 30), 1.0, 0))
    assert shares_of(pool, "rgn-1") == {"rgn-1": 1000}


def test_a_region_without_usable_servers_gets_no_share_and_a_drained_server_adds_none() -> None:
    gone, here = replace(POOL.servers[0], state=ServerState.DRAIN), POOL.servers[0]
    pool = replace(
        elsewhere(RegionShare("rgn-2", Limit(RATE, 10, LimitScope.SERVER), 1.0, 1)),
        limit=Limit(RATE, 10, LimitScope.SERVER),
    )
    assert shares_of(replace(pool, servers=(gone,)), "rgn-1") == {"rgn-2": 1000}
    assert shares_of(replace(pool, servers=(gone, here)), "rgn-1") == {"rgn-1": 500, "rgn-2": 500}


def test_limits_that_cannot_be_compared_share_alike() -> None:
    pool = elsewhere(RegionShare("rgn-2", Limit(FLIGHT, 30), 1.0, 3), RegionShare("rgn-3", Limit(), 1.0, 3))
    assert shares_of(pool, "rgn-1") == {"rgn-1": 333, "rgn-2": 334, "rgn-3": 333}


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=7))
def test_shares_add_up_to_the_whole(values: list[int]) -> None:
    others = tuple(RegionShare(f"rgn-{n}", Limit(RATE, value), 1.0, 1) for n, value in enumerate(values, 2))
    assert sum(shares_of(elsewhere(*others), "rgn-1").values()) == 1000


def test_each_node_lets_its_part_through_while_others_queue() -> None:
    assert slots_per_node(Limit(FLIGHT, 12), 1.0, servers=3, nodes=2) == 2
    assert slots_per_node(Limit(FLIGHT, 8, LimitScope.SERVER), 0.5, servers=3, nodes=2) == 2
    assert slots_per_node(Limit(FLIGHT, 1), 1.0, servers=3, nodes=4) == 1


def test_overflow_goes_to_other_regions_in_the_order_of_the_pool() -> None:
    pool = elsewhere(RegionShare("rgn-3"), RegionShare("rgn-2"))
    orders = limit_maps(Snapshot("us", "us", (), (pool,), region_id="rgn-1"))[ORDER_MAP]
    assert orders == {"pool-1": f"{pool.when_full}|rgn-3|rgn-2"}
