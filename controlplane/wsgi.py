"""Wiring of the pages and the API for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

from controlplane import database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
database.be("web")

application = get_wsgi_application()

import controlplane.urls  # noqa: E402, F401 - pages are loaded before somebody waits for one
