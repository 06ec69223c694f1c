"""Limits: what a backend may take as the numbers that a proxy counts against; pure arithmetic.

A rate is kept in two windows at once, because each alone fails (measured, see ADR 0010): a long one admits the bursts
of ordinary traffic but also several seconds' worth after a quiet time, a short one does neither. The short one allows
the mean and three standard deviations of a Poisson stream, so that small limits get the air that they need and large
ones are kept tightly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, sqrt

from apps.compiler.model.fleet import Pool
from apps.compiler.model.shared import Limit, LimitKind, LimitScope, Server, ServerState

LONG_WINDOW_S = 10
DEVIATIONS = 3
MOST_BURST = 1.5
SHARES = 1000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is counted: requests admitted in the long and in the short window, requests in flight; None is no bound.

    `per_server` says that each number holds for one server and is to be multiplied by those that are up.
    """

    long: int | None = None
    short: int | None = None
    in_flight: int | None = None
    per_server: bool = False

    @property
    def nothing(self) -> bool:
        """Whether the backend takes no traffic at all."""
        return 0 in (self.long, self.in_flight)


NOTHING = Bounds(0, 0, 0)


def bounds_of(limit: Limit, scaler: float) -> Bounds:
    """The numbers of a limit times its capacity scaler; a scaler of 0 takes nothing, whatever the limit."""
    exact = _exact(scaler)
    value = exact * limit.value
    if exact <= 0 or (limit.kind is not LimitKind.NONE and value <= 0):
        return NOTHING
    per_server = limit.scope is LimitScope.SERVER
    if limit.kind is LimitKind.RATE:
        return Bounds(max(1, _rounded(value * LONG_WINDOW_S)), short_bound(value), None, per_server)
    if limit.kind is LimitKind.CONNECTIONS:
        return Bounds(None, None, max(1, _rounded(value)), per_server)
    return Bounds()


def short_bound(per_second: Fraction | int) -> int:
    """Most requests in one second: the mean and three deviations, never more than half as much again; at least one."""
    rate = float(per_second)
    return max(1, ceil(min(rate * MOST_BURST, rate + DEVIATIONS * sqrt(rate))))


def times(bounds: Bounds, servers: int) -> Bounds:
    """A bound per server as one for all of them."""
    if not bounds.per_server:
        return bounds
    if servers == 0:
        return NOTHING
    long, short, in_flight = (
        None if each is None else each * servers for each in (bounds.long, bounds.short, bounds.in_flight)
    )
    return Bounds(long, short, in_flight)


def usable(servers: Iterable[Server]) -> int:
    """How many servers a limit per server counts: primary ones, or backups where there is none, as `nbsrv` does.

    HAProxy also leaves out those that are down, which only it knows.
    """
    backups = [each.backup for each in servers if each.state is ServerState.READY and each.weight > 0]
    return backups.count(False) or len(backups)


def shares_of(pool: Pool, own_region_id: str) -> dict[str, int]:
    """Each region's share of what nobody has room for, in thousandths: by capacity, or alike where kinds differ.

    Empty when no region takes anything.
    """
    own = (own_region_id, pool.limit, pool.capacity_scaler, usable(pool.servers))
    others = ((share.region_id, share.limit, share.capacity_scaler, share.ready_servers) for share in pool.elsewhere)
    taking = [each for each in (own, *others) if each[3] and not bounds_of(each[1], each[2]).nothing]
    kinds = {limit.kind for _, limit, _, _ in taking}
    alike = len(kinds) > 1 or kinds == {LimitKind.NONE}
    weights = [_exact(scaler) * (1 if alike else _value(limit, servers)) for _, limit, scaler, servers in taking]
    parts = _thousandths(weights)
    return {region: part for (region, *_), part in zip(taking, parts, strict=True) if part}


def _value(limit: Limit, servers: int) -> int:
    return limit.value * servers if limit.scope is LimitScope.SERVER else limit.value


def _thousandths(weights: Sequence[Fraction]) -> list[int]:
    """Parts of SHARES that add up to it."""
    whole, reached, sums = sum(weights), Fraction(0), [0]
    for weight in weights:
        reached += weight
        sums.append(_rounded(reached * SHARES / whole))
    return [after - before for before, after in pairwise(sums)]


def slots_per_node(limit: Limit, scaler: float, servers: int, nodes: int) -> int:
    """How many requests one node lets one server have while others queue: its part of the limit, at least one."""
    whole = bounds_of(limit, scaler).in_flight or 1
    each = Fraction(whole) if limit.scope is LimitScope.SERVER else Fraction(whole, max(1, servers))
    return max(1, ceil(each / max(1, nodes)))


def _exact(scaler: float) -> Fraction:
    return Fraction(scaler).limit_denominator(10_000)


def _rounded(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))
