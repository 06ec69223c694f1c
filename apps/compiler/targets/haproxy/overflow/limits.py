"""Limits, orders and shares as maps, so that changing one of them needs no reload.

| map | key | value |
|---|---|---|
| `maps/limits.map` | `pool-17/rgn-1` | `<in 10 s>|<in 1 s>|<in flight>|backend` or `…|server`; empty is no bound |
| `maps/overflow.map` | pool | `spread|rgn-2|rgn-3`: what happens when all are full, then the other regions in order |
| `maps/spread.map` | pool | `500|rgn-1|1000|rgn-2`: a number below 1 000 is drawn, the first higher one wins |

A pool stands in them when it has a limit, is scaled down, or has a backend in another region; no other pool pays.
"""

from __future__ import annotations

from itertools import accumulate

from apps.compiler.limits import Bounds, bounds_of, shares_of, times
from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.model.shared import LimitKind
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
    return {LIMITS_MAP: limits, ORDER_MAP: orders, SPREAD_MAP: spreads}


def _word(bounds: Bounds) -> str:
    numbers = ("" if each is None else str(each) for each in (bounds.long, bounds.short, bounds.in_flight))
    return "|".join((*numbers, "server" if bounds.per_server else "backend"))


def _spread(pool: Pool, region_id: str) -> str:
    shares = shares_of(pool, region_id)
    return "|".join(f"{reached}|{region}" for region, reached in zip(shares, accumulate(shares.values()), strict=True))
