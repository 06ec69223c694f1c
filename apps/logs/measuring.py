"""Metrics of saved searches: each minute one point, measured once its lines are in, kept for a week."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import F, Q

from apps.core.clock import now
from apps.drivers.logs.contract import LogStore, LogStoreError, Point, Query
from apps.logs.filters import parse
from apps.logs.models import MetricPoint, SavedSearch
from apps.logs.objectives.standing import nothing_comes

MINUTE = timedelta(minutes=1)
# Lines come about a second after their request; a node that was away sends its own later, and is counted for so long.
SETTLED, LATE = timedelta(seconds=10), timedelta(minutes=5)
FIRST, LONGEST_GAP = timedelta(hours=1), timedelta(hours=3)
KEPT = timedelta(days=7)
Measure = SavedSearch.Measure


def measure_due(store: LogStore, goes_on: Callable[[], bool]) -> str:
    """Measure what is due, what waits longest first; what was wrong with one is said.

    An account whose question is too large waits for the next time with its others, so that nobody else does. While no
    line comes from any node nothing is measured: that would be none, and what comes is measured when it is there.
    """
    if nothing_comes(now()):
        return ""
    trouble, skipped = "", set[int]()
    end = (now() - SETTLED).replace(second=0, microsecond=0)
    due = SavedSearch.objects.exclude(measure="").filter(Q(measured_until=None) | Q(measured_until__lt=end))
    for row in due.order_by(F("measured_until").asc(nulls_first=True), "pk"):
        if not goes_on():
            break
        if row.account_id in skipped:
            continue
        try:
            measure(store, row, end)
        except LogStoreError as error:
            skipped.add(row.account_id)
            trouble = trouble or error.message
    return trouble


def measure(store: LogStore, row: SavedSearch, end: datetime) -> None:
    """Bring one metric up to `end`, unless another process does. Raises LogStoreError.

    What could not be measured is tried again with the next minutes, as what comes late is, and then given up.
    """
    start = end - FIRST if row.measured_until is None else max(row.measured_until - LATE, end - LONGEST_GAP)
    mine = SavedSearch.objects.filter(pk=row.pk, measured_until=row.measured_until)
    if not mine.update(measured_until=end):
        return
    points = _points(store, row, start, end)
    if not SavedSearch.objects.filter(pk=row.pk).exists():  # deleted meanwhile
        return
    MetricPoint.objects.bulk_create(
        points, update_conflicts=True, unique_fields=("search", "minute"), update_fields=("lines", "value")
    )
    row.points.filter(minute__lt=end - KEPT).delete()


def _points(store: LogStore, row: SavedSearch, start: datetime, end: datetime) -> list[MetricPoint]:
    """A point for each minute, those without lines as well."""
    conditions = parse(row.filter)
    of = row.of if row.measure == Measure.PERCENTILE else ""
    if row.measure == Measure.SHARE:
        among = parse(row.among)
        all_of_them = _by_minute(store.series(row.account_id, Query(start, end, among), step_seconds=60))
        conditions = (*among, *conditions)
    else:
        all_of_them = {}
    query = Query(start, end, conditions)
    found = _by_minute(store.series(row.account_id, query, step_seconds=60, of=of, percentile=row.percentile or 50))
    minutes = [start + number * MINUTE for number in range(int((end - start) / MINUTE))]
    return [_point(row, minute, found.get(minute), all_of_them.get(minute)) for minute in minutes]


def _by_minute(points: tuple[Point, ...]) -> dict[datetime, Point]:
    return {each.start: each for each in points}


def _point(row: SavedSearch, minute: datetime, found: Point | None, among: Point | None) -> MetricPoint:
    lines = found.lines if found else 0
    value: float | None = float(lines)
    if row.measure == Measure.RATE:
        value = lines / 60
    elif row.measure == Measure.SHARE:
        value = 100 * lines / among.lines if among else None
    elif row.measure == Measure.PERCENTILE:
        value = found.value if found else None
    return MetricPoint(search=row, minute=minute, lines=lines, value=value)
