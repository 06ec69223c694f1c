"""The pools of one route next to each other, as the route's own request lines say: is the canary worse?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.core.clock import now
from apps.definitions.models import Route
from apps.drivers.logs.contract import Comparison, Condition, Group, Query
from apps.logs.objectives.standing import Gap, gaps_of
from apps.logs.searching import answering, until_now

LAST = timedelta(minutes=15)
# The pools of a route are fewer; what else its lines name was one of them a moment ago.
MOST_POOLS = 100


@dataclass(frozen=True, slots=True)
class Side:
    """What one pool had of a route's requests: how many, those with 5xx, and the 95th percentile of their time in ms.

    `percent` is its part of all that went to the pools of the route now. None where it had no request.
    """

    lines: int = 0
    failed: int = 0
    percent: float | None = None
    failed_percent: float | None = None
    p95_ms: float | None = None


def sides_of(route: Route, since: datetime | None = None) -> dict[int, Side]:
    """By primary key of the pool, of the last quarter of an hour, or of less, `since` then. Raises NotAnswered."""
    start, end = until_now(LAST)
    start = max(start, since or start)
    query = Query(start, end, (Condition("route", Comparison.IS, (route.name,)),))
    with answering() as store:
        found = store.groups(route.account_id, query, ("pool",), limit=MOST_POOLS)
    by_name = {group.values[0]: group for group in found}
    groups = {share.pool_id: by_name.get(share.pool.name) for share in route.shares}
    total = sum(group.lines for group in groups.values() if group)
    return {pk: _side(group, total) if group else Side() for pk, group in groups.items()}


def gap_of(route: Route) -> Gap:
    """Why lines do not say how the pools stand, else what of them is missing."""
    names = [share.pool.name for share in route.shares]
    if len(set(names)) < len(names):
        return Gap("Two of its pools have the same name, and request lines have no more than the name")
    return gaps_of([route], now())[route.pk]


def _side(group: Group, total: int) -> Side:
    lines, failed = group.lines, group.failed
    return Side(lines, failed, 100 * lines / total, 100 * failed / lines, group.total_p95_ms)
