"""Consoles, workers and collectors behind PgBouncer in transaction mode: few sessions, which all of them share."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import ClientCursor
from psycopg.rows import dict_row

from tests.e2e.installation import wait_until
from tests.e2e.machines import Machines, address, five_machines
from tests.e2e.verdicts import trial
from tests.e2e.watching import fill, watched
from tests.servers import as_user

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not shutil.which("pgbouncer"), reason="apt install pgbouncer"),
]
PORT, SESSIONS, ROUTES = 6432, 6, 300
WITHOUT_WRITES_S, AWAY_S = 5.0, 2.0
CONTROL = (
    "tests/e2e/test_topologies_pgbouncer.py::test_control_a_process_that_does_not_know_loses_its_cursor_and_its_limits"
)
# As docs/operate/topologies.md has it, with sessions that change hands at each transaction.
SETTINGS = f"""
[databases]
spillway = host={address("c")} port=5432 dbname=spillway user=spillway
[pgbouncer]
listen_addr = {address("c")}
listen_port = {PORT}
unix_socket_dir =
auth_type = any
admin_users = spillway
pool_mode = transaction
default_pool_size = {SESSIONS}
max_client_conn = 200
query_wait_timeout = 10
idle_transaction_timeout = 60
tcp_keepidle = 5
tcp_keepintvl = 2
tcp_keepcnt = 3
server_round_robin = 1
ignore_startup_parameters = options
"""
POOLER = f"postgresql://spillway@{address('c')}:{PORT}/spillway"
ADMIN = f"postgresql://spillway@{address('c')}:{PORT}/pgbouncer"
# What breaks first where a process does not know that it is pooled.
LONG_READ = """
import os
os.environ["SPILLWAY_PROCESS"] = "worker"
import django
django.setup()
from django.db import connection
from apps.definitions.models import Route
found = sum(1 for _ in Route.objects.iterator(chunk_size=5))
with connection.cursor() as cursor:
    cursor.execute("SHOW lock_timeout")
    outside = cursor.fetchone()[0]
from django.db import transaction
with transaction.atomic(), connection.cursor() as cursor:
    cursor.execute("SHOW lock_timeout")
    print(found, outside, cursor.fetchone()[0])
"""


def start_pgbouncer(machines: Machines) -> None:
    """On c, before PostgreSQL."""
    folder = machines.folder / "pgbouncer"
    folder.mkdir(exist_ok=True)
    (folder / "pgbouncer.ini").write_text(SETTINGS)
    user = as_user()[1]
    other = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if os.geteuid() == 0 else []
    machines.start("c", "pgbouncer", [*other, shutil.which("pgbouncer") or "", str(folder / "pgbouncer.ini")])
    wait_until(lambda: bool(pools(machines)), "pgbouncer answers")


@pytest.fixture(scope="module")
def pooled() -> Iterator[Machines]:
    """Five machines, whose consoles go to PostgreSQL by way of PgBouncer."""
    with five_machines() as machines:
        fill(machines, ROUTES)
        start_pgbouncer(machines)
        machines.restart_consoles(SPILLWAY_POOLER_URL=POOLER)
        yield machines


def pools(machines: Machines) -> list[dict[str, Any]]:
    """What it says of its pools; nothing where it does not answer."""

    def ask() -> list[dict[str, Any]]:
        try:
            with psycopg.connect(ADMIN, autocommit=True, row_factory=dict_row, cursor_factory=ClientCursor) as asked:
                return asked.execute(b"SHOW POOLS").fetchall()
        except psycopg.Error:
            return []

    return machines.outside(ask)


def long_read(machines: Machines, **settings: str) -> str:
    """What a process says that reads much and then names its limit for locks, outside and inside of a transaction."""
    machines.start("a", "reader", [sys.executable, "-c", LONG_READ], DJANGO_SETTINGS_MODULE="controlplane.settings",
                   PYTHONPATH=".", **settings)  # fmt: skip
    machines.processes.pop(("a", "reader")).wait(60)
    return machines.log("a", "reader").strip().splitlines()[-1]


def test_behind_pgbouncer_everything_works_and_its_restart_costs_seconds(pooled: Machines) -> None:
    with trial("PgBouncer in transaction mode, killed and started again", CONTROL) as found:
        with watched(pooled) as seen:
            time.sleep(15)
            with seen.during("long read"):
                assert long_read(pooled).endswith(" 0 15s"), pooled.log("a", "reader")
            before = seen.pause_s
            with seen.during("killed"):
                pooled.stop("c", "pgbouncer", signal.SIGKILL)
                time.sleep(AWAY_S)
                start_pgbouncer(pooled)
                again = seen.writes_again(time.monotonic())
            with seen.during("after"):
                time.sleep(5)
                clients = sum(each["cl_active"] + each["cl_waiting"] for each in pools(pooled))
                (sessions,) = pooled.sql("SELECT count(*) FROM pg_stat_activity WHERE client_port > 0")[0]
        found.saw(f"{clients} connections share {sessions - 1} sessions")
        found.saw(f"{sum(seen.answers.values())} requests, {len(seen.stored)} writes")
        found.saw(f"away for {AWAY_S:g} s; writes that no console took: {dict(seen.nowhere)}")
        found.saw(f"longest pause {seen.pause_s:.1f} s, before that {before:.1f} s")
        assert seen.requests_failed() == 0
        assert sessions - 1 <= SESSIONS < clients, "the one more is the question itself"
        found.took("writes go on", again, WITHOUT_WRITES_S)
        seen.nothing_is_lost()


def test_control_a_process_that_does_not_know_loses_its_cursor_and_its_limits(pooled: Machines) -> None:
    with watched(pooled):
        unknowing = long_read(pooled, SPILLWAY_DATABASE_URL=POOLER, SPILLWAY_POOLER_URL="")
    assert "_django_curs_" in unknowing, unknowing
