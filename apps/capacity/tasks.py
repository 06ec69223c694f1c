"""The wake-ups: Celery carries them, the database knows the runs."""

from __future__ import annotations

from celery import shared_task

from apps.capacity.run import running
from apps.capacity.services import RUN_TASK


@shared_task(name=RUN_TASK)
def carry_out(run_id: int) -> None:  # noqa: ARG001 - whose turn it is, the database says
    """Carry out what waits, account by account, when nobody else does."""
    running.carry_out_in_turns()
