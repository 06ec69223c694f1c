"""Wiring of Celery: tasks are wake-ups, the database is the record of the work (docs/adr)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

app = Celery("spillway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
