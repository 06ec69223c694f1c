"""CAPACITY, the wake-ups: Celery carries them, the database knows the runs."""

from __future__ import annotations

from celery import shared_task

from apps.capacity import running
from apps.capacity.services import RUN_TASK


@shared_task(name=RUN_TASK)
def carry_out(run_id: int) -> None:
    """Carry out one run, when nobody else does."""
    running.carry_out(run_id)
