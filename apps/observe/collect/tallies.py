"""Counts the requests of pools with an objective, from samples, which are forgotten sooner than objectives look.

Any process may count, and again: a slot is made anew from its samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from django.db.models import OuterRef, QuerySet, Subquery

from apps.definitions.models import Pool
from apps.observe.collect import slots
from apps.observe.collect.buckets import LONG, SHORT
from apps.observe.collect.slots import DAY, SLOT, Key, Slot, day_of, slot_of
from apps.observe.models import PoolTally, Sample

# Samples of ten seconds are kept for a day; what is older is asked of those of a minute.
SHORT_FOR = timedelta(hours=20)
# How far back an objective looks that is new, or has another bound: as far as there are samples.
BACK = timedelta(days=14)
# Two weeks of samples are many, so that few pools are counted anew in one go.
ANEW_AT_ONCE = 4
MOST_NAMES = 200


def count_pools(instant: datetime) -> int:
    """Bring the slots of all pools with an objective up to date; returns how many slots were written."""
    last = PoolTally.objects.filter(pool=OuterRef("pk"), whole_day=False).order_by("-at")
    rows = Pool.objects.filter(objective__isnull=False).annotate(
        counted_until=Subquery(last.values("at")[:1]), counted_by=Subquery(last.values("latency_ms")[:1])
    )
    bounds: dict[int, int | None] = {}
    anew, begin = [], slot_of(instant) - SLOT
    for pool in rows.order_by("pk"):
        bounds[pool.pk] = (pool.objective or {}).get("latency_ms")
        until = pool.counted_until
        if until is None or pool.counted_by != bounds[pool.pk] or until < instant - SHORT_FOR:
            anew.append(pool.pk)
        else:
            begin = min(begin, until)
    written = 0
    for pk in anew[:ANEW_AT_ONCE]:
        bound, recent = {pk: bounds.pop(pk)}, slot_of(instant - SHORT_FOR)
        slots.forget_slow("pool", pk, bound[pk])  # what is older than any sample was counted by another bound
        written += _count(bound, day_of(instant - BACK) + DAY, recent, LONG) + _count(bound, recent, instant, SHORT)
    for pk in anew[ANEW_AT_ONCE:]:
        del bounds[pk]
    return written + _count(bounds, begin, instant, SHORT)


def _count(bounds: Mapping[int, int | None], begin: datetime, end: datetime, resolution: int) -> int:
    pools = list(bounds)
    counted: dict[Key, Slot] = defaultdict(Slot)
    for start in range(0, len(pools), MOST_NAMES):
        _add_backends(counted, pools[start : start + MOST_NAMES], bounds, (begin, end, resolution))
    if pools:
        _add_refused(counted, set(pools), (begin, end, resolution))
    if resolution == SHORT:
        for pk in pools:  # also of one without samples, so that it does not count as new each time
            counted[pk, slot_of(end)].minutes.update()
    slots.store("pool", counted, bounds, (begin, end))
    return len(counted)


def _add_backends(
    counted: dict[Key, Slot],
    pools: Iterable[int],
    bounds: Mapping[int, int | None],
    within: tuple[datetime, datetime, int],
) -> None:
    """Responses by class, and by how long they took; what goes to another region is counted there alone."""
    rows = _samples(within).filter(kind="backend", object_id__in=[f"pool-{pk}" for pk in pools])
    classes = ("status_2xx", "status_3xx", "status_4xx", "status_5xx")
    for at, name, buckets, *counts in rows.values_list("at", "object_id", "latency_buckets", *classes).iterator():
        pool = _number(name)
        slot, bound = counted[pool, slot_of(at)], bounds[pool]
        slot.minutes.add(at.minute)
        slot.total += sum(counts)
        slot.failed += counts[-1]
        if bound is not None:
            slot.timed += sum(buckets.values())
            slot.slow += sum(count for most, count in buckets.items() if not 0 < int(most) <= bound)


def _add_refused(counted: dict[Key, Slot], pools: Collection[int], within: tuple[datetime, datetime, int]) -> None:
    """Requests that found no room in any region: they reach no backend, so nothing else counts them."""
    rows = _samples(within).filter(kind="flow", object_id__contains="/refuse/")
    for at, name, count in rows.values_list("at", "object_id", "requests").iterator():
        if (pool := _number(name.partition("/")[0])) in pools:
            slot = counted[pool, slot_of(at)]
            slot.total += count
            slot.failed += count


def _samples(within: tuple[datetime, datetime, int]) -> QuerySet[Sample]:
    begin, end, resolution = within
    return Sample.objects.filter(resolution=resolution, at__gte=begin, at__lt=end).order_by()


def _number(name: str) -> int:
    return int(name.removeprefix("pool-"))
