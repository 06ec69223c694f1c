"""Whether the servers of a pool share the work: requests per server over minutes, worst against best.

Within one region each server should get the share that its weight asks for. The verdict needs enough requests to be
more than chance: a share is uneven when the busiest server gets at least half more of its due share than the idlest,
and the counts scatter more than independent choices would (chi squared).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sqrt

from django.db.models import QuerySet, Sum

from apps.accounts.actors import Actor
from apps.capacity.use.sizing import pool_of, servers_of
from apps.core.clock import now
from apps.definitions.models import Server
from apps.observe.collect.buckets import LONG, SHORT
from apps.observe.models import Sample

UNEVEN = 1.5
FEWEST = 50
KEPT_SHORT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Work:
    """What one server did: requests counted in the time, errors, its weight."""

    server: str
    requests: int
    errors: int = 0
    weight: int = 100


@dataclass(frozen=True, slots=True)
class Share:
    """One server's share of its region: of the requests, and what its weight asks for (0–1); `ratio` of the two."""

    server: str
    requests: int
    share: float
    due: float
    error_rate: float

    @property
    def ratio(self) -> float:
        """1 is exactly its due, 2 twice as much."""
        return self.share / self.due if self.due else 0.0


@dataclass(frozen=True, slots=True)
class Balance:
    """One region of a pool; `status` is even, uneven or unknown; `spread` is the busiest against the idlest, by due."""

    region: str
    status: str
    message: str
    shares: tuple[Share, ...] = ()
    spread: float | None = None
    requests: int = 0


def evaluate_balance(region: str, work: Sequence[Work]) -> Balance:
    """The verdict on one region's servers; those with a weight of 0 are not meant to work and are left out."""
    meant = [each for each in work if each.weight > 0]
    total, weights = sum(each.requests for each in meant), sum(each.weight for each in meant)
    if len(meant) < 2:
        return Balance(region, "unknown", "There is only one server.", requests=total)
    shares = tuple(_share(each, total, weights) for each in meant)
    if total < FEWEST:
        return Balance(region, "unknown", f"{total} requests are too few to compare.", shares, None, total)
    busiest, idlest = max(shares, key=lambda s: s.ratio), min(shares, key=lambda s: s.ratio)
    spread = busiest.ratio / idlest.ratio if idlest.requests else None
    chance = _by_chance(shares, total)
    uneven = not chance and (spread is None or spread >= UNEVEN)
    message = _sentence(busiest, idlest, spread, len(shares), uneven=uneven)
    return Balance(region, "uneven" if uneven else "even", message, shares, spread, total)


def _share(each: Work, total: int, weights: int) -> Share:
    errors = min(1.0, each.errors / each.requests) if each.requests else 0.0
    return Share(each.server, each.requests, each.requests / total if total else 0.0, each.weight / weights, errors)


def _by_chance(shares: Sequence[Share], total: int) -> bool:
    """Whether independent choices scatter so much in one of a hundred cases (chi squared, Wilson and Hilferty)."""
    found = sum((share.requests - total * share.due) ** 2 / (total * share.due) for share in shares)
    freedom = len(shares) - 1
    critical = freedom * (1 - 2 / (9 * freedom) + 2.326 * sqrt(2 / (9 * freedom))) ** 3
    return found < critical


def _sentence(busiest: Share, idlest: Share, spread: float | None, servers: int, *, uneven: bool) -> str:
    between = (
        f"{busiest.server} got {100 * busiest.share:.0f} % of the requests, {idlest.server} {100 * idlest.share:.0f} %"
    )
    if not uneven:
        return f"{servers} servers share the load: {between}."
    by = f"{spread:.1f} times as much" if spread is not None else "everything, the other nothing"
    return f"{between}; for its weight the busiest got {by}. Look at the balance rule and at connection reuse."


def balance(actor: Actor, pool_id: int, *, minutes: int = 10, until: datetime | None = None) -> list[Balance]:
    """The verdict per region over the `minutes` before `until` (now). Raises NotFound; three queries."""
    return balance_of(servers_of(pool_of(actor, pool_id)), minutes=minutes, until=until)


def balance_of(servers: Sequence[Server], *, minutes: int = 10, until: datetime | None = None) -> list[Balance]:
    """The same of servers that were read already. One query."""
    done = work_by_region(servers, minutes, until or now())
    return [evaluate_balance(region, work) for region, work in done.items()]


def work_by_region(servers: Sequence[Server], minutes: int, until: datetime) -> dict[str, list[Work]]:
    """What each of these servers did in the `minutes` before `until`, by the region's name. One query."""
    counted = _counts([f"srv-{server.pk}" for server in servers], minutes, until)
    regions: dict[str, list[Work]] = {}
    for server in servers:
        regions.setdefault(server.backend.region.name, []).append(_work(server, counted))
    return regions


def _work(server: Server, counted: dict[str, tuple[int, int]]) -> Work:
    requests, errors = counted.get(f"srv-{server.pk}", (0, 0))
    return Work(server.name, requests, errors, server.weight if server.state == "ready" else 0)


def _counts(names: Sequence[str], minutes: int, until: datetime) -> dict[str, tuple[int, int]]:
    """Requests and 5xx per server."""
    rows = (
        samples(minutes, until)
        .filter(kind="server", object_id__in=names)
        .values("object_id")
        .annotate(all=Sum("requests"), bad=Sum("status_5xx"))
    )
    return {row["object_id"]: (row["all"], row["bad"]) for row in rows}


def samples(minutes: int, until: datetime) -> QuerySet[Sample]:
    """What was observed in the `minutes` before `until`: buckets of ten seconds while kept, then of a minute."""
    begin = until - timedelta(minutes=minutes)
    resolution = SHORT if now() - begin < KEPT_SHORT else LONG
    return Sample.objects.filter(resolution=resolution, at__gte=begin, at__lt=until).order_by()
