"""Conditions become an expression of SQL and a list of values; no value ever becomes text of the expression."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from apps.drivers.logs.comparing import check, network_of
from apps.drivers.logs.contract import (
    HEADER,
    NUMBER_FIELDS,
    SEARCHED_BY_TEXT,
    Comparison,
    Condition,
    Query,
)

Values = list[object]
_SIGNS = {
    Comparison.IS: "=",
    Comparison.BELOW: "<",
    Comparison.AT_MOST: "<=",
    Comparison.ABOVE: ">",
    Comparison.AT_LEAST: ">=",
}
_TEXT = {
    Comparison.IS: "{} = ?",
    Comparison.STARTS: "starts_with({}, ?)",
    Comparison.CONTAINS: "contains({}, ?)",
}
# Addresses as text of one length, so that they sort as numbers: 192.000.002.001, 2001:0db8:0000:…
_FOUR = "array_to_string([lpad(part, 3, '0') FOR part IN string_split(client, '.')], '.')"
_PARTS = "[part FOR part IN string_split({0}, ':') IF part <> '']"
_SIX = (
    "array_to_string([lpad(part, 4, '0') FOR part IN CASE WHEN contains(client, '::') THEN list_concat(list_concat("
    + _PARTS.format("split_part(client, '::', 1)")
    + f", ['0' FOR each IN range(8 - len({_PARTS.format('client')}))]), "
    + _PARTS.format("split_part(client, '::', 2)")
    + ") ELSE string_split(client, ':') END], ':')"
)


def where(query: Query) -> tuple[str, Values]:
    """The expression for `WHERE`: the window and all conditions."""
    parts = ["time >= ?::TIMESTAMP", "time < ?::TIMESTAMP"]
    values: Values = [_naive(query.start), _naive(query.end)]
    for condition in query.conditions:
        text, more = expression(condition)
        parts.append(f"NOT coalesce({text}, false)" if condition.negated else text)
        values += more
    return " AND ".join(f"({part})" for part in parts), values


def expression(condition: Condition) -> tuple[str, Values]:
    """What holds where the condition does, before it is negated. Raises Rejected for what cannot be compared so."""
    check(condition)
    pairs = [_one(condition.field, condition.comparison, value) for value in condition.values]
    return " OR ".join(f"({text})" for text, _ in pairs), [value for _, values in pairs for value in values]


def names_of(conditions: Sequence[Condition]) -> set[str]:
    """Columns that the conditions read."""
    return {name for each in conditions for name in _columns_of(each.field)}


def _columns_of(name: str) -> tuple[str, ...]:
    if name == "":
        return SEARCHED_BY_TEXT
    return ("headers",) if name.startswith(HEADER) else (name,)


def _one(name: str, comparison: Comparison, value: str | int) -> tuple[str, Values]:
    if name == "":
        tests = " OR ".join(f"contains(lower({each}), ?)" for each in SEARCHED_BY_TEXT)
        return tests, [str(value).lower()] * len(SEARCHED_BY_TEXT)
    if name.startswith(HEADER):
        header = "json_extract_string(nullif(headers, ''), ?)"
        return _TEXT[comparison].format(header), [_pointer(name), str(value)]
    if name in NUMBER_FIELDS:
        return f"{name} {_SIGNS[comparison]} ?", [value]
    if comparison == Comparison.WITHIN:
        return _within(value)
    return _TEXT[comparison].format(name), [str(value)]


def _pointer(name: str) -> str:
    """A JSON pointer to a header, whatever its name holds."""
    return "/" + name.removeprefix(HEADER).replace("~", "~0").replace("/", "~1")


def _within(value: str | int) -> tuple[str, Values]:
    network = network_of(value)
    first, last = network.network_address, network.broadcast_address
    if network.version == 4:
        low, high = (".".join(f"{int(part):03}" for part in str(each).split(".")) for each in (first, last))
        return f"contains(client, '.') AND NOT contains(client, ':') AND {_FOUR} BETWEEN ? AND ?", [low, high]
    return f"contains(client, ':') AND {_SIX} BETWEEN ? AND ?", [first.exploded, last.exploded]


def _naive(time: datetime) -> str:
    return time.astimezone(UTC).replace(tzinfo=None).isoformat()
