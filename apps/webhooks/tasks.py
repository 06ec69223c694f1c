"""Webhooks, the wake-ups: Celery carries them, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.audit.chain import FOLLOW_TASK
from apps.webhooks import delivering, following
from apps.webhooks.services import DELIVER_TASK


@shared_task(name=FOLLOW_TASK)
def follow_audit() -> None:
    """Make deliveries of what the audit record has that was not followed yet."""
    while following.follow():
        continue


@shared_task(name=DELIVER_TASK)
def deliver(webhook_id: int) -> None:
    """Send what is due for one endpoint."""
    delivering.deliver(webhook_id=webhook_id)
