"""Worlds that many tests start from: built once in each process, then put back as rows, which takes milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Model

Row = tuple[Any, ...]


class Remembered:
    """The rows that `build` leaves in a database which holds no account yet.

    They are read and written as the database itself keeps them: with the same keys, times and digests every time.
    """

    def __init__(self, build: Callable[[], object]) -> None:
        self._build = build
        self._rows: dict[type[Model], list[Row]] = {}

    def put(self) -> None:
        """Have the world in the database of now; the first time it is built, and what came of that is remembered."""
        if self._rows:
            self._write()
            return
        before = {model: set(_rows_of(model)) for model in _models()}
        self._build()
        after = {model: _rows_of(model) for model in _models()}
        assert all(before[model] <= set(rows) for model, rows in after.items()), "a world changed what was there"
        self._rows = {
            model: new for model, rows in after.items() if (new := [row for row in rows if row not in before[model]])
        }

    def _write(self) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            for model, rows in self._rows.items():
                table = connection.ops.quote_name(model._meta.db_table)
                columns = ", ".join(map(connection.ops.quote_name, _columns(model)))
                places = ", ".join(["%s"] * len(rows[0]))
                cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", rows)  # noqa: S608 - our tables
            for statement in connection.ops.sequence_reset_sql(no_style(), list(self._rows)):
                cursor.execute(statement)


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
