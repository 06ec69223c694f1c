"""SQLite under load: who writes much keeps nobody out (apps/core/concurrency/politeness.py)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ConnectionHandler

from apps.core.concurrency import politeness
from controlplane.database import database

pytestmark = pytest.mark.slow(reason="somebody holds the lock for long, again and again")
ROUNDS, HELD_S = 8, 0.15


@pytest.fixture
def connect(tmp_path: Path, django_db_blocker: object) -> Iterator[ConnectionHandler]:
    """Connections to one SQLite with the product's settings, one for each thread."""
    entry = database(f"sqlite:///{tmp_path / 'shared.sqlite3'}")
    with django_db_blocker.unblock():  # type: ignore[attr-defined] # not the database of the tests
        handler = ConnectionHandler({"default": entry})
        with handler["default"].cursor() as cursor:
            cursor.execute("CREATE TABLE t (n integer)")
        yield handler
        handler.close_all()


def rounds_until_let_in(connect: ConnectionHandler) -> int:
    """How many transactions one writer makes, one after the other, before another one has written a line."""
    written, held = threading.Event(), threading.Event()

    def other() -> None:
        held.wait(30)
        _write(connect["default"])
        written.set()
        connect.close_all()

    thread = threading.Thread(target=other)
    thread.start()
    rounds, mine = 0, connect["default"]
    while rounds < ROUNDS and not written.is_set():
        mine.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
        mine.in_atomic_block = True
        _write(mine)
        held.set()
        time.sleep(HELD_S)
        _write(mine)
        mine.in_atomic_block = False
        mine.commit()
        mine.set_autocommit(True)
        rounds += 1
    thread.join(30)
    return rounds


def _write(connection: BaseDatabaseWrapper) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")


def test_who_writes_one_transaction_after_the_other_lets_others_write(connect: ConnectionHandler) -> None:
    assert rounds_until_let_in(connect) < ROUNDS / 2


def test_without_a_pause_others_wait_until_all_is_over(
    connect: ConnectionHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(politeness, "PAUSE_S", 0.0)
    assert rounds_until_let_in(connect) >= ROUNDS / 2


def test_short_transactions_and_reads_pause_nothing(
    connect: ConnectionHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    polite = politeness.Politeness()
    context = {"connection": connect["default"]}
    monkeypatch.setattr(politeness, "LONG_S", 60.0)
    for sql in (politeness.BEGIN, "INSERT", politeness.BEGIN):
        polite(lambda *_: None, sql, (), False, context)
    assert slept == []
