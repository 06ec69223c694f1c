"""What became of a pool between two times: requests/s, errors, latency, servers at work, who did it, the cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.accounts.actors import Actor
from apps.capacity.use.balance import Balance, Work, evaluate_balance, samples, work_by_region
from apps.capacity.use.sizing import pool_of, servers_of
from apps.definitions.models import Pool, Server
from apps.observe.collect.percentiles import from_json, merge, percentile

WHOLE = "The whole pool"


@dataclass(frozen=True, slots=True)
class Period:
    """What a pool, or one region's servers of it, did in some minutes; None where nobody looked.

    Requests/s while it was looked at, the share of requests that were answered with 5xx (0-1), p95 in ms (nodes
    measure it for pools, not for their regions), servers that got a request, what those cost in the unit that was
    given, and how a region's servers shared the work.
    """

    requests_rps: float | None
    error_rate: float | None
    p95_ms: float | None
    servers: int | None
    cost: float | None = None
    balance: Balance | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The whole pool or one of its regions, before and after."""

    where: str
    before: Period
    after: Period
    message: str


def before_and_after(
    actor: Actor,
    pool_id: int,
    *,
    before: datetime,
    after: datetime,
    minutes: int = 10,
    cost_per_server: float | None = None,
) -> list[Change]:
    """The whole pool, then each region: the `minutes` that end at `before` beside those that end at `after`.

    Servers that are gone since count for the whole pool and for no region. Shares are judged by the weights of today.
    Raises NotFound; ten queries, however many servers and regions there are.
    """
    pool = pool_of(actor, pool_id)
    servers = servers_of(pool)
    first, second = (_periods(pool, servers, minutes, until, cost_per_server) for until in (before, after))
    return [Change(where, first[where], second[where], _sentence(first[where], second[where])) for where in first]


def _periods(
    pool: Pool, servers: Sequence[Server], minutes: int, until: datetime, cost: float | None
) -> dict[str, Period]:
    """The whole pool and each region by name, in some minutes."""
    rows = samples(minutes, until)
    seen = rows.filter(kind="node").values_list("at", "resolution").distinct()
    looked_s = sum(resolution for _, resolution in seen)
    found = {WHOLE: _whole(pool, minutes, until, looked_s, cost)}
    for region, work in work_by_region(servers, minutes, until).items():
        found[region] = _region(region, work, looked_s, cost)
    return found


def _whole(pool: Pool, minutes: int, until: datetime, looked_s: int, cost: float | None) -> Period:
    rows = samples(minutes, until)
    stored = list(
        rows.filter(kind="backend", object_id=f"pool-{pool.pk}").values_list(
            "requests", "status_5xx", "latency_buckets"
        )
    )
    worked = rows.filter(kind="server", parent_id=f"pool-{pool.pk}", requests__gt=0)
    servers = worked.values("object_id").distinct().count()
    p95 = percentile(merge(from_json(buckets) for _, _, buckets in stored), 0.95)
    requests, errors = sum(row[0] for row in stored), sum(row[1] for row in stored)
    return _period(requests, errors, servers, looked_s, cost, p95=p95)


def _region(region: str, work: Sequence[Work], looked_s: int, cost: float | None) -> Period:
    requests, errors = sum(each.requests for each in work), sum(each.errors for each in work)
    servers = sum(1 for each in work if each.requests)
    return _period(requests, errors, servers, looked_s, cost, balance=evaluate_balance(region, work))


def _period(
    requests: int,
    errors: int,
    servers: int,
    looked_s: int,
    cost: float | None,
    *,
    p95: float | None = None,
    balance: Balance | None = None,
) -> Period:
    """Nothing is known of a time in which nobody looked."""
    if not looked_s:
        return Period(None, None, None, None, None, balance)
    share = min(1.0, errors / requests) if requests else None
    return Period(requests / looked_s, share, p95, servers, servers * cost if cost is not None else None, balance)


def _sentence(before: Period, after: Period) -> str:
    """What became of the share of the work, where that is known; else why it is not."""
    if before.requests_rps is None or after.requests_rps is None:
        return "There is no data for one of the two periods."
    if before.balance is None or after.balance is None:
        return ""
    pair = before.balance, after.balance
    if "unknown" in (pair[0].status, pair[1].status):
        reason = next(each.message for each in pair if each.status == "unknown")
        return f"The load distribution cannot be compared. {reason}"
    spreads = [f"{each.spread:.1f}" if each.spread else "no end" for each in pair]
    words = (
        f"stayed {pair[0].status}"
        if pair[0].status == pair[1].status
        else f"went from {pair[0].status} to {pair[1].status}"
    )
    return f"It {words}: busiest against idlest {spreads[0]} before, {spreads[1]} after."
