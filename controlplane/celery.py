"""Wiring of Celery: tasks are wake-ups, the database is the record of the work (docs/adr)."""

import os
import sys

from celery import Celery

from controlplane import database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
if "celery" in sys.argv[0]:  # every process imports this module, the workers are started by it
    database.be("worker")

app = Celery("spillway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
