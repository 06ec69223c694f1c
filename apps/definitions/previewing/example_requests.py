"""A request that a stored route takes, for who wants to try it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.compiler.matching import hosts, patterns
from apps.compiler.matching.conditions import fulfilling
from apps.compiler.model import shared as model
from apps.definitions.models import Route


@dataclass(frozen=True, slots=True)
class ExampleRequest:
    """`target` is the path with its query; clients outside of the route's networks are not taken all the same."""

    host: str
    target: str
    headers: Mapping[str, str]


def example_request(row: Route) -> ExampleRequest:
    """One name for a wildcard, one path for a pattern, a value for each condition that wants one."""
    kind = model.PathKind(row.path_kind)
    headers, query, cookies = (_conditions(entries) for entries in (row.headers, row.query, row.cookies))
    route = model.Route(
        f"route-{row.pk}", row.name, "", row.hostname.name, row.path, kind,
        headers=headers, query=query, cookies=cookies,
    )  # fmt: skip
    sent = fulfilling(route)
    path = patterns.example_of(row.path) if kind is model.PathKind.REGEX else row.path
    names = {each.name.lower(): each.name for each in headers}
    return ExampleRequest(
        hosts.example_of(row.hostname.name),
        f"{path}?{sent.query}" if sent.query else path,
        {names.get(name, name.title()): value for name, value in sent.headers.items()},
    )


def _conditions(entries: list[dict[str, Any]]) -> tuple[model.ValueCondition, ...]:
    return tuple(model.ValueCondition(each["name"], model.ValueMatch(each["match"]), each["value"]) for each in entries)
