"""Wake-ups that wait for a worker, by queue: how many, and for how long the oldest one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from apps.core.clock import now
from apps.core.queue import SENT_AT
from apps.observe.live import store as live

NAMES = (settings.CELERY_TASK_DEFAULT_QUEUE, *sorted({each["queue"] for each in settings.CELERY_TASK_ROUTES.values()}))


@dataclass(frozen=True, slots=True)
class Queue:
    """`oldest_s` is 0 where none waits, and None where the oldest one does not say when it was sent."""

    name: str
    length: int
    oldest_s: float | None


def queues() -> list[Queue]:
    """All of them, in one trip. Raises redis.RedisError."""
    with live.client().pipeline(transaction=False) as pipe:
        for name in NAMES:
            pipe.llen(name)
            pipe.lindex(name, -1)  # they are pushed to the left and taken from the right
        said = pipe.execute()
    return [Queue(name, said[2 * at], _age_s(said[2 * at + 1])) for at, name in enumerate(NAMES)]


def _age_s(message: str | None) -> float | None:
    if message is None:
        return 0.0
    try:
        headers: dict[str, Any] = json.loads(message)["headers"]
        return max(0.0, now().timestamp() - float(headers[SENT_AT]))
    except (ValueError, KeyError, TypeError):
        return None
