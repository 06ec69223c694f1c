"""Workers that begin in the same moment, each in a thread with its own connection to the database.

They see what is committed, so their tests are transactional; others ask inside one transaction that is taken back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import connection, connections

T = TypeVar("T")
PATIENCE_S = 60.0  # of a busy machine
LONG_ENOUGH_S = 0.1


def at_once(*works: Callable[[], T]) -> list[T]:
    """What each of them answers, in their order; what one of them raises is raised here."""
    together = threading.Barrier(len(works))
    answers: dict[int, T] = {}
    raised: list[BaseException] = []

    def begin(number: int) -> None:
        try:
            together.wait(PATIENCE_S)
            answers[number] = works[number]()
        except BaseException as error:  # noqa: BLE001 - it is raised again where the test sees it
            raised.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=begin, args=(number,), daemon=True) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    for error in raised:
        raise error
    assert not any(thread.is_alive() for thread in threads), "somebody waits for ever"
    return [answers[number] for number in range(len(works))]


def wait_for(other: threading.Event) -> None:
    """Keep this transaction open until the other worker is done, or has to wait for what is held here.

    SQLite does not say who waits; its one writer is this transaction, so a moment is enough there.
    """
    long_enough = PATIENCE_S if connection.vendor == "postgresql" else LONG_ENOUGH_S
    deadline = time.monotonic() + long_enough
    while not other.wait(0.01) and not _somebody_waits_for_this() and time.monotonic() < deadline:
        continue


def _somebody_waits_for_this() -> bool:
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        row = cursor.fetchone()
    return bool(row and row[0])
