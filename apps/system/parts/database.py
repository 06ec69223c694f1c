"""The database: its version, what this user may do, its schema, who waits for locks, connections."""

from __future__ import annotations

from typing import Any

from django.db import connection

from apps.observe import schema
from apps.system.parts.part import Answer, State

OLDEST_POSTGRESQL = 14
LONG_WAIT_S = 5.0
CROWDED = 0.8


def server() -> Answer:
    """Whether it is one that Spillway can use, and lets this user do what migrations do."""
    if connection.vendor == "sqlite":
        row = _row("SELECT sqlite_version(), (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)")
        return Answer(State.OK, f"SQLite {row[0]}, {_size(row[1])}, for one machine.")
    row = _row(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'), "
        "has_schema_privilege(current_user, current_schema(), 'CREATE'), pg_database_size(current_database()), "
        "pg_is_in_recovery()"
    )
    number, version, may_create, size, is_standby = row
    said = f"PostgreSQL {version}, {_size(size)}."
    if number < OLDEST_POSTGRESQL * 10_000:
        return Answer(State.FAILED, said, f"Install PostgreSQL {OLDEST_POSTGRESQL} or later.")
    if is_standby:
        return Answer(State.FAILED, f"{said} It is a standby.", "Name the primary in SPILLWAY_DATABASE_URL.")
    if not may_create:
        remedy = "As its owner: GRANT CREATE ON SCHEMA public TO <the user of SPILLWAY_DATABASE_URL>."
        return Answer(State.FAILED, f"{said} This user may not create tables.", remedy)
    return Answer(State.OK, said)


def tables() -> Answer:
    """Whether its tables are those of this code."""
    verdict = schema.verdict(connection)
    if verdict.newer:
        return Answer(State.FAILED, verdict.newer, "Run the newer version, or restore an older backup.")
    if verdict.problem:
        return Answer(State.FAILED, verdict.problem, verdict.remedy)
    return Answer(State.OK, "They are those of this version.")


def locks() -> Answer:
    """Who waits for whom."""
    if connection.vendor == "sqlite":
        return Answer(State.UNKNOWN, "SQLite does not say who waits.")
    waiting, longest, idle = _row(
        "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), "
        "max(extract(epoch FROM clock_timestamp() - state_change)) FILTER (WHERE wait_event_type = 'Lock'), "
        "count(*) FILTER (WHERE state = 'idle in transaction' AND clock_timestamp() - state_change > interval '5 s') "
        "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    if waiting and longest >= LONG_WAIT_S:
        said = f"{waiting} wait for a lock, the longest for {longest:.0f} s; {idle} transactions are idle."
        remedy = "Find the holder: SELECT pg_blocking_pids(pid), query FROM pg_stat_activity WHERE "
        return Answer(State.WARNING, said, f"{remedy}wait_event_type = 'Lock'.")
    return Answer(State.OK, f"{waiting} wait for a lock." if waiting else "Nobody waits for a lock.")


def connections() -> Answer:
    """How many of those that the server gives are in use."""
    if connection.vendor == "sqlite":
        return Answer(State.OK, "SQLite has no limit.")
    used, most, ours = _row(
        "SELECT count(*), current_setting('max_connections')::int, "
        "count(*) FILTER (WHERE datname = current_database()) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend'"
    )
    said = f"{used} of {most} are in use, {ours} by this database."
    if used > CROWDED * most:
        return Answer(State.WARNING, said, "Raise max_connections of PostgreSQL, or run fewer processes.")
    return Answer(State.OK, said)


def _row(query: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone() or ()


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
