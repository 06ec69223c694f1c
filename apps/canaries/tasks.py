"""The wake-up: Celery carries it, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.canaries import advancing


@shared_task(name=advancing.ADVANCE_TASK)
def advance(canary_id: int) -> None:
    """Carry a canary on, if it is time."""
    advancing.advance(canary_id)
