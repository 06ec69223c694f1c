"""A dump of MySQL or MariaDB as SQL that SQLite reads: tables with the names of their columns, and their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

_DUMP = re.compile(r"\s*(?:/\*M?!.*?\*/;?\s*)?-- (?:MySQL|MariaDB) dump ")
_TABLE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?`([^`]+)` \(", re.IGNORECASE)
_ROWS = re.compile(r"INSERT (?:IGNORE )?INTO `([^`]+)`\s*(\([^)]*\)\s*)?VALUES\s*", re.IGNORECASE)
_ROW = re.compile(r"\([^()]*\)")
_COLUMN = re.compile(r"\s*`([^`]+)` ")
_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}
# Of `_binary 'x'` the text; strings are kept apart, so that no sign of theirs is read as SQL.
_INTRODUCER = re.compile(r"_[a-z0-9]+ ?(?=\x01)")
_HELD = re.compile(r"\x01(\d+)\x02")


def is_dump_of_mysql(text: str) -> bool:
    """Whether mysqldump or mariadb-dump wrote it."""
    return _DUMP.match(text) is not None


def as_sqlite(dump: str) -> str:
    """Tables and rows alone; what else a dump does is of its server."""
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(_ESCAPE.sub(_plain, found[0][1:-1]))
        return f"\x01{len(held) - 1}\x02"

    lines = (line for line in dump.replace("\x01", "").replace("\x02", "").splitlines() if not line.startswith("--"))
    return "\n".join(_statements(_STRING.sub(hold, "\n".join(lines)), held))


def _plain(found: re.Match[str]) -> str:
    return "'" if found[1] is None else _ESCAPED.get(found[1], found[1])


def _statements(text: str, held: list[str]) -> Iterator[str]:
    for statement in text.split(";"):
        said = re.sub(r"^\s*(?:/\*.*?\*/\s*)*", "", statement, flags=re.DOTALL)
        if (table := _TABLE.match(said)) is not None:
            columns = [found[1] for line in said[table.end() :].splitlines() if (found := _COLUMN.match(line))]
            yield f"CREATE TABLE {_name(table[1])} ({', '.join(map(_name, columns))});"
        elif (rows := _ROWS.match(said)) is not None:
            named = (rows[2] or "").replace("`", '"')
            values = _INTRODUCER.sub("", said[rows.end() :])
            # What has more than rows of plain values is left as it is: SQLite refuses it.
            plain = not _ROW.sub("", values).strip(" ,\n")
            for row in _ROW.findall(values) if plain else [values]:
                yield f"INSERT INTO {_name(rows[1])} {named}VALUES {_HELD.sub(partial(_text, held), row)};"


def _text(held: list[str], found: re.Match[str]) -> str:
    text = held[int(found[1])].replace("\0", "").replace("'", "''")
    return f"'{text}'"


def _name(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"'
