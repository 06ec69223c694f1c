"""The event stream for uvicorn: `uvicorn controlplane.events:app`."""

import os

import django

from controlplane import database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
database.be("web")
django.setup()

from apps.observe.live.stream import EventStream  # noqa: E402 - Django must be set up before apps are imported
from apps.system import heartbeat  # noqa: E402

app = EventStream()
heartbeat.begin("events")
