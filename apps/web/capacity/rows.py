"""Capacity tests as rows of lists: the last number and its age, the run of now, the next one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Max

from apps.accounts.actors import Actor
from apps.capacity import selectors
from apps.capacity.models import Run
from apps.core.written.numbers import plain
from apps.definitions.models import CapacityTest, Schedule
from apps.web.capacity.result import capacity_of, confidence_of
from apps.web.capacity.words import guard_words, inconclusive, load_words, mark_of, objective_words


def rows_of(actor: Actor, tests: Sequence[CapacityTest]) -> list[dict[str, Any]]:
    """What lists print of these tests; the number of queries is constant."""
    measured, open_ = last_measured(actor, tests), open_runs(actor, tests)
    following = next_schedules(actor, tests)
    open_ends = last_inconclusive(actor, tests)
    rows = [_row(test, measured.get(test.pk), open_.get(test.pk), following.get(test.pk)) for test in tests]
    return [row | {"inconclusive": open_ends.get(row["test"].pk)} for row in rows]


def _row(test: CapacityTest, measured: Run | None, going: Run | None, following: Schedule | None) -> dict[str, Any]:
    return {
        "test": test,
        "load": load_words(test.load),
        "objective": objective_words(test.objective),
        "guards": guard_words(test.guards),
        "measured": measured,
        "capacity": plain(value) if measured and (value := capacity_of(measured)) is not None else "",
        "confidence": confidence_of(measured) if measured else "",
        "going": going,
        "going_mark": mark_of(going) if going else None,
        "following": following,
    }


def last_measured(actor: Actor, tests: Iterable[CapacityTest]) -> dict[int, Run]:
    """The newest run of each test that found a capacity, by the id of the test."""
    rows = selectors.runs(actor).filter(test__in=[test.pk for test in tests], state=Run.State.DONE)
    rows = rows.exclude(result=None).exclude(result__capacity=None).order_by("test", "-id")
    found: dict[int, Run] = {}
    for row in rows:
        found.setdefault(row.test_id or 0, row)
    return found


def last_inconclusive(actor: Actor, tests: Iterable[CapacityTest]) -> dict[int, Run]:
    """The newest run of each test that came to its end, where it left open what was asked, by the id of the test."""
    ended = selectors.runs(actor).filter(test__in=[test.pk for test in tests], state=Run.State.DONE).order_by()
    newest = ended.values("test").annotate(newest=Max("pk")).values_list("newest", flat=True)
    rows = Run.objects.filter(pk__in=newest)
    return {run.test_id: run for run in rows if run.test_id and inconclusive(run)}


def open_runs(actor: Actor, tests: Iterable[CapacityTest]) -> dict[int, Run]:
    """The run of each test that waits or goes on, by the id of the test."""
    rows = selectors.runs(actor).filter(test__in=[test.pk for test in tests], state__in=Run.OPEN).order_by("id")
    return {row.test_id: row for row in rows if row.test_id}


def next_schedules(actor: Actor, tests: Iterable[CapacityTest]) -> dict[int, Schedule]:
    """The schedule of each test that runs first, by the id of the test."""
    names = {(test.account_id, test.name): test.pk for test in tests}
    kind = Schedule.TargetKind.CAPACITY_TEST
    rows = actor.visible(Schedule.objects.filter(target_kind=kind, paused=False, next_at__isnull=False))
    rows = rows.filter(account__in={account for account, _ in names})
    found: dict[int, Schedule] = {}
    for row in rows.order_by("next_at"):
        pk = names.get((row.account_id, row.target.get("name", "")))
        if pk:
            found.setdefault(pk, row)
    return found
