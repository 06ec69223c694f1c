"""Target capacity test: ask for one run, known again by the run's key; a late one is never caught up."""

from __future__ import annotations

from datetime import datetime

from apps.capacity.models import Run
from apps.capacity.services import request_run
from apps.core.errors import Forbidden, Invalid, NotFound
from apps.definitions.models import CapacityTest
from apps.definitions.writing.change_set import actor_of_schedule
from apps.schedules.models import ScheduleRun
from apps.schedules.targets.contract import Outcome, TargetFailed


def act(schedule_run: ScheduleRun, _now: datetime) -> Outcome:
    """Ask for the run. Raises TargetFailed, for good, when it is refused."""
    schedule = schedule_run.schedule
    name = schedule.target["name"]
    test = CapacityTest.objects.filter(account=schedule.account, name=name).first()
    try:
        if test is None:
            raise NotFound(f"The capacity test {name} no longer exists.")
        run = request_run(
            actor=actor_of_schedule(schedule.account, schedule.name),
            test_id=test.pk,
            request_key=schedule_run.key,
            scheduled_at=schedule_run.due_at,
            reason=f"Schedule run {schedule_run.pk}",
        )
    except (Forbidden, Invalid, NotFound) as error:
        raise TargetFailed(error.detail, final=True) from error
    if run.state == Run.State.REFUSED:
        raise TargetFailed(f"Run {run.pk} was rejected: {run.message}", final=True)
    return Outcome(f"Run {run.pk} of {name} was requested.", {"run": run.pk})
