"""Slots of five minutes in which the requests of an objective are counted, and the days that they become.

Windows of up to three days are sums of slots, longer ones of days, so that 28 days are few rows. Both are made anew
whenever they are counted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Max, Sum
from django.db.models.functions import TruncDay

from apps.observe.collect.buckets import start_of
from apps.observe.models import PoolTally, RouteTally, Tally

SLOT, DAY = timedelta(minutes=5), timedelta(days=1)
WINDOW = 28 * DAY
# As long as anything may still be counted again, or is asked by the minute.
SLOTS_KEPT = 4 * DAY
TALLIES: Mapping[str, type[Tally]] = {"pool": PoolTally, "route": RouteTally}
"""What has objectives, as the tallies name it."""
SUMS = ("total", "failed", "timed", "slow")
Key = tuple[int, datetime]


@dataclass(slots=True)
class Slot:
    """What is summed; `minutes` are those of which something is known."""

    minutes: set[int] = field(default_factory=set)
    total: int = 0
    failed: int = 0
    timed: int = 0
    slow: int = 0


def slot_of(instant: datetime) -> datetime:
    """When its slot began."""
    return datetime.fromtimestamp(start_of(instant.timestamp(), int(SLOT.total_seconds())), UTC)


def day_of(instant: datetime) -> datetime:
    """When its day began, in UTC."""
    return instant.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def store(
    kind: str, slots: Mapping[Key, Slot], bounds: Mapping[int, int | None], window: tuple[datetime, datetime]
) -> None:
    """Write what was counted in a window, in place of what is there; days that are over follow."""
    _write(kind, _rows(kind, slots, bounds))
    begin, end = day_of(window[0]), day_of(window[1])
    if begin < end:
        _write(kind, _days(kind, {pk for pk, _ in slots}, begin, end))


def forget_slow(kind: str, pk: int, latency_ms: int | None) -> None:
    """What was counted by another bound says nothing of this one."""
    rows = TALLIES[kind]._default_manager.filter(**{kind: pk})
    rows.exclude(latency_ms=latency_ms).update(timed=0, slow=0, latency_ms=latency_ms)


def prune(instant: datetime, limit: int = 20_000) -> None:
    """Forget what no objective looks at any more, some at a time."""
    for model in TALLIES.values():
        for whole_day, kept in ((False, SLOTS_KEPT), (True, WINDOW + DAY)):
            rows = model._default_manager.filter(whole_day=whole_day, at__lt=instant - kept - SLOT)
            old = rows.order_by("at").values_list("pk", flat=True)
            model._default_manager.filter(pk__in=list(old[:limit])).delete()


def _rows(kind: str, slots: Mapping[Key, Slot], bounds: Mapping[int, int | None]) -> Iterator[Tally]:
    for (pk, at), slot in slots.items():
        sums = {name: getattr(slot, name) for name in SUMS}
        yield TALLIES[kind](**{f"{kind}_id": pk}, at=at, minutes=len(slot.minutes), latency_ms=bounds[pk], **sums)


def _days(kind: str, objects: Iterable[int], begin: datetime, end: datetime) -> Iterator[Tally]:
    """The sums of whole days."""
    model, owner = TALLIES[kind], f"{kind}_id"
    rows = model._default_manager.filter(whole_day=False, at__gte=begin, at__lt=end, **{f"{owner}__in": list(objects)})
    names = ("minutes", *SUMS)
    days = rows.order_by().annotate(day=TruncDay("at", tzinfo=UTC)).values(owner, "day")
    for row in days.annotate(bound=Max("latency_ms"), **{f"{name}_sum": Sum(name) for name in names}):
        sums: dict[str, Any] = {name: row[f"{name}_sum"] for name in names}
        yield model(**{owner: row[owner]}, at=row["day"], whole_day=True, latency_ms=row["bound"], **sums)


def _write(kind: str, rows: Iterable[Tally]) -> None:
    TALLIES[kind]._default_manager.bulk_create(
        rows,
        batch_size=500,
        update_conflicts=True,
        unique_fields=[kind, "whole_day", "at"],
        update_fields=["minutes", "latency_ms", *SUMS],
    )
