"""Kernel: the one place that asks what time it is."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.utils import timezone


def now() -> datetime:
    """The present instant, aware, UTC."""
    return timezone.now()


def database_now() -> datetime:
    """The present instant by the database's clock, aware, UTC: what leases are measured with.

    Workers on several machines disagree about the time; the database they share does not.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            row = cursor.fetchone()
        assert row is not None, "SELECT clock_timestamp() always answers one row"  # noqa: S101
        instant: datetime = row[0]
        return instant
    return timezone.now()
