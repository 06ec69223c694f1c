"""The wake-up: Celery carries it, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.schedules.run import working
from apps.schedules.run.ticking import WORK_TASK


@shared_task(name=WORK_TASK)
def work() -> None:
    """Act on runs until none is due."""
    working.work_off()
