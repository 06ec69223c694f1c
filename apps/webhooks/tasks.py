"""Webhooks, the wake-up: Celery carries it, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.webhooks import delivering
from apps.webhooks.services import DELIVER_TASK


@shared_task(name=DELIVER_TASK)
def deliver(webhook_id: int) -> None:
    """Send what is due for one endpoint."""
    delivering.deliver(webhook_id=webhook_id)
