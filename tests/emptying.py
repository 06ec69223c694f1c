"""How tables are emptied after a test that commits: rows are deleted, in milliseconds.

Django's own way makes the files of more than eighty tables anew and asks every app what follows from a migration, which
takes longer than most tests.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from django.core.management.commands import flush
from django.db import connections

# What Django writes down about the models themselves; it is the same after every test.
KEPT = frozenset({"django_content_type", "auth_permission"})


def install() -> None:
    """From now on in this process."""
    for name, instead in {"sql_flush": _statements, "emit_post_migrate_signal": _nothing}.items():
        setattr(flush, name, instead)


def _statements(style: object, connection: Any, **_: object) -> list[str]:
    tables = _tables(connection.alias)
    if connection.vendor != "postgresql":
        found: list[str] = connection.ops.sql_flush(style, tables)
        return found
    # Neither triggers nor references are asked: the audit log refuses a DELETE, and the order would matter.
    quoted = map(connection.ops.quote_name, tables)
    return ["SET LOCAL session_replication_role = replica", *(f"DELETE FROM {table}" for table in quoted)]  # noqa: S608


@functools.cache
def _tables(alias: str) -> Sequence[str]:
    names = connections[alias].introspection.django_table_names(only_existing=True, include_views=False)
    return sorted(set(names) - KEPT)


def _nothing(*_: object, **__: object) -> None:
    """Nothing was migrated."""
