"""Tell open pages over Redis that something moved; losing an event only delays a page."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Sequence
from typing import Literal

import redis
from django.conf import settings
from django.db import transaction

from apps.core.stores import redis_clients

CHANNEL = "spillway:events"
TURNS = "spillway:turns"
Topic = Literal["samples", "nodes", "rollouts", "runs", "stacks", "zones", "definitions", "lines"]

logger = logging.getLogger(__name__)


@functools.cache
def _client() -> redis.Redis:
    return redis_clients.client(settings.REDIS_URL, socket_connect_timeout=0.5, socket_timeout=0.5)


def publish(topic: Topic, **data: int | str) -> None:
    """Publish `{"topic", **data}` to every event stream; a Redis that is away is logged, never raised."""
    try:
        pipe = _client().pipeline(transaction=False)
        # Counted first: who hears of it finds the new turn.
        pipe.hincrby(TURNS, topic)
        pipe.publish(CHANNEL, json.dumps({"topic": topic, **data}))
        pipe.execute()
    except redis.RedisError as error:
        logger.warning("could not publish %s: %s", topic, error)


def turns(topics: Sequence[Topic]) -> str | None:
    """A text that is another one after each event of these topics; None while Redis is away."""
    try:
        found = _client().hmget(TURNS, list(topics))
    except redis.RedisError as error:
        logger.warning("no turns of events: %s", error)
        return None
    return "-".join(each.decode() if isinstance(each, bytes) else "0" for each in found)


def publish_after_commit(topic: Topic, **data: int | str) -> None:
    """Publish once the transaction that made it true is committed."""
    transaction.on_commit(functools.partial(publish, topic, **data))
