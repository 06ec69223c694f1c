"""What a route asks of a request, as matches of an HTTPRoute; one for each of its methods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apps.compiler.model.shared import PathKind, Route, ValueCondition, ValueMatch
from apps.exporting.gateway.naming import literal

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
KINDS = {PathKind.EXACT: "Exact", PathKind.PREFIX: "PathPrefix", PathKind.REGEX: "RegularExpression"}


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches, and what the route asks beyond them that no match can say."""

    matches: tuple[dict[str, Any], ...]
    unsaid: tuple[str, ...] = ()


def matches_of(route: Route) -> Matches:
    """All that can be said of it."""
    unsaid: list[str] = []
    match: dict[str, Any] = {"path": {"type": KINDS[route.path_kind], "value": route.path}}
    for name, conditions in (("headers", route.headers), ("queryParams", route.query)):
        said = list(_values(name, conditions, unsaid))
        match |= {name: said} if said else {}
    unsaid += ["cookies"] if route.cookies else []
    unsaid += ["networks of clients"] if route.client_networks else []
    if not METHODS.issuperset(route.methods):
        unsaid.append("methods that the Gateway API does not know")
    elif route.methods:
        return Matches(tuple({**match, "method": method} for method in route.methods), tuple(unsaid))
    return Matches((match,), tuple(unsaid))


def _values(name: str, conditions: tuple[ValueCondition, ...], unsaid: list[str]) -> Iterator[dict[str, str]]:
    """A list of the cluster has each name once."""
    seen: set[str] = set()
    for each in conditions:
        key = each.name.lower() if name == "headers" else each.name
        said = _value(each)
        if said is None or key in seen:
            unsaid.append("headers or parameters that are absent, or asked for twice")
            continue
        seen.add(key)
        yield {"name": each.name, **said}


def _value(condition: ValueCondition) -> dict[str, str] | None:
    match condition.match:
        case ValueMatch.EQUALS:
            return {"type": "Exact", "value": condition.value}
        case ValueMatch.PREFIX:
            return {"type": "RegularExpression", "value": f"{literal(condition.value)}.*"}
        case ValueMatch.REGEX:
            return {"type": "RegularExpression", "value": condition.value}
        case ValueMatch.PRESENT:
            return {"type": "RegularExpression", "value": ".*"}
    return None
