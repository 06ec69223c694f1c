"""Celery beat for the bench of schedules: the application that beat and its worker load, and the task that they run.

The task adds its number to a stream, as our topics do. SPILLWAY_BEAT says how many entries, every how many seconds,
from which instant on, spread over how many seconds, and after how many tasks beat stores what it ran (0: every three
minutes, as it does unasked).
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import redis
from celery import Celery
from celery.schedules import schedule

COUNT, EVERY_S, FIRST, SPREAD_S, SYNC_EVERY = (
    int(each) for each in os.environ.get("SPILLWAY_BEAT", "0 10 0 0 0").split()
)
QUEUE = "beat"
# Not the name of the queue: that is a list in the same Redis.
STREAM = "beat:effects"
app = Celery("beat", broker=os.environ.get("SPILLWAY_REDIS_URL"))
app.conf.update(task_ignore_result=True, task_default_queue=QUEUE, beat_max_loop_interval=1, beat_sync_every=SYNC_EVERY)


def _entry(number: int) -> dict[str, Any]:
    first = datetime.fromtimestamp(FIRST + (number % SPREAD_S if SPREAD_S else 0), UTC)
    every = schedule(timedelta(seconds=EVERY_S), app=app)
    last = first - timedelta(seconds=EVERY_S)
    return {"task": "note", "schedule": every, "args": (number,), "last_run_at": last}


app.conf.beat_schedule = {f"s-{number}": _entry(number) for number in range(COUNT)}
_client = redis.Redis.from_url(os.environ.get("SPILLWAY_REDIS_URL", "redis://127.0.0.1"))


@app.task(name="note")
def note(number: int) -> None:
    """One message."""
    _client.xadd(STREAM, {"number": number})
