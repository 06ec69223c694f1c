"""Samples in coarser and coarser buckets: ten seconds become minutes, minutes become hours, and what is old goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from django.db import connection, transaction
from django.db.models import Max, Min, QuerySet

from apps.fleet.selectors import node_regions
from apps.observe.collect.buckets import HOUR, LONG, SHORT, into_one, start_of
from apps.observe.models import Sample
from apps.observe.services import counts_of, store_buckets

LIFETIMES = {SHORT: timedelta(days=1), LONG: timedelta(weeks=2), HOUR: timedelta(days=31)}
# Hours of nodes that are made after an upgrade, the newest ones: at one in two seconds, three hours of work.
CATCH_UP = 5000
# Minutes of a thousand nodes are seconds of work for a process that reads all of them as well. It is done in parts of
# 0.2 s with pauses, so that no reading waits long, and within half of the minute that there is for it.
NODES_AT_ONCE, A_PART_EACH_S, ALL_PARTS_S = 25, 0.75, 30.0
T = TypeVar("T")
Wait = Callable[[float], object]


def roll_up(until: int, wait: Wait = time.sleep) -> int:
    """Make rows of a minute from rows of ten seconds, for whole minutes before `until` (Unix seconds) without any.

    At most ten minutes in one go; returns how many were made. Repeating it changes nothing. A minute is seen when it is
    whole: sums over a part of the nodes would look like a loss of traffic. `wait` pauses for so many seconds.
    """
    last = _last(LONG)
    short = Sample.objects.filter(resolution=SHORT)
    if last is not None:
        short = short.filter(at__gte=last + timedelta(seconds=LONG))
    first = short.aggregate(first=Min("at"))["first"]
    if first is None:
        return 0
    begin = start_of(first.timestamp(), LONG)
    minutes = range(begin, min(start_of(until, LONG), begin + 10 * LONG), LONG)
    nodes = sorted(node_regions())
    parts = [nodes[start : start + NODES_AT_ONCE] for start in range(0, len(nodes), NODES_AT_ONCE)]
    for minute in minutes:
        with transaction.atomic():
            for part in parts if len(minutes) > 1 else _with_pauses(parts, wait):
                _make(minute, SHORT, LONG, part)
    return len(minutes)


def _with_pauses(parts: Sequence[T], wait: Wait) -> Iterator[T]:
    """One part after the other; without pauses on SQLite, where nobody else may write meanwhile."""
    each_s = 0.0 if connection.vendor == "sqlite" else min(A_PART_EACH_S, ALL_PARTS_S / max(1, len(parts)))
    begun = time.monotonic()
    for number, part in enumerate(parts):
        if (early := begun + number * each_s - time.monotonic()) > 0:
            wait(early)
        yield part


def roll_up_hour() -> bool:
    """Make rows of an hour from rows of a minute, for one node and the oldest whole hour that lacks it.

    False when there is none. One node at a time: samples of others are not to wait.
    """
    minute, nodes = _last(LONG), list(node_regions())
    if minute is None or not nodes:
        return False
    hour, lacking = _pending(nodes, start_of(minute.timestamp() + LONG, HOUR))
    if not lacking:
        return False
    with transaction.atomic():  # the row of the node says that the others are there
        _make(hour, LONG, HOUR, lacking[:1])
    return True


def _pending(nodes: Collection[int], end: int) -> tuple[int, list[int]]:
    """The oldest hour before `end` that is not whole, and the nodes that it lacks."""
    last = _last(HOUR)
    if last is not None and (lacking := _lacking(nodes, int(last.timestamp()))):
        return int(last.timestamp()), lacking
    oldest = datetime.fromtimestamp(end - max(1, CATCH_UP // len(nodes)) * HOUR, UTC)
    begin = oldest if last is None else max(oldest, last + timedelta(seconds=HOUR))
    minutes = _of_nodes(nodes).filter(resolution=LONG, at__gte=begin, at__lt=datetime.fromtimestamp(end, UTC))
    first = minutes.aggregate(first=Min("at"))["first"]
    if first is None:
        return 0, []
    hour = start_of(first.timestamp(), HOUR)
    return hour, _lacking(nodes, hour)


def _lacking(nodes: Collection[int], hour: int) -> list[int]:
    """Those of the nodes that have minutes of that hour, and not the hour."""
    whole = _within(hour, HOUR, HOUR).filter(kind="node").values("node")
    rows = _of_nodes(nodes) & _within(hour, LONG, HOUR)
    return sorted(rows.exclude(node__in=whole).order_by().values_list("node", flat=True).distinct())


def _of_nodes(nodes: Collection[int]) -> QuerySet[Sample]:
    return Sample.objects.filter(kind="node", object_id__in=[f"node-{pk}" for pk in nodes])


def _make(begin: int, fine: int, coarse: int, nodes: Collection[int]) -> None:
    """The coarse rows of one bucket and these nodes, of fine ones.

    They are asked for by each of their times: of a stretch of time, all nodes' rows would be looked through.
    """
    times = [datetime.fromtimestamp(second, UTC) for second in range(begin, begin + coarse, fine)]
    rows = Sample.objects.filter(resolution=fine, at__in=times, node__in=nodes).order_by("at")
    counted = counts_of(rows, "node", "kind", "object_id")
    merged = into_one((node_id, (kind, object_id), counts) for (node_id, kind, object_id), counts in counted)
    store_buckets(coarse, ((begin, node_id, key, counts) for (node_id, key), counts in merged.items()))


def _within(begin: int, resolution: int, seconds: int) -> QuerySet[Sample]:
    instant = datetime.fromtimestamp(begin, UTC)
    return Sample.objects.filter(resolution=resolution, at__gte=instant, at__lt=instant + timedelta(seconds=seconds))


def _last(resolution: int) -> datetime | None:
    found: datetime | None = Sample.objects.filter(resolution=resolution).aggregate(last=Max("at"))["last"]
    return found


def prune(instant: datetime, batch: int = 2000) -> int:
    """Delete about `batch` samples of each resolution that are older than they need be; returns how many went."""
    deleted = 0
    for resolution, lifetime in LIFETIMES.items():
        old = Sample.objects.filter(resolution=resolution, at__lt=instant - lifetime)
        last = list(old.order_by("at").values_list("at", flat=True)[:batch])[-1:]
        if last:
            deleted += old.filter(at__lte=last[0]).delete()[0]
    return deleted
