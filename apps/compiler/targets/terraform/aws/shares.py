"""COMPILE for AWS, who gets which part: pools among routes and regions among pools become weights of target groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from apps.compiler.model import Route
from apps.compiler.stacks import CloudBackend, CloudPool
from apps.compiler.targets.terraform.aws.limits import MAX_WEIGHT

WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Share:
    """A backend of a pool and its part of the traffic, 0 to 1."""

    pool: CloudPool
    backend: CloudBackend
    part: Fraction


def shares_of_pool(pool: CloudPool, part: Fraction = WHOLE) -> list[Share]:
    """Each region's share of `part`; without weights all of it goes to the first region that is not drained.

    A pool of which every region is drained keeps its first, whose group then has no targets: it answers 503.
    """
    open_ones = [each for each in pool.backends if each.capacity_scaler > 0]
    whole = sum(each.weight for each in open_ones)
    if whole:
        return [Share(pool, each, part * Fraction(each.weight, whole)) for each in open_ones if each.weight]
    return [Share(pool, each, part) for each in (open_ones or pool.backends)[:1]]


def shares_of_route(route: Route, pools: Mapping[str, CloudPool]) -> list[Share]:
    """Each backend's share of the route's traffic."""
    whole = sum(share.weight for share in route.pools)
    return [
        each
        for share in route.pools
        if share.weight
        for each in shares_of_pool(pools[share.pool_id], Fraction(share.weight, whole))
    ]


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
    return [max(1, (2 * each * MAX_WEIGHT + largest) // (2 * largest)) for each in exact]
