"""Who gets which part for AWS: pools among routes and regions among pools become weights of target groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from apps.compiler.model.shared import Route
from apps.compiler.model.stack import CloudBackend, CloudPool
from apps.compiler.targets.terraform.aws.limits import MAX_WEIGHT, TARGET_GROUPS_PER_ACTION

WHOLE, NOTHING = Fraction(1), Fraction(0)


@dataclass(frozen=True, slots=True)
class Share:
    """A backend of a pool and its part of the traffic, 0 to 1; one with nothing stands by."""

    pool: CloudPool
    backend: CloudBackend
    part: Fraction


def shares_of_pool(pool: CloudPool, part: Fraction = WHOLE) -> list[Share]:
    """Each region's share of `part`; without weights all of it goes to the first region that is not drained.

    Regions without a share stand by with a weight of 0, so that their servers are checked and a move of traffic changes
    weights alone. A pool of which every region is drained keeps its first, which has no targets: it answers 503.
    """
    open_ones = [each for each in pool.backends if each.capacity_scaler > 0]
    whole = sum(each.weight for each in open_ones)
    if whole:
        parts = {each.id: part * Fraction(each.weight, whole) for each in open_ones}
    else:
        parts = {each.id: part for each in (open_ones or pool.backends)[:1]}
    return [Share(pool, each, parts.get(each.id, NOTHING)) for each in pool.backends]


def shares_of_route(route: Route, pools: Mapping[str, CloudPool]) -> list[Share]:
    """Each backend's share of the route's traffic; pools of weight 0 have none, not even one that stands by."""
    whole = sum(share.weight for share in route.pools)
    return [
        each
        for share in route.pools
        if share.weight
        for each in shares_of_pool(pools[share.pool_id], Fraction(share.weight, whole))
    ]


def taking(shares: Iterable[Share]) -> list[Share]:
    """Those that get traffic now."""
    return [share for share in shares if share.part]


def fitting(shares: Sequence[Share]) -> Sequence[Share]:
    """All of them where an action has room for so many, else those that get traffic."""
    return shares if len(shares) <= TARGET_GROUPS_PER_ACTION else taking(shares)


def home_of(pool: CloudPool) -> CloudBackend:
    """The one region that takes all where a target knows no shares: the one with the largest. It has a backend."""
    return max(shares_of_pool(pool), key=lambda share: share.part).backend


def weights_of(parts: Sequence[Fraction]) -> list[int]:
    """Whole numbers from 0 to 999 in the same proportion: exact where such numbers exist, else within a thousandth."""
    common = lcm(*(part.denominator for part in parts))
    exact = [int(part * common) for part in parts]
    shared = gcd(*exact)
    exact = [each // shared for each in exact]
    largest = max(exact)
    if largest <= MAX_WEIGHT:
        return exact
    return [max(1, (2 * each * MAX_WEIGHT + largest) // (2 * largest)) if each else 0 for each in exact]
