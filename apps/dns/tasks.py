"""PUSH of zones, the wake-ups: Celery carries them, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.dns import asking, services


@shared_task(name=services.RECONCILE_ZONE_TASK)
def reconcile_zone(zone_id: int) -> None:
    """Bring the zone's server to what the definitions say, then ask the resolvers."""
    services.reconcile_zone(zone_id=zone_id)
    asking.ask_due(zone_id=zone_id)


@shared_task(name=services.ASK_TASK)
def ask_resolvers() -> None:
    """Ask resolvers for the records whose last answer is old."""
    asking.ask_due()
