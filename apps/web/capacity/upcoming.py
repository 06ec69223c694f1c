"""Capacity tests that run, and those that a schedule starts within a day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from apps.accounts.actors import Actor
from apps.capacity import selectors
from apps.capacity.models import Run
from apps.core.clock import now
from apps.definitions.models import Schedule
from apps.web.capacity.words import Mark, mark_of

SOON = timedelta(days=1)
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Going:
    """A run that waits or goes on."""

    run: Run
    mark: Mark


def tests_now(actor: Actor) -> dict[str, Any]:
    """Runs of now and the next ones by schedule, for `pages/overview/tests.html`. Two queries."""
    going = [Going(run, mark_of(run)) for run in selectors.runs(actor).filter(state__in=Run.OPEN)[:SHOWN]]
    kind = Schedule.TargetKind.CAPACITY_TEST
    due = actor.visible(Schedule.objects.filter(target_kind=kind, paused=False, next_at__lt=now() + SOON))
    return {"tests_going": going, "tests_due": list(due.order_by("next_at")[:SHOWN])}
