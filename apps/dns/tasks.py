"""The wake-ups: Celery carries them, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.dns import asking, services


@shared_task(name=services.RECONCILE_ZONE_TASK)
def reconcile_zone(zone_id: int) -> None:
    """Bring servers to what the definitions say, each in its turn, then ask the resolvers about this zone."""
    services.reconcile_in_turns()
    asking.ask_due(zone_id=zone_id)


@shared_task(name=services.ASK_TASK)
def ask_resolvers() -> None:
    """Ask resolvers for the records whose last answer is old."""
    asking.ask_due()
