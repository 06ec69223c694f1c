"""Enqueue a task by name once the transaction is committed, and survive a dead Redis."""

from __future__ import annotations

import functools
import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from apps.core.clock import now

# When a wake-up was sent, in Unix seconds: how long it waits is seen in the queue.
SENT_AT = "sent_at"

logger = logging.getLogger(__name__)


def enqueue_on_commit(task_name: str, *args: int | str) -> None:
    """Send the task by name after commit; a broker that is away costs a delay until the next sweep, not the work."""
    transaction.on_commit(functools.partial(enqueue, task_name, *args))


def enqueue(task_name: str, *args: int | str, expires_s: float | None = None) -> bool:
    """Send the task by name now; never raises when the broker is away, but says False.

    Workers drop a wake-up that is older than `expires_s`, where one is as good as the next.
    """
    for last in (False, True):
        try:
            sent = {SENT_AT: now().timestamp()}
            current_app.send_task(task_name, args=args, retry=False, expires=expires_s, headers=sent)
        except (OperationalError, RedisError, OSError) as error:
            # The first failure may be a connection that died with an earlier Redis.
            if last:
                logger.warning("could not enqueue %s%s, the sweep will find the work: %s", task_name, args, error)
        else:
            return True
    return False
