"""The wake-ups: Celery carries them, the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.definitions.writing.kinds import hostnames


@shared_task(name=hostnames.CHECK_TASK)
def check_hostname(hostname_id: int) -> None:  # noqa: ARG001 - whose turn it is, the database says
    """Verify claimed hostnames, account by account."""
    hostnames.check_in_turns()
