"""Wiring only: settings read from the environment, URLs, Celery, WSGI and the event stream."""

from controlplane.celery import app as celery_app

__all__ = ["celery_app"]
