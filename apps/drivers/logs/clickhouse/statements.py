"""Conditions become an expression of ClickHouse's SQL; no value ever becomes text of it."""

from __future__ import annotations

from datetime import datetime

from apps.drivers.logs.clickhouse.asking import Values
from apps.drivers.logs.comparing import check, network_of
from apps.drivers.logs.contract import (
    HEADER,
    NUMBER_FIELDS,
    SEARCHED_BY_TEXT,
    Comparison,
    Condition,
    Query,
    Whose,
)

_SIGNS = {
    Comparison.IS: "=",
    Comparison.BELOW: "<",
    Comparison.AT_MOST: "<=",
    Comparison.ABOVE: ">",
    Comparison.AT_LEAST: ">=",
}
_TEXT = {
    Comparison.IS: "{} = {}",
    Comparison.STARTS: "startsWith({}, {})",
    Comparison.CONTAINS: "position({}, {}) > 0",
}


def where(account: Whose, query: Query, values: Values) -> str:
    """The expression for `WHERE`: the accounts, the window and all conditions."""
    parts = [
        whose(account, values),
        f"time >= {moment_of(ceiling(query.start), values)}",
        f"time < {moment_of(ceiling(query.end), values)}",
    ]
    for condition in query.conditions:
        text = _expression(condition, values)
        parts.append(f"NOT ifNull({text}, 0)" if condition.negated else text)
    return " AND ".join(f"({part})" for part in parts)


def whose(account: Whose, values: Values) -> str:
    """Lines of these accounts; of one, `=` lets ClickHouse read in the order of the table."""
    if isinstance(account, int):
        return f"account = {values.put('UInt64', account)}"
    return f"account IN {values.put('Array(UInt64)', account)}"


def moment_of(milliseconds: int, values: Values) -> str:
    """A time of so many milliseconds."""
    return f"fromUnixTimestamp64Milli({values.put('Int64', milliseconds)}, 'UTC')"


def ceiling(time: datetime) -> int:
    """The first millisecond that is not before this; lines have whole ones."""
    whole = int(time.timestamp()) * 1000
    return whole - (-time.microsecond // 1000)


def _expression(condition: Condition, values: Values) -> str:
    """What holds where the condition does, before it is negated. Raises Rejected for what cannot be compared so."""
    check(condition)
    return " OR ".join(f"({_one(condition.field, condition.comparison, each, values)})" for each in condition.values)


def _one(name: str, comparison: Comparison, value: str | int, values: Values) -> str:
    if name == "":
        text = values.put("String", str(value).lower())
        return " OR ".join(f"position(lowerUTF8({each}), {text}) > 0" for each in SEARCHED_BY_TEXT)
    if name.startswith(HEADER):
        header = values.put("String", name.removeprefix(HEADER))
        test = _TEXT[comparison].format(f"JSONExtractString(headers, {header})", values.put("String", str(value)))
        return f"JSONHas(headers, {header}) AND {test}"
    if name in NUMBER_FIELDS:
        return f"{name} {_SIGNS[comparison]} {values.put('Int64', value)}"
    if comparison == Comparison.WITHIN:
        return _within(value, values)
    return _TEXT[comparison].format(name, values.put("String", str(value)))


def _within(value: str | int, values: Values) -> str:
    network = network_of(value)
    low, high = (values.put("String", str(each)) for each in (network.network_address, network.broadcast_address))
    if network.version == 4:
        return f"toIPv4OrNull(client) BETWEEN toIPv4({low}) AND toIPv4({high})"
    # As an address of the newer kind, one of the older kind would have a place too.
    return f"position(client, ':') > 0 AND toIPv6OrNull(client) BETWEEN toIPv6({low}) AND toIPv6({high})"
