"""Topics: a bounded Redis stream per account and name; any number of subscribers read it from where they are.

Messages carry the key of the run that sent them, the same at every attempt. A second attempt looks first whether the
one before came through; subscribers that must not act twice still compare keys.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import redis
from django.conf import settings

from apps.accounts.actors import Actor
from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError, Invalid, SpillwayError
from apps.core.stores import redis_clients
from apps.schedules.models import ScheduleRun

MOST_MESSAGES, MOST_BYTES = 10_000, 4_000_000
KEPT_S = 7 * 86_400
LOOK_BACK = timedelta(seconds=60)
ROUND_S = 0.25
_MESSAGE_ID = re.compile(r"[0-9]{1,15}-[0-9]{1,15}")


class Unavailable(SpillwayError):
    """Topics live in Redis, which is away at present."""

    status = 503
    title = "Topics are unavailable"


@dataclass(frozen=True, slots=True)
class Message:
    """One message: `id` orders it in the topic, `key` the same for every attempt of the run that sent it."""

    id: str
    key: str
    schedule: str
    scheduled_at: str
    message: str
    sent: str


@functools.cache
def client() -> redis.Redis:
    """The connection pool."""
    return redis_clients.client(
        settings.REDIS_URL, socket_connect_timeout=0.5, socket_timeout=2.0, decode_responses=True
    )


def stream_of(account_id: int, topic: str) -> str:
    """The key of a topic's stream."""
    return f"spillway:topic:{account_id}:{topic}"


def send(runs: Sequence[ScheduleRun]) -> list[str]:
    """Put a message of each run into its topic, in one trip; their ids. Raises redis.RedisError."""
    known = {run.pk: _sent_before(run) for run in runs if run.attempt > 1}
    pipe = client().pipeline(transaction=False)
    new = [run for run in runs if not known.get(run.pk)]
    for run in new:
        stream, fields = stream_of(run.account_id, run.schedule.target["topic"]), _fields(run)
        most = max(1, min(MOST_MESSAGES, MOST_BYTES // sum(map(len, fields.values()))))
        pipe.xadd(stream, fields, maxlen=most, approximate=True)  # type: ignore[arg-type] # a dict of texts
        pipe.expire(stream, KEPT_S)
    message_ids = iter(pipe.execute()[::2] if new else ())
    return [known.get(run.pk) or str(next(message_ids)) for run in runs]


def _fields(run: ScheduleRun) -> dict[str, str]:
    schedule = run.schedule
    return {
        "key": run.key,
        "schedule": f"{schedule.account.name}/{schedule.name}",
        "scheduled_at": run.scheduled_at.isoformat(),
        "message": schedule.target["message"],
        "sent": run.body,
    }


def _sent_before(run: ScheduleRun) -> str:
    """The id of the message that an earlier attempt sent, empty when none came through."""
    stream = stream_of(run.account_id, run.schedule.target["topic"])
    since = int((run.due_at - LOOK_BACK).timestamp() * 1000)
    for message_id, fields in _rows(client().xrange(stream, min=since)):
        if fields.get("key") == run.key:
            return message_id
    return ""


def read(actor: Actor, topic: str, *, after: str = "", limit: int = 100, wait_s: float = 0.0) -> list[Message]:
    """Messages of a topic of the actor's account after an id, oldest first; waits that long for the first.

    A topic is there when something was sent to it; one that nobody sends to is empty. Raises Invalid, Unavailable.
    """
    stream, start = stream_of(actor.account.pk, _topic(topic)), f"({_message_id(after)}" if after else "-"
    ends = time.monotonic() + wait_s
    try:
        while not (found := _rows(client().xrange(stream, min=start, count=limit))) and time.monotonic() < ends:
            time.sleep(ROUND_S)
    except redis.RedisError as error:
        raise Unavailable("Topics are unavailable; try again in a moment.") from error
    return [_message(message_id, fields) for message_id, fields in found]


def _message(message_id: str, fields: dict[str, str]) -> Message:
    names = ("key", "schedule", "scheduled_at", "message", "sent")
    return Message(message_id, *(fields.get(name, "") for name in names))


def _rows(answer: Any) -> list[tuple[str, dict[str, str]]]:
    return list(answer)


def _topic(name: str) -> str:
    try:
        return grammar.name(name)
    except GrammarError as error:
        raise Invalid([FieldError("/topic", error.code, error.message)]) from None


def _message_id(text: str) -> str:
    if not _MESSAGE_ID.fullmatch(text):
        raise Invalid([FieldError("/after", "message_id", "Take `after` from the id of a message that you have read.")])
    return text
