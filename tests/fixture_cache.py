"""Fixtures that many tests start from: built once in each process, then put back as rows, which takes milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from django.apps import apps
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Model

Row = tuple[Any, ...]


class CachedFixture:
    """The rows that `build` leaves in a database which holds no account yet.

    They are read and written as the database itself keeps them: with the same keys, times and digests every time.
    """

    def __init__(self, build: Callable[[], object]) -> None:
        self._build = build
        self._statements: list[tuple[str, Row | None]] = []

    def put(self) -> None:
        """Put the rows into the database of now; the first time it is built, and what came of that is remembered."""
        if self._statements:
            with transaction.atomic(), connection.cursor() as cursor:
                for statement, values in self._statements:
                    cursor.execute(statement, values)
            return
        before = {model: set(_rows_of(model)) for model in _models()}
        self._build()
        after = {model: _rows_of(model) for model in _models()}
        assert all(before[model] <= set(rows) for model, rows in after.items()), "an environment changed what was there"
        self._statements = _statements_of(
            {model: new for model, rows in after.items() if (new := [row for row in rows if row not in before[model]])}
        )


def _statements_of(rows: dict[type[Model], list[Row]]) -> list[tuple[str, Row | None]]:
    """What writes the rows, and what counts on from them; all of it in one trip where a server is asked."""
    inserts = [_insert(model, of_model) for model, of_model in rows.items()]
    if connection.vendor != "postgresql":
        return [*inserts]
    operations: Any = connection.ops  # PostgreSQL's
    texts = [operations.compose_sql(*insert) + ";" for insert in inserts]
    return [("".join([*texts, *operations.sequence_reset_sql(no_style(), list(rows))]), None)]


def _insert(model: type[Model], rows: list[Row]) -> tuple[str, Row]:
    table = connection.ops.quote_name(model._meta.db_table)
    columns = ", ".join(map(connection.ops.quote_name, _columns(model)))
    parameters = ", ".join([f"({', '.join(['%s'] * len(rows[0]))})"] * len(rows))
    return f"INSERT INTO {table} ({columns}) VALUES {parameters}", tuple(chain(*rows))  # noqa: S608 - our tables


def _models() -> list[type[Model]]:
    return [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]


def _columns(model: type[Model]) -> list[str]:
    return [str(field.column) for field in model._meta.local_concrete_fields]


def _rows_of(model: type[Model]) -> list[Row]:
    """The rows as the driver gives them, in the order in which they came."""
    columns = ", ".join(map(connection.ops.quote_name, _columns(model)))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {connection.ops.quote_name(model._meta.db_table)} ORDER BY 1")  # noqa: S608
        return list(cursor.fetchall())
