"""Writers on a real PostgreSQL when one of them falls silent in mid-write: its cable was pulled, or it froze."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ConnectionHandler

from apps.core import unavailable
from apps.system.management.commands import migrate
from controlplane import database
from controlplane.database import Patience
from tests.servers import postgresql

pytestmark = pytest.mark.slow(reason="starts a PostgreSQL, and somebody has to be silent for longer than it bears")
LOCK = "SELECT pg_advisory_xact_lock(21360, 214)"
TRIES = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    # pytest's own folders are closed to PostgreSQL's user.
    with tempfile.TemporaryDirectory(prefix="spillway-") as folder, postgresql(Path(folder)) as url:
        yield url


@pytest.fixture
def connect(
    cluster: str, django_db_blocker: object, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Patience], BaseDatabaseWrapper]]:
    """A connection with the product's settings, as a process with this patience opens it."""
    opened: list[BaseDatabaseWrapper] = []

    def open_one(patience: Patience) -> BaseDatabaseWrapper:
        monkeypatch.setenv("SPILLWAY_PROCESS", "web")
        monkeypatch.setitem(database.PATIENCE, "web", patience)
        opened.append(ConnectionHandler({"default": database.database(cluster)})["default"])
        return opened[-1]

    with django_db_blocker.unblock():  # type: ignore[attr-defined] # not the database of the tests
        yield open_one
        for each in opened:
            each.close()


@contextmanager
def silent(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Somebody holds the lock in an open transaction and says nothing more."""
    connection.set_autocommit(False)
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
    yield


def tries_until_written(connection: BaseDatabaseWrapper) -> int:
    """How often a writer asks until it has the lock; more than TRIES when it never does."""
    for number in range(1, TRIES + 1):
        try:
            with connection.cursor() as cursor:
                cursor.execute(LOCK)
        except OperationalError as error:
            said = unavailable.unavailable(error)
            assert said is not None
            assert (said.status, said.detail) == (503, unavailable.BUSY)
        else:
            return number
    return TRIES + 1


def test_who_falls_silent_in_mid_write_is_thrown_out(connect: Callable[[Patience], BaseDatabaseWrapper]) -> None:
    first, second = (connect(Patience(idle_s=2, lock_s=1, statement_s=30)) for _ in range(2))
    with silent(first):
        # 1 s each: refused at least once while the other one is waited for, let in once it is gone.
        assert 1 < tries_until_written(second) <= 4
    with pytest.raises(DatabaseError) as caught, first.cursor() as cursor:
        cursor.execute("SELECT 1")
    said = unavailable.unavailable(caught.value)
    assert said is not None
    assert said.status == 503


@pytest.mark.exhaustive  # the limit is taken away by a planted defect as well
def test_without_the_limit_nobody_ever_writes_again(connect: Callable[[Patience], BaseDatabaseWrapper]) -> None:
    with silent(connect(Patience(idle_s=0, lock_s=1, statement_s=30))):
        assert tries_until_written(connect(Patience(idle_s=2, lock_s=1, statement_s=30))) > TRIES


def test_a_statement_without_end_is_ended(connect: Callable[[Patience], BaseDatabaseWrapper]) -> None:
    connection = connect(Patience(idle_s=10, lock_s=5, statement_s=1))
    began = time.monotonic()
    with pytest.raises(OperationalError) as caught, connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(30)")
    assert time.monotonic() - began < 20
    assert unavailable.unavailable(caught.value) is not None


def test_every_kind_of_process_says_its_limits(connect: Callable[[Patience], BaseDatabaseWrapper]) -> None:
    web, worker = database.PATIENCE["web"], database.PATIENCE["worker"]
    for patience in (web, worker):
        with connect(patience).cursor() as cursor:
            for name, seconds in (
                ("idle_in_transaction_session_timeout", patience.idle_s),
                ("lock_timeout", patience.lock_s),
                ("statement_timeout", patience.statement_s),
            ):
                cursor.execute("SELECT setting::int FROM pg_settings WHERE name = %s", [name])
                assert cursor.fetchone() == (seconds * 1000,), name
    # Whoever waits for a lock is refused before the silent one is thrown out, and has asked again within 15 s.
    assert web.lock_s < web.idle_s
    assert web.idle_s + web.lock_s <= 15


def test_what_the_url_says_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://u@db.example/s?connect_timeout=7&options=-c%20lock_timeout%3D1s"
    options = database.database(url)["OPTIONS"]
    assert (options["connect_timeout"], options["keepalives_idle"]) == (7, 5)
    assert options["options"].endswith("-c lock_timeout=1s")
    assert "tcp_keepalives_idle=5" in options["options"]


LIMITS = ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")


def limits_of(connection: BaseDatabaseWrapper) -> list[str]:
    """What the server holds us to at present."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in LIMITS))
        return list(cursor.fetchone())


@pytest.mark.parametrize("pooled", [True, False])
def test_in_a_session_of_a_pooler_each_transaction_says_its_limits_and_leaves_none(
    cluster: str, pooled: bool, django_db_blocker: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPILLWAY_PROCESS", "web")
    settings = database.database(cluster, cluster if pooled else "")
    assert ("options" in settings["OPTIONS"], settings["DISABLE_SERVER_SIDE_CURSORS"]) == (not pooled, pooled)
    connection = ConnectionHandler({"default": settings})["default"]
    web = database.PATIENCE["web"]
    said = [f"{seconds}s" for seconds in (web.idle_s, web.lock_s, web.statement_s)]
    with django_db_blocker.unblock():  # type: ignore[attr-defined] # not the database of the tests
        connection.set_autocommit(False)
        assert limits_of(connection) == said
        connection.commit()
        connection.set_autocommit(True)
        assert limits_of(connection) == (["0"] * 3 if pooled else said)
        connection.close()


def test_commands_go_past_the_pooler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPILLWAY_PROCESS", "command")
    found = database.database("postgresql://u@db.example/s", "postgresql://u@pooler.example:6432/s")
    assert (found["HOST"], found["DISABLE_SERVER_SIDE_CURSORS"]) == ("db.example", False)
    monkeypatch.setenv("SPILLWAY_PROCESS", "worker")
    found = database.database("postgresql://u@db.example/s", "postgresql://u@pooler.example:6432/s")
    assert (found["HOST"], found["DISABLE_SERVER_SIDE_CURSORS"]) == ("pooler.example", True)


def test_of_several_hosts_the_one_that_takes_writes_is_wanted() -> None:
    found = database.database("postgresql://u:p%40w@a:5433,b,[2001:db8::1]:5434/s?sslmode=require")
    assert (found["HOST"], found["PORT"], found["PASSWORD"]) == ("a,b,2001:db8::1", "5433,5432,5434", "p@w")
    assert found["OPTIONS"]["target_session_attrs"] == "read-write"
    assert found["OPTIONS"]["sslmode"] == "require"
    assert database.database("sqlite:////var/lib/s.sqlite3")["NAME"] == "/var/lib/s.sqlite3"
    assert "target_session_attrs" not in database.database("postgresql://u@a/s")["OPTIONS"]
    other = database.database("postgresql://u@a,b/s?target_session_attrs=primary")
    assert other["OPTIONS"]["target_session_attrs"] == "primary"


@pytest.mark.parametrize(
    ("wait_s", "lets_go_first"), [(0.1, True), pytest.param(30.0, False, marks=pytest.mark.exhaustive)]
)
def test_a_migration_lets_writes_go_first_while_somebody_reads_its_table(
    connect: Callable[[Patience], BaseDatabaseWrapper], wait_s: float, lets_go_first: bool
) -> None:
    reader, writer, changing = (connect(Patience(idle_s=60, lock_s=30, statement_s=0)) for _ in range(3))
    with writer.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS changed; CREATE TABLE changed (written integer)")
    for each in (reader, changing):
        each.inc_thread_sharing()
    reader.set_autocommit(False)
    with reader.cursor() as cursor:
        cursor.execute("SELECT * FROM changed")

    def leave() -> None:
        time.sleep(1)
        reader.commit()

    def change() -> None:
        with changing.cursor() as cursor:
            cursor.execute("ALTER TABLE changed ADD COLUMN more integer")

    slowest = 0.0
    with ThreadPoolExecutor(2) as others:
        ended = others.submit(leave)
        done = others.submit(migrate.in_turns, changing, change, lambda _: None, wait_s, 0.1)
        while not done.done():
            asked = time.monotonic()
            with writer.cursor() as cursor:
                cursor.execute("INSERT INTO changed (written) VALUES (1)")
            slowest = max(slowest, time.monotonic() - asked)
        done.result()
        ended.result()
    assert (slowest < 0.6) is lets_go_first
