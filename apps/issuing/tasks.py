"""The wake-up: Celery carries it, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.definitions.issuing.orders import ISSUE_TASK
from apps.issuing import services


@shared_task(name=ISSUE_TASK)
def issue_certificates() -> None:
    """Bring orders forward that are due, account by account."""
    services.issue_in_turns()
