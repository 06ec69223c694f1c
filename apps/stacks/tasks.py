"""The wake-ups: Celery carries them, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.fleet.services import STACK_TASK
from apps.stacks.cloud import reading
from apps.stacks.run import turns


@shared_task(name=STACK_TASK)
def reconcile_stack(stack_id: int) -> None:  # noqa: ARG001 - whose turn it is, the database says
    """Bring stacks to what the definitions say, as far as it goes now, account by account."""
    turns.reconcile_in_turns()


@shared_task(name=reading.READ_STACK_TASK)
def read_stack(stack_id: int) -> None:  # noqa: ARG001 - whose turn it is, the database says
    """Ask clouds for the health and the numbers of what stands there, account by account."""
    reading.read_in_turns()
