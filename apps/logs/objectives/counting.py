"""Counts how the requests of routes with an objective ended: each minute one question for all routes of an account.

What comes late is counted again. What a route did not log is nobody's to count: such slots have no minutes, and lines
that turn up in them later say nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Min

from apps.core.clock import now
from apps.definitions.models import Route
from apps.definitions.previewing.effective_rules import partly_logged
from apps.drivers.logs.contract import (
    Busy,
    Comparison,
    Condition,
    LogStore,
    LogStoreError,
    Outcome,
    Query,
    Record,
    Unavailable,
)
from apps.logs.measuring import LATE, MINUTE, SETTLED
from apps.logs.models import CountedLines
from apps.observe.collect import slots
from apps.observe.collect.slots import SLOT, SLOTS_KEPT, Key, Slot, slot_of
from apps.observe.models import RouteTally

# What comes later than this is not counted any more; what waits is counted in steps.
FURTHEST, AT_ONCE = SLOTS_KEPT - timedelta(days=1), timedelta(hours=6)
# Requests of capacity runs fail on purpose, and connections have no status.
COUNTED = (Condition("kind", Comparison.IS, ("request",)), Condition("test_run", Comparison.IS, ("",)))


def count_due(store: LogStore, goes_on: Callable[[], bool]) -> str:
    """Bring the tallies of every account with such routes up to date; what was wrong with one is said."""
    trouble = ""
    end = (now() - SETTLED).replace(second=0, microsecond=0)
    owners = Route.objects.filter(objective__isnull=False).order_by("account").values_list("account", flat=True)
    for account in owners.distinct():
        if not goes_on():
            break
        try:
            count(store, account, end)
        except LogStoreError as error:
            trouble = trouble or error.message
    return trouble


def count(store: LogStore, account: int, end: datetime) -> None:
    """Count an account's lines up to `end`, unless another process does. Raises LogStoreError."""
    mark = CountedLines.objects.get_or_create(account_id=account)[0]
    until = mark.until
    if until is not None and until >= end:
        return
    begin = _begin_of(mark, end)
    stop = min(end, begin + AT_ONCE)
    # Should this process or the database fail before it is stored, the next one begins there.
    pending = begin if until is None else min(until, mark.pending or until)
    if not CountedLines.objects.filter(account=account, until=until).update(until=stop, pending=pending):
        return
    mine = CountedLines.objects.filter(account=account, until=stop)
    routes = list(Route.objects.filter(account=account, objective__isnull=False).order_by("pk"))
    bounds = sorted({bound for route in routes if (bound := _bound(route)) is not None})
    try:
        found = store.outcomes(account, Query(begin, stop, COUNTED), step_seconds=300, bounds_ms=bounds)
    except (Busy, Unavailable):  # asked again
        mine.update(until=until, pending=mark.pending)
        raise
    except LogStoreError:  # too large: it would be again
        mine.update(pending=None)
        raise
    # Who began after this one began where it did, and has read what came meanwhile.
    if CountedLines.objects.filter(account=account, until__gt=stop).exists():
        return
    slots.store(
        "route", _slots(routes, found, bounds, begin, stop), {each.pk: _bound(each) for each in routes}, (begin, stop)
    )
    mine.update(pending=None)


def _begin_of(mark: CountedLines, end: datetime) -> datetime:
    """From when on lines are counted: what may have come late since, and what was begun and never stored."""
    if mark.until is None:
        return slot_of(end - MINUTE)
    return max(slot_of(min(mark.until, mark.pending or mark.until) - LATE), slot_of(end - FURTHEST))


def count_again(records: Sequence[Record]) -> None:
    """Have what came late counted: an account's lines are counted up to the earliest of them, and no further.

    Requests that took long come late as well, and always will: those are counted as far as they come in time.
    """
    horizon = now() - LATE
    late: dict[int, datetime] = {}
    for record in records:
        if record.time < horizon and record.time + timedelta(milliseconds=record.total_ms or 0) < horizon:
            late[record.account] = min(record.time, late.get(record.account, record.time))
    for account, since in late.items():
        CountedLines.objects.filter(account=account, until__gt=since).update(until=since)


def _slots(
    routes: Sequence[Route], found: Sequence[Outcome], bounds: Sequence[int], begin: datetime, stop: datetime
) -> dict[Key, Slot]:
    """The slots of the window that can be known, and those that nobody can know from now on."""
    pks = [route.pk for route in routes]
    rows = RouteTally.objects.filter(route__in=pks, whole_day=False).order_by()
    firsts: Mapping[int, datetime] = dict(rows.values_list("route").annotate(Min("at")))
    present: dict[int, dict[datetime, RouteTally]] = defaultdict(dict)
    for row in rows.filter(at__gte=begin, at__lt=stop):
        present[row.route_id][row.at] = row
    partly = partly_logged(Route.objects.filter(pk__in=pks))
    outcomes = {(each.route, each.start): each for each in found}
    counted: dict[Key, Slot] = {}
    current = slot_of(now())
    for route in routes:
        pk, bound = route.pk, _bound(route)
        if any(each.latency_ms != bound for each in present[pk].values()):
            slots.forget_slow("route", pk, bound)
        # Nobody knows what a route logged before it had an objective, nor what it logs from now on.
        if pk in partly or pk not in firsts:
            counted[pk, current] = Slot()
        for at in _starts(begin, stop) if pk in firsts else ():
            known = present[pk].get(at)
            if pk in partly and (known is None or at + SLOT >= stop):
                counted[pk, at] = Slot()
            elif pk not in partly and at >= firsts[pk] and (known is None or known.minutes):
                counted[pk, at] = _slot(outcomes.get((route.name, at)), bound, bounds, (stop - at) / MINUTE)
    return counted


def _slot(outcome: Outcome | None, bound: int | None, bounds: Sequence[int], minutes: float) -> Slot:
    slot = Slot(minutes=set(range(min(5, int(minutes)))))
    if outcome:
        slot.total, slot.failed = outcome.lines, outcome.failed
        if bound is not None:
            slot.timed, slot.slow = outcome.timed, outcome.slower[bounds.index(bound)]
    return slot


def _starts(begin: datetime, stop: datetime) -> Iterator[datetime]:
    while begin < stop:
        yield begin
        begin += SLOT


def _bound(route: Route) -> int | None:
    bound: int | None = (route.objective or {}).get("latency_ms")
    return bound
