"""Redis, which wakes workers, and the queues in it."""

from __future__ import annotations

from django.conf import settings

from apps.observe.live import store as live
from apps.system.parts.part import Answer, Detail, State, worst
from apps.system.queues import Queue, queues

OLD_S = 300.0
LONG = 1000
START = "Start the workers of that queue, and look at what they wait for."


def redis() -> Answer:
    """Whether it answers, and drops nothing while it is full."""
    said = live.client().info()
    version, policy = said["redis_version"], said.get("maxmemory_policy", "noeviction")
    text = f"Redis {version}, {int(said['used_memory']) / 1e6:.0f} MB."
    if int(said.get("maxmemory", 0)) and policy != "noeviction":
        remedy = "Set maxmemory-policy to noeviction."
        return Answer(State.WARNING, f"{text} It drops wake-ups when it is full ({policy}).", remedy)
    if not settings.CELERY_BROKER_URL.startswith(("redis://", "sentinel://")):
        return Answer(State.FAILED, "The broker is no Redis.", "Set SPILLWAY_REDIS_URL to redis://host:6379/0.")
    return Answer(State.OK, text)


def waiting() -> Answer:
    """How many wake-ups wait in each queue, and the oldest of them."""
    details = tuple(_queue(each) for each in queues())
    state = worst(each.state for each in details)
    if state == State.OK:
        return Answer(state, "Workers keep up.", details=details)
    slow = ", ".join(each.name for each in details if each.state == state)
    return Answer(state, f"Wake-ups wait in {slow}.", START, details)


def _queue(queue: Queue) -> Detail:
    if not queue.length:
        return Detail(queue.name, State.OK, "empty")
    oldest = "of unknown age" if queue.oldest_s is None else f"the oldest for {queue.oldest_s:.0f} s"
    late = (queue.oldest_s or 0.0) > OLD_S or queue.length > LONG
    return Detail(queue.name, State.WARNING if late else State.OK, f"{queue.length} wait, {oldest}")
