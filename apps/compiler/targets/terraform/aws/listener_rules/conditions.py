"""What ALB cannot compare of a request: patterns, what is absent, cookies, and values that it reads as wildcards.

Sources as in capabilities.py (HttpHeaderConditionConfig, QueryStringConditionConfig, SourceIpConditionConfig). Regular
expressions and cookies need conditions of newer providers, which are not written yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from apps.compiler.model.shared import Route, ValueCondition, ValueMatch
from apps.compiler.portability.incompatibilities import Incompatibility, Target, lossy, refused
from apps.compiler.portability.table.asking import told
from apps.compiler.portability.table.cells import Column
from apps.compiler.targets.terraform.aws import limits

_refused = partial(refused, Target.AWS)
_lossy = partial(lossy, Target.AWS)
_told = partial(told, Column.ALB)


def unsupported_conditions(route: Route) -> Iterator[Incompatibility]:
    """Headers, query and cookies; client networks can be asked."""
    for condition in route.headers:
        yield from _of_condition(route, "header", condition)
        if len(condition.name) > limits.HEADER_NAME:
            yield _refused(
                route, "header_name_length", "headers",
                f"An ALB compares header names of at most {limits.HEADER_NAME} characters.",
                "Use a shorter header name.",
            )  # fmt: skip
    for condition in route.query:
        if "%" in condition.name:
            yield _refused(
                route, "query_encoded", "query",
                "AWS does not document whether an ALB decodes names of query parameters before it compares them: "
                f"{condition.name}.", "Use a name without %-encoded signs.",
            )  # fmt: skip
        yield from (replace(found, field="query") for found in _of_condition(route, "query", condition))
    if route.cookies:
        yield _told(route, "cookies", "cookies")


def _of_condition(route: Route, word: str, condition: ValueCondition) -> Iterator[Incompatibility]:
    """The same for a header and, with another field, for a query parameter."""
    if condition.match is ValueMatch.ABSENT:
        yield _refused(
            route, f"{word}_absent", "headers",
            f"An ALB cannot check that {condition.name} is absent.",
            f"Put a route for requests that have the {word} before this one, and leave the condition out.",
        )  # fmt: skip
    if condition.match is ValueMatch.REGEX:
        yield _refused(
            route, f"{word}_regex", "headers",
            "Spillway does not support regular expressions on an ALB.", "Compare the whole value, or its prefix.",
        )  # fmt: skip
        return
    yield from _of_value(route, word, condition)


def _of_value(route: Route, word: str, condition: ValueCondition) -> Iterator[Incompatibility]:
    """The API documents an escape of wildcards for query strings alone, so a value with one is refused."""
    name, value = condition.name, condition.value
    if len(value) + (condition.match is ValueMatch.PREFIX) > limits.CONDITION_TEXT:
        yield _refused(
            route, f"{word}_value_length", "headers",
            f"An ALB compares values of at most {limits.CONDITION_TEXT} characters.", "Compare a shorter value.",
        )  # fmt: skip
    if "*" in value or "?" in value:
        yield _refused(
            route, f"{word}_wildcard", "headers",
            f"An ALB treats * and ? in the value of {name} as wildcards.", "Use a value without them.",
        )  # fmt: skip
    if value.lower() != value.upper():
        yield _lossy(
            route, f"{word}_case", "headers",
            f"An ALB ignores case in the value of {name}: it also matches {value.swapcase()!r}.",
            "Use values that differ by more than case.",
        )  # fmt: skip
