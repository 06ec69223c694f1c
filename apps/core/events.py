"""Tell open pages over Redis that something moved; losing an event only delays a page."""

from __future__ import annotations

import functools
import json
import logging
from typing import Literal

import redis
from django.conf import settings
from django.db import transaction

CHANNEL = "spillway:events"
Topic = Literal["samples", "nodes", "rollouts", "runs", "stacks", "zones", "definitions", "lines"]

logger = logging.getLogger(__name__)


@functools.cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=0.5, socket_timeout=0.5)


def publish(topic: Topic, **data: int | str) -> None:
    """Publish `{"topic", **data}` to every event stream; a Redis that is away is logged, never raised."""
    try:
        _client().publish(CHANNEL, json.dumps({"topic": topic, **data}))
    except redis.RedisError as error:
        logger.warning("could not publish %s: %s", topic, error)


def publish_after_commit(topic: Topic, **data: int | str) -> None:
    """Publish once the transaction that made it true is committed."""
    transaction.on_commit(functools.partial(publish, topic, **data))
