"""Target topic: a message into a stream of the account, with the fire's key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import redis

from apps.schedules.models import Fire
from apps.schedules.targets.contract import Outcome, TargetFailed
from apps.schedules.triggers import topics

AWAY = "Redis, which stores topics, did not answer."


def act(fire: Fire, now: datetime) -> Outcome:
    """Send one message. Raises TargetFailed while Redis is away."""
    del now
    try:
        topics.send([fire])
    except redis.RedisError as error:
        raise TargetFailed(AWAY) from error
    return _outcome(fire)


def act_on_many(fires: Sequence[Fire], now: datetime) -> list[Outcome | TargetFailed]:
    """The same for many in one trip; when it breaks, a second attempt looks what came through."""
    del now
    try:
        topics.send(fires)
    except redis.RedisError:
        return [TargetFailed(AWAY) for _ in fires]
    return [_outcome(fire) for fire in fires]


def _outcome(fire: Fire) -> Outcome:
    """Without the place of the message: alike outcomes are stored together."""
    topic = fire.schedule.target["topic"]
    return Outcome(f"Sent to topic {topic}.", {"topic": topic})
