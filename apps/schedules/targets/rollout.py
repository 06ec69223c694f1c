"""Target rollout: look at every node of a fleet and push what differs, as if somebody pressed the button."""

from __future__ import annotations

from datetime import datetime

from apps.core.errors import Forbidden, NotFound
from apps.definitions.writing.change_set import actor_of_schedule
from apps.fleet.models import Fleet
from apps.rollouts.services import push_again
from apps.schedules.models import ScheduleRun
from apps.schedules.targets.contract import Outcome, TargetFailed


def act(run: ScheduleRun, _now: datetime) -> Outcome:
    """Want the push; the work goes on by itself. Raises TargetFailed for a fleet that is gone."""
    schedule = run.schedule
    name = schedule.target["fleet"]
    fleet = Fleet.objects.filter(name=name).first()
    try:
        if fleet is None:
            raise NotFound(f"The fleet {name} no longer exists.")
        push_again(
            actor=actor_of_schedule(schedule.account, schedule.name), fleet_id=fleet.pk, reason=f"Schedule run {run.pk}"
        )
    except (Forbidden, NotFound) as error:
        raise TargetFailed(error.detail, final=True) from error
    return Outcome(f"Fleet {name} is checked and redeployed where it differs.", {"fleet": name, "fleet_id": fleet.pk})
