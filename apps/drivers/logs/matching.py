"""Whether a record fits conditions: what stores without a database of their own ask, and what following asks."""

from __future__ import annotations

import ipaddress
import json

from apps.drivers.logs.contract import (
    ADDRESS_FIELDS,
    HEADER,
    NUMBER_FIELDS,
    SEARCHED_BY_TEXT,
    TEXT_FIELDS,
    Comparison,
    Condition,
    Query,
    Record,
    Rejected,
)


def fits(record: Record, query: Query) -> bool:
    """Whether the record is in the window and all conditions hold."""
    return query.start <= record.time < query.end and all(_holds(record, each) for each in query.conditions)


def status_class(record: Record) -> str:
    """The bar of a histogram that the record counts in."""
    return f"{record.status // 100}xx" if record.status is not None and 100 <= record.status <= 599 else "none"


def _holds(record: Record, condition: Condition) -> bool:
    if not condition.values:
        raise Rejected(f"{condition.field or 'The text'} is compared with nothing.")
    found = [_fits(record, condition.field, condition.comparison, value) for value in condition.values]
    return any(found) != condition.negated


def _fits(record: Record, name: str, comparison: Comparison, value: str | int) -> bool:
    if name == "":
        return any(str(value).lower() in text.lower() for text in _texts(record))
    if name.startswith(HEADER):
        header = record.headers.get(name.removeprefix(HEADER))
        return header is not None and _text(name, header, comparison, str(value))
    if name in NUMBER_FIELDS and isinstance(value, int):
        return _number(name, getattr(record, name), comparison, value)
    if name in ADDRESS_FIELDS and comparison == Comparison.WITHIN:
        return _within(record.client, str(value))
    if name in TEXT_FIELDS + ADDRESS_FIELDS:
        return _text(name, getattr(record, name), comparison, str(value))
    raise Rejected(f"{name} cannot be searched by “{comparison} {value}”.")


def _texts(record: Record) -> list[str]:
    named = [getattr(record, name) for name in SEARCHED_BY_TEXT if name != "headers"]
    return [*named, json.dumps(dict(record.headers), sort_keys=True) if record.headers else ""]


def _number(name: str, found: int | None, comparison: Comparison, value: int) -> bool:
    if comparison not in (*Comparison,)[:5]:
        raise Rejected(f"{name} cannot be searched by “{comparison} {value}”.")
    if found is None:
        return False
    return {
        Comparison.IS: found == value,
        Comparison.BELOW: found < value,
        Comparison.AT_MOST: found <= value,
        Comparison.ABOVE: found > value,
        Comparison.AT_LEAST: found >= value,
    }[comparison]


def _text(name: str, found: str, comparison: Comparison, value: str) -> bool:
    if comparison == Comparison.IS:
        return found == value
    if comparison == Comparison.STARTS:
        return found.startswith(value)
    if comparison == Comparison.CONTAINS:
        return value in found
    raise Rejected(f"{name} is text: it is, starts or contains something, it is not {comparison} {value}.")


def _within(client: str, value: str) -> bool:
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError as error:
        raise Rejected(f"{value} is not a network, such as 192.0.2.0/24.") from error
    try:
        return ipaddress.ip_address(client) in network
    except ValueError:
        return False
