"""SQL of a person: one SELECT over the table `requests`, in a DuckDB that can reach nothing else.

Three things hold, each by itself: the parser of DuckDB says what the statement is and names, the account's files are
the only ones that its DuckDB may open, and the process has no room to write.
"""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Iterator, Sequence
from typing import Any

from apps.drivers.logs.contract import Rejected
from apps.drivers.logs.files.columns import NAMES, NO_ROWS, rows_of
from apps.drivers.logs.wire import plain

TABLE = "requests"
LONGEST = 20_000
# What may stand in FROM beside the table and names made by WITH: functions that read nothing.
TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series"})
FROM = frozenset({"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "CTE"})
# Functions that say something about the process, or that run text as SQL; none of them reads lines.
FORBIDDEN_FUNCTIONS = frozenset(
    {"getenv", "current_setting", "getvariable", "query", "query_table", "nextval", "currval", "sleep_ms", "write_log"}
)
FORBIDDEN_PREFIXES = ("read_", "duckdb_", "pragma_", "sniff_", "parquet_", "pg_", "sqlite_", "json_execute")
_MADE = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def answer(connection: Any, files: Sequence[str], window: tuple[str, str], text: str, rows: int) -> dict[str, Any]:
    """The rows of the statement, at most so many; the connection is locked to these files from here on."""
    check(connection, text)
    lock(connection, files, window)
    cursor = connection.execute(text)
    columns = [each[0] for each in cursor.description or ()]
    found = cursor.fetchmany(rows + 1)
    return {
        "columns": columns,
        "rows": [[plain(value) for value in row] for row in found[:rows]],
        "truncated": len(found) > rows,
    }


def check(connection: Any, text: str) -> None:
    """Raise Rejected unless the text is exactly one SELECT over `requests` and what it makes of it."""
    if len(text) > LONGEST:
        raise Rejected(f"The statement is longer than {LONGEST} characters.")
    if "\0" in text:
        raise Rejected("The statement has a character that SQL does not have (NUL).")
    tree = json.loads(connection.execute("SELECT json_serialize_sql(?)", [text]).fetchone()[0])
    if tree.get("error"):
        message = str(tree.get("error_message", ""))
        if tree.get("error_type") == "not implemented":
            message = "only SELECT can be asked here."
        raise Rejected(f"This is not a question in SQL: {message}")
    if len(tree["statements"]) != 1:
        raise Rejected("Ask one statement at a time.")
    nodes = list(_nodes(tree["statements"][0]))
    made = {name for node in nodes for name in _names_made(node)}
    for name in made:
        if not _MADE.fullmatch(name) or name.startswith(FORBIDDEN_PREFIXES):
            raise Rejected(f"WITH cannot name something {name}: use letters, digits and _.")
    for node in nodes:
        _check_node(node, made)


def lock(connection: Any, files: Sequence[str], window: tuple[str, str]) -> None:
    """Make the table, then give up everything else for good."""
    connection.execute("SET allowed_paths = " + json.dumps(list(files)).replace('"', "'"))
    start, end = window
    for each in (start, end):
        if not set(each) <= set("0123456789-:. T"):
            raise Rejected("The window is not a time.")
    if files:
        listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        source = (
            f"SELECT {', '.join(NAMES)} FROM {rows_of(f'[{listed}]')} "
            f"WHERE time >= TIMESTAMP '{start}' AND time < TIMESTAMP '{end}'"
        )
    else:
        source = NO_ROWS
    connection.execute(f"CREATE VIEW {TABLE} AS {source}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _check_node(node: dict[str, Any], made: set[str]) -> None:
    kind = node.get("type")
    if "table_name" in node and "catalog_name" in node and kind not in FROM:
        raise Rejected("Only SELECT can be asked here: no SHOW, DESCRIBE or SUMMARIZE.")
    if kind == "BASE_TABLE":
        name = str(node.get("table_name", "")).lower()
        if node.get("schema_name") or node.get("catalog_name") or name not in made | {TABLE}:
            raise Rejected(f"There is no table {node.get('table_name')}: ask the table {TABLE}.")
    if kind == "TABLE_FUNCTION":
        name = str(node.get("function", {}).get("function_name", "")).lower()
        if name not in TABLE_FUNCTIONS:
            raise Rejected(f"{name} cannot be read from: ask the table {TABLE}.")
    name = str(node.get("function_name", "")).lower()
    if name in FORBIDDEN_FUNCTIONS or name.startswith(FORBIDDEN_PREFIXES):
        raise Rejected(f"The function {name} cannot be used here.")


def _names_made(node: dict[str, Any]) -> Iterator[str]:
    """Names that WITH gives to its parts."""
    for each in node.get("cte_map", {}).get("map", []) if isinstance(node.get("cte_map"), dict) else []:
        yield str(each.get("key", "")).lower()


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
