"""What Google cannot compare of a request: patterns, cookies, client networks, and some ways to look at a query.

HttpRouteRuleMatch and HttpQueryParameterMatch of urlMaps (see capabilities.py): regular expressions are not for global
external load balancers; of query parameters whole values and presence can be asked, not what is absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from apps.compiler.model.shared import PathKind, Route, ValueMatch
from apps.compiler.portability.incompatibilities import Incompatibility, Target, lossy, refused

_refused = partial(refused, Target.GOOGLE)
_lossy = partial(lossy, Target.GOOGLE)


def unsupported_conditions(route: Route) -> Iterator[Incompatibility]:
    """Path, headers, query, cookies and clients."""
    if route.path_kind is PathKind.REGEX:
        yield _refused(
            route, "path_regex", "path_kind",
            "Google Cloud's global load balancers do not support regular expressions.", "Use a prefix or exact paths.",
        )  # fmt: skip
    for condition in route.headers:
        if condition.match is ValueMatch.REGEX:
            yield _refused(
                route, "header_regex", "headers",
                f"Google Cloud's global load balancers do not support regular expressions: {condition.name}.",
                "Compare the whole value, or its prefix.",
            )  # fmt: skip
    yield from _of_query(route)
    if route.cookies:
        yield _refused(
            route, "cookies", "cookies",
            "Google Cloud compares only the whole Cookie header, not a single cookie.",
            "Have clients send a separate header, and compare that.",
        )  # fmt: skip
    if route.client_networks:
        yield _refused(
            route, "route_client_networks", "client_networks",
            "A URL map does not support client networks; Cloud Armor does, but Spillway does not configure it.",
            "Serve the route from a fleet or from AWS.",
        )  # fmt: skip


def _of_query(route: Route) -> Iterator[Incompatibility]:
    for condition in route.query:
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
