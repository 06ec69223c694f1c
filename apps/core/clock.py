"""The one place that asks what time it is, by the clock of the database that all machines share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

# Below this the machine's own clock is as good as what was measured.
TOLERANCE = timedelta(milliseconds=250)
# An answer that took longer says too little about the instant at which it was true.
LONGEST_QUESTION_S = 0.2
# The counter of a machine may stray from the database's clock by so little in this time that nobody minds.
LONGEST_TRUST_S = 600.0


@dataclass(frozen=True, slots=True)
class Anchor:
    """What the database's clock said when this machine's counter, which nobody can set, stood at `ticks`."""

    instant: datetime
    ticks: float


_anchor: Anchor | None = None


def now() -> datetime:
    """The present instant, aware, UTC; a machine whose own clock is off goes by what the database told it."""
    local, told = timezone.now(), _told()
    return local if told is None or abs(local - told) <= TOLERANCE else told


def ahead_of_database_s() -> float | None:
    """By how much this machine's clock is ahead of the database's; None where that was not measured lately."""
    told = _told()
    return None if told is None else (timezone.now() - told).total_seconds()


def database_now() -> datetime:
    """The present instant by the database's clock, aware, UTC: what leases are measured with.

    Workers on several machines disagree about the time; the database they share does not.
    """
    return _ask(connection) if connection.vendor == "postgresql" else timezone.now()


def on_connection(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Ask with each new connection: every process has its own, and none of them for long."""
    if connection.vendor == "postgresql":
        _ask(connection)


def anchor(instant: datetime, ticks: float) -> None:
    """From now on `now` goes by this."""
    global _anchor  # noqa: PLW0603 - one clock per process
    _anchor = Anchor(instant, ticks)


def ticks() -> float:
    """Seconds of a counter that goes on while the machine sleeps and that nobody can set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _told() -> datetime | None:
    if _anchor is None or (passed := ticks() - _anchor.ticks) > LONGEST_TRUST_S:
        return None
    return _anchor.instant + timedelta(seconds=passed)


def _ask(database: BaseDatabaseWrapper) -> datetime:
    began = ticks()
    with database.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    ended = ticks()
    assert row is not None, "SELECT clock_timestamp() always answers one row"  # noqa: S101
    instant: datetime = row[0]
    if ended - began <= LONGEST_QUESTION_S:
        anchor(instant, (began + ended) / 2)
    return instant
