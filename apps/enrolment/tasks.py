"""Tasks: each calls one service; the database knows the work."""

from __future__ import annotations

from celery import shared_task

from apps.enrolment import renewing, rotating


@shared_task(name=renewing.RENEW_TASK)
def renew() -> None:
    """Renew certificates of nodes that are due, and retire an authority that no node needs any more."""
    renewing.renew()
    rotating.finish()
