"""SQL of a person: one SELECT over the view `requests`, asked by a user of ClickHouse who may read nothing else.

Three things hold, each by itself: ClickHouse's own parser says what the statement is and names, the reader's only grant
is that view, and a question is read-only, so that no word of it changes which account or window the view shows.
"""

from __future__ import annotations

import json
import re

from apps.drivers.logs.asking.sql import LONGEST
from apps.drivers.logs.clickhouse.asking import Client, User, Values
from apps.drivers.logs.clickhouse.schema import ASKED, VIEW, asked
from apps.drivers.logs.contract import Rejected, SqlAnswer, Unavailable
from apps.drivers.logs.wire import plain

NO_READER = (
    "SQL is not asked here: SPILLWAY_LOGS_URL names no reader of ClickHouse "
    "(docs/operate/request-logs.md says how to make one)."
)
# What may stand in FROM beside the view and names made by WITH: functions that read nothing.
TABLE_FUNCTIONS = frozenset({"numbers", "generate_series", "generateseries", "values"})
# Databases whose tables ClickHouse shows without a grant: they tell of the server and of what others ask.
OPEN_DATABASES = frozenset({"system", "information_schema"})
# What a SELECT without FROM reads: one row with nothing in it.
ONE = "system.one"
# Kinds of functions, as ClickHouse has them, that compute from what they are given. Others may read files,
# dictionaries and settings, tell of the server, wait, or ask somebody else; a kind that is new is refused.
KINDS = frozenset(
    {
        "Arithmetic", "Arrays", "Bit", "Bitmap", "Comparison", "Conditional", "Dates and Times", "Distance", "Encoding",
        "Financial", "Geo", "Geo Polygon", "Hash", "IP Address", "JSON", "Logical", "Map", "Mathematical", "Null",
        "Random Number", "Rounding", "String", "String Replacement", "String Search", "String Splitting", "Time Series",
        "Time Window", "Tuple", "Type Conversion", "URL", "UUID",
    }
)  # fmt: skip
# Those of other kinds that do as well, in small letters.
HARMLESS = frozenset(
    {
        "bar", "bytesize", "countdigits", "finalizeaggregation", "formatreadabledecimalsize", "formatreadablequantity",
        "formatreadablesize", "formatreadabletimedelta", "identity", "ignore", "materialize", "neighbor",
        "runningaccumulate", "runningdifference", "totypename", "transform", "visiblewidth",
    }
)  # fmt: skip
_NAME = re.compile(r"[\w .-]{1,64}")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`\\]|\\.|``)*`|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_TREE = re.compile(
    r"^ *(IDENTIFIER|TABLE_FUNCTION|FUNCTION|TABLE) id: \d+,.*?(?:identifier|function_name|table_name): ([^,\n]*)",
    re.MULTILINE,
)

# What ClickHouse says a function is, also by another of its names; an aggregate may have combinators, as countIf has.
_LISTED = """
SELECT is_aggregate, categories FROM system.functions WHERE alias_to = '' AND (
    lower(name) = {name} OR (is_aggregate AND startsWith({name}, lower(name)))
    OR lower(name) IN (SELECT lower(alias_to) FROM system.functions WHERE lower(name) = {name})
) FORMAT TSVRaw
"""


def answer(client: Client, account: int, text: str, window: tuple[int, int], rows: int) -> SqlAnswer:
    """The rows of the statement, at most so many. Raises LogStoreError."""
    reader = client.endpoint.reader
    if reader is None:
        raise Rejected(NO_READER)
    must_be_confined(client, reader)
    check(client, reader, text)
    settings: dict[str, object] = {
        ASKED: asked(account, *window),
        "readonly": 1,
        "limit": rows + 1,
        "max_result_bytes": 2**25,
        "result_overflow_mode": "throw",
        "default_format": "JSONCompact",
    }
    found = json.loads(client.ask(text, settings=settings, user=reader))
    return SqlAnswer(
        tuple(each["name"] for each in found["meta"]),
        tuple(tuple(plain(value) for value in row) for row in found["data"][:rows]),
        len(found["data"]) > rows,
    )


def must_be_confined(client: Client, reader: User) -> None:
    """Raise Unavailable unless the reader may read the view and nothing else."""
    wanted = f"GRANT SELECT ON {client.endpoint.database}.{VIEW} TO "
    given = (
        client.ask("SHOW GRANTS FORMAT TSVRaw", user=reader).decode("utf-8", "replace").replace("`", "").splitlines()
    )
    if len(given) != 1 or not given[0].startswith(wanted) or "WITH GRANT OPTION" in given[0]:
        raise Unavailable(
            f"SQL is not asked: the reader {reader.name} has other grants in ClickHouse than SELECT on "
            f"{client.endpoint.database}.{VIEW}. Give it this one alone."
        )


def check(client: Client, reader: User, text: str) -> None:
    """Raise Rejected unless the text is exactly one SELECT over `requests` and what it makes of it."""
    if len(text) > LONGEST:
        raise Rejected(f"The statement is longer than {LONGEST} characters.")
    if "\0" in text:
        raise Rejected("The statement has a character that SQL does not have (NUL).")
    outside = _written(client, reader, text)
    if re.search(r"\bSETTINGS\b", outside):
        raise Rejected("SETTINGS cannot be changed here.")
    _check_tree(client, reader, text)


def _check_tree(client: Client, reader: User, text: str) -> None:
    """Raise Rejected for what the statement may not name; its names are not resolved yet, and nothing is read."""
    try:
        # Within parentheses only a question can stand: no SHOW, no INTO OUTFILE, no FORMAT.
        tree = _said(client, reader, f"EXPLAIN QUERY TREE run_passes = 0 SELECT * FROM (\n{text}\n) FORMAT TSVRaw")
    except Rejected as error:
        if "yntax error" not in error.message:
            raise
        raise Rejected("Only SELECT can be asked here, without FORMAT and INTO OUTFILE.") from error
    functions = set[str]()
    for kind, name in _TREE.findall(tree):
        low = name.lower()
        if kind in ("IDENTIFIER", "TABLE") and low != ONE and low.split(".")[0].strip('`" ') in OPEN_DATABASES:
            raise Rejected(f"There is no table {name}: ask the table {VIEW}.")
        if kind == "TABLE_FUNCTION" and low not in TABLE_FUNCTIONS:
            raise Rejected(f"{name} cannot be read from: ask the table {VIEW}.")
        if kind == "FUNCTION":
            functions.add(low)
    _check_functions(client, reader, functions)


def _check_functions(client: Client, reader: User, names: set[str]) -> None:
    """Raise Rejected for a function that does more than compute."""
    for name in sorted(names):
        values = Values()
        given = values.put("String", name)
        listed = _said(client, reader, _LISTED.format(name=given), values).splitlines()
        kinds = [kind for aggregate, _, kind in (line.partition("\t") for line in listed) if aggregate != "1"]
        if not listed or not (name in HARMLESS or KINDS.issuperset(kinds)):
            raise Rejected(f"The function {name} cannot be used here.")


def _written(client: Client, reader: User, text: str) -> str:
    """The statement as ClickHouse writes it, without what is quoted; it is one statement."""
    values = Values()
    shown = _said(client, reader, f"SELECT formatQuery({values.put('String', text)}) FORMAT TSVRaw", values)
    if not shown.strip():
        raise Unavailable("ClickHouse did not say what the statement is.")
    for name in _QUOTED.findall(shown):
        if name[0] != "'" and not _NAME.fullmatch(name[1:-1]):
            raise Rejected("A name in quotes has only letters, digits and a few signs here, at most 64.")
    return _QUOTED.sub(" ", shown)


def _said(client: Client, reader: User, text: str, values: Values | None = None) -> str:
    """What ClickHouse answers the reader about no account."""
    settings = {"readonly": 1, ASKED: asked(0, 0, 0)}
    return client.ask(text, values, settings=settings, user=reader).decode("utf-8", "replace")
