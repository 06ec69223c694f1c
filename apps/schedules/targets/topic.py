"""Target topic: a message into a stream of the account, with the run's key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import redis

from apps.schedules.models import ScheduleRun
from apps.schedules.targets.contract import Outcome, TargetFailed
from apps.schedules.triggers import topics

AWAY = "Redis, which stores topics, did not answer."


def act(run: ScheduleRun, _now: datetime) -> Outcome:
    """Send one message. Raises TargetFailed while Redis is away."""
    try:
        topics.send([run])
    except redis.RedisError as error:
        raise TargetFailed(AWAY) from error
    return _outcome(run)


def act_on_many(runs: Sequence[ScheduleRun], _now: datetime) -> list[Outcome | TargetFailed]:
    """The same for many in one trip; when it breaks, a second attempt looks what came through."""
    try:
        topics.send(runs)
    except redis.RedisError:
        return [TargetFailed(AWAY) for _ in runs]
    return [_outcome(run) for run in runs]


def _outcome(run: ScheduleRun) -> Outcome:
    """Without the id of the message: alike outcomes are stored together."""
    topic = run.schedule.target["topic"]
    return Outcome(f"Sent to topic {topic}.", {"topic": topic})
