"""What Google cannot compare of a request: patterns, cookies, client networks, and some ways to look at a query.

HttpRouteRuleMatch and HttpQueryParameterMatch of urlMaps (see capabilities.py): regular expressions are not for global
external load balancers; of query parameters whole values and presence can be asked, not what is absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from apps.compiler.model.shared import PathKind, Route, ValueMatch
from apps.compiler.portability.incompatibilities import Incompatibility, Target, lossy, refused
from apps.compiler.portability.table.asking import told
from apps.compiler.portability.table.cells import Column

_refused = partial(refused, Target.GOOGLE)
_lossy = partial(lossy, Target.GOOGLE)
_told = partial(told, Column.GOOGLE)


def unsupported_conditions(route: Route) -> Iterator[Incompatibility]:
    """Path, headers, query, cookies and clients."""
    if route.path_kind is PathKind.REGEX:
        yield _told(route, "path_regex", "path_kind", "regex")
    for condition in route.headers:
        if condition.match is ValueMatch.REGEX:
            yield _refused(
                route, "header_regex", "headers",
                f"Google Cloud's global load balancers do not support regular expressions: {condition.name}.",
                "Compare the whole value, or its prefix.",
            )  # fmt: skip
    yield from _of_query(route)
    if route.cookies:
        yield _told(route, "cookies", "cookies")
    if route.client_networks:
        yield _told(route, "route_client_networks", "client_networks")


def _of_query(route: Route) -> Iterator[Incompatibility]:
    for condition in route.query:
        if "%" in condition.name:
            yield _refused(
                route, "query_encoded", "query",
                "Google does not document whether names of query parameters are decoded before they are compared: "
                f"{condition.name}.", "Use a name without %-encoded signs.",
            )  # fmt: skip
        if condition.match is ValueMatch.PRESENT:
            yield _lossy(
                route, "query_without_value", "query",
                f"Google Cloud also treats ?{condition.name} without = as present.", "Send a value with the parameter.",
            )  # fmt: skip
        elif condition.match is not ValueMatch.EQUALS:
            yield _refused(
                route, "query_match", "query",
                "Google Cloud checks only that a query parameter is present or equals a value; the condition on "
                f"{condition.name} checks something else.", "Compare the whole value.",
            )  # fmt: skip
