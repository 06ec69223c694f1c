"""Counts what was measured of the pools behind status pages, a row for each day: samples are forgotten sooner.

Any process may count, and again: what was counted up to a moment is never counted twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db.models import Count, F, Max, Q, Sum

from apps.definitions.models import Pool, StatusPage
from apps.observe.collect.buckets import LONG
from apps.observe.models import Sample
from apps.status.components import components_of
from apps.status.models import PoolDay

SHOWN = 90
KEPT_FOR = timedelta(days=SHOWN + 2)
# Minutes are rolled up a little later than they end.
SETTLED = timedelta(minutes=3)
# As far back as there are samples of minutes: of a pool that is new here.
BACK = timedelta(days=14)
ANEW_AT_ONCE = 4
DAY = timedelta(days=1)
# Of fewer responses in a minute a share says little.
FEWEST = 20
MANY, MOST = 0.05, 0.5


@dataclass(slots=True)
class _Minute:
    seen: int = 0
    down: int = 0
    total: int = 0
    failed: int = 0

    @property
    def share(self) -> float:
        return self.failed / self.total if self.total >= FEWEST else 0.0

    @property
    def is_down(self) -> bool:
        """No node had a server for it, or most of what was asked failed."""
        return (self.seen > 0 and self.down == self.seen) or self.share >= MOST

    def is_known(self, *, checked: bool) -> bool:
        """Whether somebody knows how it was: where no check says so, its responses do."""
        return checked or self.total >= FEWEST


def count_days(instant: datetime) -> None:
    """Bring the days of all pools behind status pages up to date."""
    end = (instant - SETTLED).replace(second=0, microsecond=0)
    found = components_of(list(StatusPage.objects.filter(account__suspended_at=None)))
    pools = {pk for each in found.values() for component in each for pk in component.pools}
    rows = PoolDay.objects.filter(pool__in=pools).order_by().values_list("pool")
    known = dict(rows.annotate(Max("counted_until")))
    begins = {pk: max(known.get(pk, end - BACK), end - BACK) for pk in pools}
    near = {pk for pk, begin in begins.items() if end - begin < timedelta(hours=1)}
    _count(near, begins, end)
    for pk in sorted(pools - near)[:ANEW_AT_ONCE]:
        _count({pk}, begins, end)


def prune(instant: datetime, limit: int = 5000) -> None:
    """Forget days that no page shows, some at a time."""
    old = PoolDay.objects.filter(day__lt=(instant - KEPT_FOR).date()).order_by("day").values_list("pk", flat=True)
    PoolDay.objects.filter(pk__in=list(old[:limit])).delete()


def _count(pools: Collection[int], begins: Mapping[int, datetime], end: datetime) -> None:
    if not pools:
        return
    minutes = _minutes(pools, min(begins[pk] for pk in pools), end)
    rows = Pool.objects.filter(pk__in=pools, health_check=None, agent_check__isnull=True)
    unchecked = set(rows.values_list("pk", flat=True))
    for pk in pools:
        known = {at: each for at, each in minutes[pk].items() if each.is_known(checked=pk not in unchecked)}
        for day, start, until in _days(begins[pk], end):
            those = [each for at, each in known.items() if start <= at < until]
            down = sum(each.is_down for each in those)
            failing = sum(not each.is_down and each.share >= MANY for each in those)
            row, _ = PoolDay.objects.get_or_create(pool_id=pk, day=day, defaults={"counted_until": start})
            # Whoever counted meanwhile has moved the mark, and this counts nothing.
            PoolDay.objects.filter(pk=row.pk, counted_until=start).update(
                minutes=F("minutes") + len(those),
                down=F("down") + down,
                failing=F("failing") + failing,
                counted_until=until,
            )


def _days(begin: datetime, end: datetime) -> Iterator[tuple[date, datetime, datetime]]:
    while begin < end:
        next_day = datetime(begin.year, begin.month, begin.day, tzinfo=UTC) + DAY
        until = min(next_day, end)
        yield begin.date(), begin, until
        begin = until


def _minutes(pools: Collection[int], begin: datetime, end: datetime) -> Mapping[int, Mapping[datetime, _Minute]]:
    found: dict[int, dict[datetime, _Minute]] = defaultdict(lambda: defaultdict(_Minute))
    within = Sample.objects.filter(resolution=LONG, at__gte=begin, at__lt=end).order_by()
    names = [f"pool-{pk}" for pk in pools]
    responses = Sum(F("status_2xx") + F("status_3xx") + F("status_4xx") + F("status_5xx"))
    rows = within.filter(kind="backend", object_id__in=names).values("object_id", "at")
    counted = rows.annotate(
        seen=Count("pk"),
        down=Count("pk", filter=Q(status__startswith="DOWN")),
        total=responses,
        failed=Sum("status_5xx"),
    )
    for row in counted.iterator():
        minute = _Minute(row["seen"], row["down"], row["total"], row["failed"])
        found[_number(row["object_id"])][row["at"]] = minute
    # Requests that found no room in any region reach no backend.
    refused = within.filter(kind="flow", object_id__contains="/refuse/").values_list("object_id", "at", "requests")
    for name, at, count in refused.iterator():
        if (pk := _number(name.partition("/")[0])) in pools:
            found[pk][at].total += count
            found[pk][at].failed += count
    return found


def _number(name: str) -> int:
    return int(name.removeprefix("pool-"))
