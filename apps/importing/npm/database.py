"""The tables of Nginx Proxy Manager: from its SQLite file, or from what `.dump` of sqlite3 or mysqldump print."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from apps.importing.npm.mysql import as_sqlite, is_dump_of_mysql

MAGIC = b"SQLite format 3\0"
Row = dict[str, Any]
# What a dump does: it makes tables and fills them, and asks nothing.
_DONE = frozenset(
    {
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_UPDATE,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_REINDEX,
    }
)
# Without these a row can neither be named nor found by others.
NEEDED = {
    **dict.fromkeys(
        ("proxy_host", "redirection_host", "dead_host", "stream", "access_list", "certificate", "setting"), ("id",)
    ),
    "access_list_auth": ("username", "password"),
}
_FUNCTIONS = frozenset({"replace", "char", "unistr"})


class NoDatabase(Exception):
    """The text is no dump of a database of Nginx Proxy Manager; its message says why."""


def dump_of(path: Path) -> str:
    """The SQLite file as SQL; nothing is written beside it. Raises sqlite3.Error."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return "\n".join(connection.iterdump())


class Database:
    """The rows of a dump, in the order of their ids."""

    def __init__(self, dump: str) -> None:
        """Raises NoDatabase."""
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.row_factory = sqlite3.Row
            connection.set_authorizer(_allowed)
            connection.create_function("unistr", 1, _unescaped, deterministic=True)
            try:
                connection.executescript(as_sqlite(dump) if is_dump_of_mysql(dump) else dump)
                connection.set_authorizer(None)
                self._tables = {name: _rows(connection, name) for name in _names(connection)}
            except sqlite3.Error as error:
                raise NoDatabase(f"This is no dump of an SQLite or MySQL database: {error}.") from error
        if "proxy_host" not in self._tables:
            raise NoDatabase("The database has no table proxy_host; is it the one of Nginx Proxy Manager?")
        for name, columns in NEEDED.items():
            for column in columns if self.rows(name) else ():
                if column not in self.rows(name)[0]:
                    raise NoDatabase(f"The table {name} has no column {column}; dump the whole database once more.")

    def rows(self, table: str) -> list[Row]:
        """All rows, deleted ones as well; none of a table that is not there."""
        return self._tables.get(table, [])

    def row(self, table: str, number: object) -> Row | None:
        """The row with the id."""
        return next((row for row in self.rows(table) if row["id"] == number), None)

    def of_list(self, table: str, number: object) -> list[Row]:
        """The rows that belong to an access list."""
        return [row for row in self.rows(table) if row.get("access_list_id") == number]

    def __iter__(self) -> Iterator[str]:
        """Names of all tables."""
        return iter(sorted(self._tables))


def parsed(value: object) -> Any:
    """A column of JSON; None for what is none."""
    try:
        return json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None


def _allowed(action: int, one: str | None, two: str | None, *_: str | None) -> int:
    harmless = (
        action in _DONE
        or (action == sqlite3.SQLITE_FUNCTION and two in _FUNCTIONS)
        or (action == sqlite3.SQLITE_PRAGMA and one == "foreign_keys")
    )
    return sqlite3.SQLITE_OK if harmless else sqlite3.SQLITE_DENY


def _unescaped(text: str) -> str:
    r"""What newer versions of sqlite3 write for line breaks: `\u000a`."""
    return text.replace("\\u000a", "\n").replace("\\u000d", "\r").replace("\\\\", "\\")


def _names(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return [row["name"] for row in found]


def _rows(connection: sqlite3.Connection, table: str) -> list[Row]:
    quoted = table.replace('"', '""')
    rows = [dict(row) for row in connection.execute(f'SELECT * FROM "{quoted}"')]  # noqa: S608 - its own name, quoted
    return sorted(rows, key=lambda row: row["id"] if isinstance(row.get("id"), int) else 0)
