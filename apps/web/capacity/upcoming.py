"""Capacity tests for the first pages: those that run, those that a schedule starts within a day, then the others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from apps.accounts.actors import Actor
from apps.capacity import selectors
from apps.capacity.models import Run
from apps.core.clock import now
from apps.definitions.models import CapacityTest, Schedule
from apps.definitions.selectors import capacity_tests
from apps.web.capacity.words import Mark, mark_of

SOON = timedelta(days=1)
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Line:
    """A test; with its run, where one waits or goes on, or with what starts it soon. Of a run it may be gone."""

    test: CapacityTest | None
    run: Run | None = None
    due: Schedule | None = None

    @property
    def mark(self) -> Mark | None:
        """How the run is."""
        return mark_of(self.run) if self.run else None


def tests_now(actor: Actor) -> list[Line]:
    """For `pages/overview/tests.html`. Four queries."""
    lines = [Line(run.test, run) for run in selectors.runs(actor).filter(state__in=Run.OPEN)[:SHOWN]]
    going = {line.test.pk for line in lines if line.test}
    lines += [line for line in _due(actor) if line.test and line.test.pk not in going]
    others = capacity_tests(actor).exclude(pk__in=[line.test.pk for line in lines if line.test])
    return [*lines, *(Line(test) for test in others[:SHOWN])][:SHOWN]


def _due(actor: Actor) -> list[Line]:
    kind = Schedule.TargetKind.CAPACITY_TEST
    rows = actor.visible(Schedule.objects.filter(target_kind=kind, paused=False, next_at__lt=now() + SOON))
    first: dict[tuple[int, str], Schedule] = {}
    for row in rows.order_by("next_at")[:SHOWN]:
        first.setdefault((row.account_id, row.target.get("name", "")), row)
    tests = capacity_tests(actor).filter(name__in=[name for _, name in first])
    named = {(test.account_id, test.name): test for test in tests}
    return [Line(named[key], due=row) for key, row in first.items() if key in named]
