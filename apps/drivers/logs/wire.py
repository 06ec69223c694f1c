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
