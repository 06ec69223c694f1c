"""What a field can be compared by: every store asks here first, so that all refuse the same with the same words."""

from __future__ import annotations

import ipaddress

from apps.drivers.logs.contract import (
    ADDRESS_FIELDS,
    HEADER,
    NUMBER_FIELDS,
    TEXT_FIELDS,
    Comparison,
    Condition,
    Rejected,
)

_OF_NUMBERS = (Comparison.IS, Comparison.BELOW, Comparison.AT_MOST, Comparison.ABOVE, Comparison.AT_LEAST)
_OF_TEXT = (Comparison.IS, Comparison.STARTS, Comparison.CONTAINS)


def check(condition: Condition) -> None:
    """Raises Rejected for what cannot be compared so."""
    if not condition.values:
        raise Rejected(f"{condition.field or 'The text'} is compared with nothing.")
    for value in condition.values:
        _check_one(condition.field, condition.comparison, value)


def network_of(value: str | int) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """The network that addresses are to be within. Raises Rejected."""
    try:
        return ipaddress.ip_network(str(value), strict=False)
    except ValueError as error:
        raise Rejected(f"{value} is not a network, such as 192.0.2.0/24.") from error


def _check_one(name: str, comparison: Comparison, value: str | int) -> None:
    if name == "" or (name in NUMBER_FIELDS and isinstance(value, int) and comparison in _OF_NUMBERS):
        return
    if name in ADDRESS_FIELDS and comparison == Comparison.WITHIN:
        network_of(value)
    elif not (name.startswith(HEADER) or name in TEXT_FIELDS + ADDRESS_FIELDS):
        raise Rejected(f"{name} cannot be searched by “{comparison} {value}”.")
    elif comparison not in _OF_TEXT:
        raise Rejected(f"{name} is text: it is, starts or contains something, it is not {comparison} {value}.")
