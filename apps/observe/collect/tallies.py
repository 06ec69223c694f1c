"""Counts the requests of pools with an objective in slots of five minutes, which are kept as long as objectives look.

Samples are forgotten sooner. Any process may count, and again: a slot is made anew from its samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db.models import OuterRef, QuerySet, Subquery

from apps.definitions.models import Pool
from apps.observe.collect.buckets import LONG, SHORT, start_of
from apps.observe.models import PoolTally, Sample

SLOT = timedelta(minutes=5)
WINDOW = timedelta(days=28)
# Samples of ten seconds are kept for a day; what is older is asked of those of a minute.
SHORT_FOR = timedelta(hours=20)
# How far back an objective looks that is new, or has another bound: as far as there are samples.
BACK = timedelta(days=14)
# Two weeks of samples are many, so that few pools are counted anew in one go.
ANEW_AT_ONCE = 4
MOST_NAMES = 200


@dataclass(slots=True)
class _Slot:
    """What is summed; `minutes` are those in which the pool was seen."""

    minutes: set[int] = field(default_factory=set)
    total: int = 0
    failed: int = 0
    timed: int = 0
    slow: int = 0


def count_pools(instant: datetime) -> int:
    """Bring the slots of all pools with an objective up to date; returns how many slots were written."""
    last = PoolTally.objects.filter(pool=OuterRef("pk")).order_by("-at")
    rows = Pool.objects.exclude(objective=None).annotate(
        counted_until=Subquery(last.values("at")[:1]), counted_by=Subquery(last.values("latency_ms")[:1])
    )
    bounds: dict[int, int | None] = {}
    anew, begin = [], _slot(instant) - SLOT
    for pool in rows.order_by("pk"):
        bounds[pool.pk] = (pool.objective or {}).get("latency_ms")
        until = pool.counted_until
        if until is None or pool.counted_by != bounds[pool.pk] or until < instant - SHORT_FOR:
            anew.append(pool.pk)
        else:
            begin = min(begin, until)
    written = 0
    for pk in anew[:ANEW_AT_ONCE]:
        bound, recent = {pk: bounds.pop(pk)}, _slot(instant - SHORT_FOR)
        # What is older than any sample was counted by another bound, which says nothing now.
        PoolTally.objects.filter(pool=pk).exclude(latency_ms=bound[pk]).update(timed=0, slow=0, latency_ms=bound[pk])
        written += _count(bound, _slot(instant - BACK), recent, LONG) + _count(bound, recent, instant, SHORT)
    for pk in anew[ANEW_AT_ONCE:]:
        del bounds[pk]
    return written + _count(bounds, begin, instant, SHORT)


def prune(instant: datetime, limit: int = 20_000) -> None:
    """Forget slots that no objective looks at any more, some at a time."""
    old = PoolTally.objects.filter(at__lt=instant - WINDOW - SLOT).order_by("at").values_list("pk", flat=True)
    PoolTally.objects.filter(pk__in=list(old[:limit])).delete()


def _slot(instant: datetime) -> datetime:
    return datetime.fromtimestamp(start_of(instant.timestamp(), int(SLOT.total_seconds())), UTC)


def _count(bounds: Mapping[int, int | None], begin: datetime, end: datetime, resolution: int) -> int:
    pools = list(bounds)
    slots: dict[tuple[int, datetime], _Slot] = defaultdict(_Slot)
    for start in range(0, len(pools), MOST_NAMES):
        _add_backends(slots, pools[start : start + MOST_NAMES], bounds, (begin, end, resolution))
    if pools:
        _add_refused(slots, set(pools), (begin, end, resolution))
    if resolution == SHORT:
        for pk in pools:  # also of one without samples, so that it does not count as new each time
            slots[pk, _slot(end)].minutes.update()
    PoolTally.objects.bulk_create(
        _rows(slots, bounds),
        batch_size=500,
        update_conflicts=True,
        unique_fields=["pool", "at"],
        update_fields=["minutes", "total", "failed", "latency_ms", "timed", "slow"],
    )
    return len(slots)


def _rows(slots: Mapping[tuple[int, datetime], _Slot], bounds: Mapping[int, int | None]) -> Iterator[PoolTally]:
    for (pool, at), slot in slots.items():
        sums = {"total": slot.total, "failed": slot.failed, "timed": slot.timed, "slow": slot.slow}
        yield PoolTally(pool_id=pool, at=at, minutes=len(slot.minutes), latency_ms=bounds[pool], **sums)


def _add_backends(
    slots: dict[tuple[int, datetime], _Slot],
    pools: Iterable[int],
    bounds: Mapping[int, int | None],
    within: tuple[datetime, datetime, int],
) -> None:
    """Responses by class, and by how long they took; what goes to another region is counted there alone."""
    rows = _samples(within).filter(kind="backend", object_id__in=[f"pool-{pk}" for pk in pools])
    classes = ("status_2xx", "status_3xx", "status_4xx", "status_5xx")
    for at, name, buckets, *counts in rows.values_list("at", "object_id", "latency_buckets", *classes).iterator():
        pool = _number(name)
        slot, bound = slots[pool, _slot(at)], bounds[pool]
        slot.minutes.add(at.minute)
        slot.total += sum(counts)
        slot.failed += counts[-1]
        if bound is not None:
            slot.timed += sum(buckets.values())
            slot.slow += sum(count for most, count in buckets.items() if not 0 < int(most) <= bound)


def _add_refused(
    slots: dict[tuple[int, datetime], _Slot], pools: Collection[int], within: tuple[datetime, datetime, int]
) -> None:
    """Requests that found no room in any region: they reach no backend, so nothing else counts them."""
    rows = _samples(within).filter(kind="flow", object_id__contains="/refuse/")
    for at, name, count in rows.values_list("at", "object_id", "requests").iterator():
        if (pool := _number(name.partition("/")[0])) in pools:
            slot = slots[pool, _slot(at)]
            slot.total += count
            slot.failed += count


def _samples(within: tuple[datetime, datetime, int]) -> QuerySet[Sample]:
    begin, end, resolution = within
    return Sample.objects.filter(resolution=resolution, at__gte=begin, at__lt=end).order_by()


def _number(name: str) -> int:
    return int(name.removeprefix("pool-"))
