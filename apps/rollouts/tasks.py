"""The wake-ups: Celery carries them, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.core.queue import enqueue
from apps.fleet.services import CHANGED_TASK, RECONCILE_TASK
from apps.rollouts import services, tickets


@shared_task(name=RECONCILE_TASK)
def reconcile_fleet(fleet_id: int) -> None:
    """Bring the fleet's nodes to what the definitions say."""
    services.reconcile_fleet(fleet_id=fleet_id)


@shared_task(name=CHANGED_TASK)
def reconcile_changed(fleet_id: int) -> None:
    """The same after a change of definitions, unless it went out with others meanwhile."""
    services.reconcile_changed(fleet_id=fleet_id)


@shared_task(name=tickets.TICKETS_TASK)
def bring_ticket_secrets(fleet_id: int) -> None:
    """Renew the secrets of session tickets where they are due, and give them to the fleet's nodes."""
    tickets.bring(fleet_id=fleet_id)


@shared_task(name="apps.rollouts.tasks.sweep")
def sweep() -> None:
    """Wake a worker for every fleet on which there is something to do."""
    for fleet_id in services.fleets_to_sweep():
        enqueue(RECONCILE_TASK, fleet_id)
