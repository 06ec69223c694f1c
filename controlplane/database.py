"""The database: what every connection that Spillway opens says of itself, whatever stands in the URL.

A machine that loses its network in the middle of a transaction says nothing more: PostgreSQL would keep what it locked
for as long as TCP believes in it, which is hours, and everybody who writes would wait that long.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlunsplit

import dj_database_url

from apps.core.stores.hosts import split, user_and_hosts
from controlplane import environment, shapes

SQLITE, POSTGRESQL = "django.db.backends.sqlite3", "django.db.backends.postgresql"
OURS = "controlplane.postgresql"
LIMITS = "transaction_limits"  # among OPTIONS: what each transaction is told


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: of a transaction in which nobody says anything, of waiting for a lock, of a statement (0: no end).

    `silent_s`: after so long without any sign of life from the host itself it is away, however busy its database is.
    """

    idle_s: int
    lock_s: int
    statement_s: int
    silent_s: float = 10.0


# By kind of process. Whoever waits for a lock of a machine that vanished is answered 503 before that machine is thrown
# out, and asks again: threads are free again sooner than the lock is.
PATIENCE = {
    "web": Patience(idle_s=10, lock_s=5, statement_s=30, silent_s=0.5),  # whoever asks is told within a second
    "worker": Patience(idle_s=10, lock_s=15, statement_s=300),
    # Migrations, and what people run by hand: one statement may take as long as the table is large.
    "command": Patience(idle_s=60, lock_s=30, statement_s=0),
}
CONNECT_S = 2
# The other end is dead that many seconds after it fell silent: 5 + 3 × 2.
KEEPALIVES = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
USER_TIMEOUT_MS = 10_000


def be(process: str) -> None:
    """Say what kind of process this is, before the settings are read; what the environment says goes first."""
    os.environ.setdefault("SPILLWAY_PROCESS", process)


def kind() -> str:
    """What kind of process this is."""
    return os.environ.get("SPILLWAY_PROCESS") or "command"


def databases(file: Path) -> dict[str, dict[str, Any]]:
    """The setting DATABASES; reads two variables. `file` is that of SQLite where nothing else is said."""
    url = environment.text(
        "SPILLWAY_DATABASE_URL",
        f"sqlite:///{file}",
        "`postgresql://user@host/name`, with [several hosts](topologies.md#a-primary-and-a-standby) where there are "
        "standbys, or SQLite for one machine",
        shape=shapes.DATABASE,
        shown="sqlite:///var/spillway.sqlite3",
        secret=True,
    )
    pooler = environment.text(
        "SPILLWAY_POOLER_URL",
        "",
        "`postgresql://…` of [a PgBouncer](topologies.md#pgbouncer) before that database, in transaction mode: all "
        "processes use it; commands of `manage.py` and `spillway-admin` go to the database itself",
        shape=shapes.POSTGRESQL,
        secret=True,
    )
    return {"default": database(url, pooler)}


def database(url: str, pooler: str = "") -> dict[str, Any]:
    """The entry of Django's DATABASES; a pooler is asked by all but commands, whose sessions it could not keep."""
    pooled = bool(pooler) and kind() != "command"
    found = _parsed(pooler if pooled else url)
    if found["ENGINE"] == SQLITE:
        # Immediate transactions take the write lock at BEGIN: writers queue instead of failing half-way.
        found["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            # Others hold the lock for a second or two, and one of all who wait has it next: nobody is last that often.
            "timeout": 45,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        }
    elif found["ENGINE"] == POSTGRESQL:
        found["ENGINE"] = OURS
        found["OPTIONS"] = _guarded(found.get("OPTIONS", {}), PATIENCE.get(kind(), PATIENCE["command"]), pooled=pooled)
        # A cursor of the server lives in a session, and the next transaction may have another one.
        found["DISABLE_SERVER_SIDE_CURSORS"] = pooled
    return found


def _parsed(url: str) -> dict[str, Any]:
    """As dj_database_url reads it; of several hosts the one that takes writes is wanted."""
    parts = split(url)
    user, hosts = user_and_hosts(parts.netloc)
    one = url if len(hosts) == 1 else urlunsplit(parts._replace(netloc=f"{user}several"))
    found: dict[str, Any] = {**dj_database_url.parse(one, conn_max_age=60, conn_health_checks=True)}
    if len(hosts) > 1:
        found["HOST"] = ",".join(unquote(host) for host, _ in hosts)
        found["PORT"] = ",".join(str(port or 5432) for _, port in hosts)
        found["OPTIONS"] = {"target_session_attrs": "read-write", **found.get("OPTIONS", {})}
    return found


def _guarded(given: dict[str, Any], patience: Patience, *, pooled: bool) -> dict[str, Any]:
    """Both ends notice that the other is gone; what the URL says in its query goes first."""
    limits = {
        "idle_in_transaction_session_timeout": f"{patience.idle_s}s",
        "lock_timeout": f"{patience.lock_s}s",
        "statement_timeout": f"{patience.statement_s}s",
    }
    ours = {
        "connect_timeout": CONNECT_S,
        "keepalives": 1,
        **KEEPALIVES,
        "tcp_user_timeout": int(patience.silent_s * 1000),
    }
    if pooled:  # a session is everybody's: each transaction says its limits (controlplane/postgresql/base.py)
        return {**ours, LIMITS: limits, **given}
    session = {
        **limits,
        "tcp_user_timeout": f"{USER_TIMEOUT_MS}ms",
        **{f"tcp_{name}": str(value) for name, value in KEEPALIVES.items()},
    }
    words = " ".join(f"-c {name}={value}" for name, value in session.items())
    return {**ours, **given, "options": f"{words} {given.get('options', '')}".strip()}
