"""The wake-up: Celery carries it, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.replacements import advancing


@shared_task(name=advancing.ADVANCE_TASK)
def advance(replacement_id: int) -> None:
    """Carry a replacement on, if it is time."""
    advancing.advance(replacement_id)
