"""`manage.py migrate`: Django's, which lets others write while it waits for a table that somebody reads.

Who changes a table needs it alone. PostgreSQL lets nobody overtake: behind a migration that waits for a backup to end,
every write would wait as well. So a migration waits for a moment, gives up its place, and queues again a while later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

# Others stand still for at most the first, which is below what docs/operate/compatibility.md allows an upgrade.
WAIT_S, PAUSE_S, TRIES = 2.0, 4.0, 150
LOCK_NOT_AVAILABLE = "55P03"
QUEUED_AGAIN = "\nSomebody uses a table that has to change. Writes go first; this is tried again."
GIVEN_UP = (
    "Somebody has used a table that has to change for fifteen minutes: a backup, or a transaction that was forgotten "
    "(SELECT * FROM pg_stat_activity ORDER BY xact_start). What was applied so far stays. End that, and run this again."
)


def in_turns(
    connection: BaseDatabaseWrapper,
    work: Callable[[], object],
    say: Callable[[str], object],
    wait_s: float = WAIT_S,
    pause_s: float = PAUSE_S,
) -> None:
    """Do what needs tables alone; what is done twice must be as if it was done once.

    Raises CommandError when others use a table for too long.
    """
    for _ in range(TRIES):
        try:
            with waiting_at_most(connection, wait_s):
                work()
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") != LOCK_NOT_AVAILABLE:
                raise
        else:
            return
        say(QUEUED_AGAIN)
        time.sleep(pause_s)
    raise CommandError(GIVEN_UP)


@contextmanager
def waiting_at_most(connection: BaseDatabaseWrapper, seconds: float) -> Iterator[None]:
    """For each lock, on PostgreSQL; on SQLite whoever writes has the whole file."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {seconds * 1000:.0f}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


class Command(migrate.Command):
    """The words are Django's."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Each migration is a transaction of its own, so a further try begins with the one that did not get a table."""
        again = super().handle
        in_turns(connections[options["database"]], lambda: again(*args, **options), self.stdout.write)
