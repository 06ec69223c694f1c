"""Wiring of the pages and the API for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

from controlplane import database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
database.be("web")

application = get_wsgi_application()

from apps.system import heartbeat  # noqa: E402 - Django must be set up before apps are imported

heartbeat.begin("web")
