"""Celery: tasks are wake-ups, the database is the record of the work (docs/decisions)."""

import os
import sys
import time
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_ready
from kombu.transport import redis

from controlplane import database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
if "celery" in sys.argv[0]:  # every process imports this module, the workers are started by it
    database.be("worker")
    os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # they import every page, which takes each worker seconds

app = Celery("spillway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


class Unacknowledged(redis.QoS):
    """Messages that a worker has not acknowledged; it puts them back when it ends.

    A worker that loses Redis has nobody to tell what becomes of them, and kombu 5.7 would end it: sweeps find the work.
    """

    def ack(self, delivery_tag: str) -> None:
        """Nothing where the connection is gone, as in all of these."""
        if not self._is_gone:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Give a message back, or away."""
        if not self._is_gone:
            super().reject(delivery_tag, requeue=requeue)

    def restore_unacked(self, client: Any = None) -> Any:
        """Put back all of them."""
        return [] if self._is_gone else super().restore_unacked(client)

    @property
    def _is_gone(self) -> bool:
        connection = self.channel.connection
        return connection is None or connection.client is None


redis.Channel.QoS = Unacknowledged


@worker_init.connect
def wait_for_the_key(**_: object) -> None:
    """A worker takes nothing before it is known to have the key of its database (apps/core/secrets/keys.py)."""
    from apps.core.secrets import keys

    keys.wait_until_it_fits(time.sleep)


@worker_init.connect
def leave_what_is_loaded(**_: object) -> None:
    """The processes of a worker are forks of this one."""
    from apps.system import garbage

    garbage.leave_what_is_loaded()


@worker_ready.connect
def be_heard_of(sender: Any, **_: object) -> None:
    """From now on others know that this worker takes from its queues."""
    from apps.system import heartbeat

    heartbeat.begin("worker", ",".join(sorted(sender.app.amqp.queues.consume_from)))
