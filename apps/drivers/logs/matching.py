"""Whether a record fits conditions: what stores without a database of their own ask, and what following asks."""

from __future__ import annotations

import ipaddress
import json

from apps.drivers.logs.comparing import check, network_of
from apps.drivers.logs.contract import (
    HEADER,
    NUMBER_FIELDS,
    SEARCHED_BY_TEXT,
    Comparison,
    Condition,
    Query,
    Record,
)


def fits(record: Record, query: Query) -> bool:
    """Whether the record is in the window and all conditions hold."""
    return query.start <= record.time < query.end and all(_holds(record, each) for each in query.conditions)


def status_class(record: Record) -> str:
    """The bar of a histogram that the record counts in."""
    return f"{record.status // 100}xx" if record.status is not None and 100 <= record.status <= 599 else "none"


def _holds(record: Record, condition: Condition) -> bool:
    check(condition)
    found = [_fits(record, condition.field, condition.comparison, value) for value in condition.values]
    return any(found) != condition.negated


def _fits(record: Record, name: str, comparison: Comparison, value: str | int) -> bool:
    if name == "":
        return any(str(value).lower() in text.lower() for text in _texts(record))
    if name.startswith(HEADER):
        header = record.headers.get(name.removeprefix(HEADER))
        return header is not None and _text(header, comparison, str(value))
    if name in NUMBER_FIELDS:
        return _number(getattr(record, name), comparison, int(value))
    if comparison == Comparison.WITHIN:
        return _within(record.client, value)
    return _text(getattr(record, name), comparison, str(value))


def _texts(record: Record) -> list[str]:
    named = [getattr(record, name) for name in SEARCHED_BY_TEXT if name != "headers"]
    return [*named, json.dumps(dict(record.headers), sort_keys=True) if record.headers else ""]


def _number(found: int | None, comparison: Comparison, value: int) -> bool:
    if found is None:
        return False
    return {
        Comparison.IS: found == value,
        Comparison.BELOW: found < value,
        Comparison.AT_MOST: found <= value,
        Comparison.ABOVE: found > value,
        Comparison.AT_LEAST: found >= value,
    }[comparison]


def _text(found: str, comparison: Comparison, value: str) -> bool:
    if comparison == Comparison.IS:
        return found == value
    return found.startswith(value) if comparison == Comparison.STARTS else value in found


def _within(client: str, value: str | int) -> bool:
    try:
        return ipaddress.ip_address(client) in network_of(value)
    except ValueError:
        return False
