"""The wake-up: Celery carries it, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.webhooks import delivering
from apps.webhooks.services import DELIVER_TASK


@shared_task(name=DELIVER_TASK)
def deliver(webhook_id: int) -> None:  # noqa: ARG001 - whose turn it is, the database says
    """Send what is due, account by account."""
    delivering.deliver_in_turns()
