"""Whether the tables are those of this code: each column that a model has against the database's own."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

from django.apps import apps
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

MIGRATE = "Run manage.py migrate."
# What was in order is believed for so long; a restored backup is noticed after that.
TRUSTED_S = 60.0
_COLUMNS = {
    "postgresql": "SELECT table_name, column_name, "
    "is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO' "
    "FROM information_schema.columns WHERE table_schema = current_schema()",
    "sqlite": 'SELECT m.name, p.name, p."notnull" AND p.dflt_value IS NULL AND NOT p.pk '
    "FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'",
}
_fine_until = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Empty where all is well; `newer` where the database belongs to younger code."""

    problem: str = ""
    remedy: str = ""
    newer: str = ""


def is_current() -> str:
    """`ok`, or the first thing that is wrong; what was in order is asked again after a minute. Raises db.Error."""
    global _fine_until  # noqa: PLW0603 - one memory per process
    if time.monotonic() < _fine_until:
        return "ok"
    found = verdict(connections["default"])
    if said := found.newer or found.problem:
        return f"{said} {found.remedy}".strip()
    _fine_until = time.monotonic() + TRUSTED_S
    return "ok"


def ask_again() -> None:
    """Forget that it was in order."""
    global _fine_until  # noqa: PLW0603 - see above
    _fine_until = 0.0


def verdict(connection: BaseDatabaseWrapper) -> Verdict:
    """Migrations by name first, then the columns. Two queries. Raises db.Error."""
    recorder = MigrationRecorder(connection)
    applied = set(recorder.applied_migrations()) if recorder.has_table() else set()
    if unknown := sorted(f"{app}.{name}" for app, name in applied - ever_known() if app in _ours()):
        return Verdict(newer=f"The database is newer than this code: it has {_some(unknown)}, which is not here.")
    if missing := sorted(f"{app}.{name}" for app, name in known_migrations() - applied):
        return Verdict(f"migrations are missing: {_some(missing)}.", MIGRATE)
    lacking, demanded = compare(connection)
    if lacking:
        remedy = "Restore a backup: the database says that its migrations ran, but its tables are others."
        return Verdict(f"columns are missing: {_some(lacking)}.", remedy)
    if demanded:
        return Verdict(newer=f"The database demands columns that this code does not know: {_some(demanded)}.")
    return Verdict()


def compare(connection: BaseDatabaseWrapper) -> tuple[list[str], list[str]]:
    """Columns (`table.column`) that models have and the database lacks, and those that it alone demands."""
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS[connection.vendor])
        there = {(table, column): bool(demanded) for table, column, demanded in cursor.fetchall()}
    wanted = _wanted()
    tables = {table for table, _ in wanted}
    lacking = sorted(f"{table}.{column}" for table, column in wanted - there.keys())
    others = [key for key, demanded in there.items() if demanded and key[0] in tables and key not in wanted]
    return lacking, sorted(f"{table}.{column}" for table, column in others)


@functools.cache
def known_migrations() -> frozenset[tuple[str, str]]:
    """All of this code, as (app, name)."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


@functools.cache
def ever_known() -> frozenset[tuple[str, str]]:
    """Those and what a squashed one stands for: a database may remember it."""
    migrations = MigrationLoader(None, ignore_no_migrations=True).disk_migrations.values()
    return known_migrations() | {each for migration in migrations for each in migration.replaces}


@functools.cache
def _ours() -> frozenset[str]:
    return frozenset(config.label for config in apps.get_app_configs())


@functools.cache
def _wanted() -> frozenset[tuple[str, str]]:
    models = [each for each in apps.get_models(include_auto_created=True) if each._meta.managed]
    return frozenset(
        (model._meta.db_table, str(field.column))
        for model in models
        if not model._meta.proxy
        for field in model._meta.local_concrete_fields
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
