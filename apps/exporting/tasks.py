"""The wake-up: Celery carries it, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.exporting.publishing import services


@shared_task(name=services.PUBLISH_TASK)
def publish_definitions() -> None:
    """Publish where it is due, etcd by etcd."""
    services.publish_in_turns()
