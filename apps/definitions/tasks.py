"""DEFINE, the wake-ups: Celery carries them, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.definitions.services import hostnames


@shared_task(name=hostnames.CHECK_TASK)
def check_hostname(hostname_id: int) -> None:
    """Look for the proof of one claimed hostname."""
    hostnames.check_by_sweep(hostname_id=hostname_id)
