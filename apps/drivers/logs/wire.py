"""Questions as JSON and back, for processes that speak over pipes and for saved searches."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apps.drivers.logs.contract import Comparison, Condition, Query


def query_to_json(query: Query) -> dict[str, Any]:
    """A query in values of JSON."""
    return {
        "start": query.start.isoformat(),
        "end": query.end.isoformat(),
        "conditions": [[each.field, each.comparison, list(each.values), each.negated] for each in query.conditions],
    }


def query_from_json(value: Mapping[str, Any]) -> Query:
    """The query that `query_to_json` made this of."""
    return Query(
        start=datetime.fromisoformat(value["start"]),
        end=datetime.fromisoformat(value["end"]),
        conditions=tuple(
            Condition(name, Comparison(comparison), tuple(values), negated)
            for name, comparison, values, negated in value["conditions"]
        ),
    )


def plain(value: Any) -> Any:
    """A value that JSON has; others as their own text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)  # noqa: PLR0124 - NaN
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    return str(value)
