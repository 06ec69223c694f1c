"""What pools served, region by region, between two moments, and for how many minutes anything is known of that.

Minutes are kept for two weeks and days of objectives for four, so a month is never told whole: whoever shows it says
how much of it is known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, Count, F, Max, Q, QuerySet, Sum, When

from apps.core.clock import now
from apps.observe.collect.buckets import LONG
from apps.observe.collect.slots import TALLIES, day_of
from apps.observe.models import Sample
from apps.observe.show.flows import FlowKey

BackendKey = tuple[int, int]  # primary keys of a pool and of a region
# Names that one query asks for at most; an account with more pools has as many queries more.
AT_ONCE = 40


@dataclass(slots=True)
class Use:
    """Requests of a pool in a region: served there (guests included), sent on to another region, refused.

    `peak_rps` is what was wanted there in the busiest minute.
    """

    served: int = 0
    overflow_out: int = 0
    rejected: int = 0
    peak_rps: float | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """How the requests of an objective ended, and the minutes of which that is known."""

    minutes: int
    total: int
    failed: int


def known_minutes(begin: datetime, end: datetime) -> dict[int, int]:
    """Region → minutes in which any of its nodes was looked at."""
    rows = _minutes(begin, end).filter(kind="node").values_list("node__fleet__region")
    return dict(rows.annotate(minutes=Count("at", distinct=True)).order_by())


def uses(pools: Collection[int], regions: Collection[int], begin: datetime, end: datetime) -> dict[BackendKey, Use]:
    """What was counted of each pool in each region; what has no row was never asked for. Three queries for 40 pools."""
    found: dict[BackendKey, Use] = {}
    ordered = sorted(pools)
    for start in range(0, len(ordered), AT_ONCE):
        _add(found, ordered[start : start + AT_ONCE], regions, _minutes(begin, end))
    return found


def _minutes(begin: datetime, end: datetime) -> QuerySet[Sample]:
    return Sample.objects.filter(resolution=LONG, at__gte=begin, at__lt=end, seconds__gt=0)


def _add(found: dict[BackendKey, Use], pools: list[int], regions: Collection[int], rows: QuerySet[Sample]) -> None:
    names = [f"pool-{pk}" for pk in pools]
    served = rows.filter(kind="backend", object_id__in=names)
    for name, region, requests in served.values_list("object_id", "node__fleet__region").annotate(Sum("requests")):
        found.setdefault((_number(name), region), Use()).served = requests
    moved = rows.filter(_moved(regions), kind="flow", parent_id__in=names)
    columns = moved.values_list("parent_id", "node__fleet__region", "object_id")
    for name, region, flow, requests in columns.annotate(Sum("requests")):
        use = found.setdefault((_number(name), region), Use())
        if FlowKey.read(flow).verb == "refuse":
            use.rejected += requests
        else:
            use.overflow_out += requests
    for key, peak in _peaks(list(found.keys() & {(pk, each) for pk in pools for each in regions}), served | moved):
        found[key].peak_rps = peak


def _moved(regions: Collection[int]) -> Q:
    """Flows of requests that did not stay in their region, or were refused."""
    elsewhere = Q(object_id__contains="/to/")
    for region in regions:
        elsewhere &= ~Q(node__fleet__region=region, object_id__contains=f"/to/rgn-{region}/")
    return Q(object_id__contains="/refuse/") | elsewhere


def _peaks(backends: list[BackendKey], rows: QuerySet[Sample]) -> list[tuple[BackendKey, float | None]]:
    """What was wanted of each in its busiest minute."""
    pool = Case(When(kind="backend", then=F("object_id")), default=F("parent_id"), output_field=CharField())
    grouped = rows.annotate(pool=pool).values("pool", "node__fleet__region", "at").order_by()
    wanted = grouped.annotate(rate=Sum(F("requests") / F("seconds")))
    highest: dict[str, Any] = {
        f"peak_{number}": Max("rate", filter=Q(pool=f"pool-{pk}", node__fleet__region=region))
        for number, (pk, region) in enumerate(backends)
    }
    found = wanted.aggregate(**highest) if highest else {}
    return [(key, found[f"peak_{number}"]) for number, key in enumerate(backends)]


def kept(kind: str, pks: Collection[int], begin: datetime, end: datetime) -> Mapping[int, Kept]:
    """How the requests of these pools or routes ended, of days that are over and of today so far. One query."""
    today = day_of(now())
    rows = TALLIES[kind]._default_manager.filter(**{f"{kind}__in": list(pks)}, at__gte=begin, at__lt=end)
    days = rows.filter(Q(whole_day=True, at__lt=today) | Q(whole_day=False, at__gte=today))
    sums = days.values_list(kind).order_by().annotate(Sum("minutes"), Sum("total"), Sum("failed"))
    return {pk: Kept(*counts) for pk, *counts in sums}


def _number(name: str) -> int:
    return int(name.removeprefix("pool-"))
