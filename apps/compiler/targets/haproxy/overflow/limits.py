"""Limits, orders and shares as maps, so that changing one of them needs no reload.

| map | key | value |
|---|---|---|
| `maps/limits.map` | `pool-17/rgn-1` | `<in 10 s>|<in 1 s>|<in flight>|backend` or `…|server`; empty is no bound |
| `maps/overflow.map` | pool | `spread|rgn-2|rgn-3`: what happens when all are full, then the other regions in order |
| `maps/spread.map` | pool | `500|rgn-1|1000|rgn-2`: a number below 1 000 is drawn, the first higher one wins |

A route that says itself where its overflow may go has entries of its own in the last two (of_routes.py).

A pool stands in them when it has a limit, is scaled down, or has a backend in another region; no other pool pays.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from apps.compiler.limits import Bounds, bounds_of, shares_of, times
from apps.compiler.model.fleet import Pool, RegionShare, Snapshot
from apps.compiler.model.policy import Overflow
from apps.compiler.model.servers import OverflowMode
from apps.compiler.model.shared import LimitKind
from apps.compiler.policies import followed
from apps.compiler.targets.haproxy.maps import Entries

LIMITS_MAP = "maps/limits.map"
ORDER_MAP = "maps/overflow.map"
SPREAD_MAP = "maps/spread.map"


def is_governed(pool: Pool) -> bool:
    """Whether requests to the pool are counted against limits at all."""
    return pool.limit.kind is not LimitKind.NONE or pool.capacity_scaler < 1 or bool(pool.elsewhere)


def limit_maps(snapshot: Snapshot) -> dict[str, Entries]:
    """The three maps by their paths."""
    pools = [pool for pool in snapshot.pools if is_governed(pool)]
    limits: Entries = {}
    for pool in pools:
        limits[f"{pool.id}/{snapshot.region_id}"] = _word(bounds_of(pool.limit, pool.capacity_scaler))
        for share in pool.elsewhere:
            bounds = times(bounds_of(share.limit, share.capacity_scaler), share.ready_servers)
            limits[f"{pool.id}/{share.region_id}"] = _word(bounds)
    orders = {pool.id: "|".join((pool.when_full, *(share.region_id for share in pool.elsewhere))) for pool in pools}
    spreads = {pool.id: spread for pool in pools if (spread := _spread(pool, snapshot.region_id))}
    by_id = {pool.id: pool for pool in pools}
    for (pool_id, rules), said in orders_of_routes(snapshot).items():
        if pool_id in by_id:
            pool = replace(by_id[pool_id], elsewhere=narrowed(by_id[pool_id], said))
            key = f"{pool_id}/{rules}"
            orders[key] = "|".join((pool.when_full, *(share.region_id for share in pool.elsewhere), ""))
            if spread := _spread(pool, snapshot.region_id):
                spreads[key] = spread
    return {LIMITS_MAP: limits, ORDER_MAP: orders, SPREAD_MAP: spreads}


def orders_of_routes(snapshot: Snapshot) -> dict[tuple[str, str], Overflow]:
    """What routes say, by the pool that they lead to and the id of their rules."""
    said = {
        one.id: one.rules.overflow for each in snapshot.load_balancers for one in followed(each) if one.rules.overflow
    }
    routes = (route for each in snapshot.load_balancers if said for route in each.routes if route.rule_set in said)
    return {(share.pool_id, route.rule_set): said[route.rule_set] for route in routes for share in route.pools}


def narrowed(pool: Pool, said: Overflow) -> tuple[RegionShare, ...]:
    """The other regions to which requests of such a route may go at this pool, in their order."""
    if said.mode == OverflowMode.NEVER:
        return ()
    shares = {share.region_id: share for share in pool.elsewhere}
    first = [shares[region] for region in said.order or () if region in shares]
    if said.mode == OverflowMode.LISTED:
        return tuple(first)
    return (*first, *(share for share in pool.elsewhere if share not in first))


def _word(bounds: Bounds) -> str:
    numbers = ("" if each is None else str(each) for each in (bounds.long, bounds.short, bounds.in_flight))
    return "|".join((*numbers, "server" if bounds.per_server else "backend"))


def _spread(pool: Pool, region_id: str) -> str:
    shares = shares_of(pool, region_id)
    return "|".join(f"{reached}|{region}" for region, reached in zip(shares, accumulate(shares.values()), strict=True))
