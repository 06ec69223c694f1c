"""Schedules with targets that only note what was asked of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.clock import database_now
from apps.definitions.models import Schedule
from apps.schedules.models import ScheduleRun
from apps.schedules.run import working
from apps.schedules.run.booking import Booked, book
from apps.schedules.targets.contract import Outcome, Target, TargetFailed

START = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)


@dataclass
class Notes:
    """A target that counts by key, and fails as often as it is told to."""

    seen: Counter[str] = field(default_factory=Counter)
    failures: list[TargetFailed] = field(default_factory=list)

    def act(self, run: ScheduleRun, _moment: datetime) -> Outcome:
        """Count the run, or fail."""
        self.seen[run.key] += 1
        if self.failures:
            raise self.failures.pop(0)
        return Outcome("Noted.", {"attempt": run.attempt})

    def act_on_many(self, runs: Sequence[ScheduleRun], moment: datetime) -> Sequence[Outcome | TargetFailed]:
        """The same for each."""
        outcomes: list[Outcome | TargetFailed] = []
        for run in runs:
            try:
                outcomes.append(self.act(run, moment))
            except TargetFailed as failure:
                outcomes.append(failure)
        return outcomes


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    """Webhooks one at a time and topics many at a time, both noted here; no other target is there."""
    noted = Notes()
    targets = {"webhook": Target(noted.act, waits=True), "topic": Target(noted.act, act_on_many=noted.act_on_many)}
    monkeypatch.setattr(working, "TARGETS", targets)
    return noted


def a_schedule(owner: Actor, name: str = "beat", **columns: Any) -> Schedule:
    """A schedule of every minute with a webhook, due since a second ago, unless columns say otherwise.

    It counts from its first instant, so that no minute that happens to begin during a test adds a run.
    """
    usual: dict[str, Any] = {"every_s": 60, "target_kind": "webhook", "overlap": "allow"}
    usual["next_at"] = usual["starts_at"] = columns.get("next_at", ago(1))
    return Schedule.objects.create(account=owner.account, name=name, **(usual | columns))


def book_all() -> list[Booked]:
    """Book until nothing is due."""
    turns = [book()]
    while turns[-1].more:
        turns.append(book())
    return turns


def states(schedule: Schedule) -> Counter[str]:
    """How many runs of the schedule are in each state."""
    return Counter(ScheduleRun.objects.filter(schedule=schedule).values_list("state", flat=True))


def ago(seconds: float) -> datetime:
    """So many seconds before now, by the database's clock, whole seconds."""
    return (database_now() - timedelta(seconds=seconds)).replace(microsecond=0)
