"""Celery: tasks are wake-ups, the database is the record of the work (docs/decisions)."""

import os
import sys
import time
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_ready

from controlplane import database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
if "celery" in sys.argv[0]:  # every process imports this module, the workers are started by it
    database.be("worker")
    os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # they import every page, which takes each worker seconds

app = Celery("spillway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def wait_for_the_key(**_: object) -> None:
    """A worker takes nothing before it is known to have the key of its database (apps/core/secrets/keys.py)."""
    from apps.core.secrets import keys

    keys.wait_until_it_fits(time.sleep)


@worker_ready.connect
def be_heard_of(sender: Any, **_: object) -> None:
    """From now on others know that this worker takes from its queues."""
    from apps.system import heartbeat

    heartbeat.begin("worker", ",".join(sorted(sender.app.amqp.queues.consume_from)))
