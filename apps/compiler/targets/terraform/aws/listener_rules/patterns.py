"""The conditions of a rule for AWS: how much of a route fits into one, and how one route becomes several.

An ALB compares with wildcards (`*` any number of characters, `?` exactly one), hosts and header values without regard
to case, paths with it; a condition has at most 3 values, a rule at most 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from apps.compiler.matching import hosts
from apps.compiler.model.shared import PathKind, Route, ValueCondition, ValueMatch
from apps.compiler.targets.terraform.aws.limits import VALUES_PER_CONDITION, VALUES_PER_RULE

Condition = dict[str, list[dict[str, Any]]]
_ANY = "*"


def path_patterns(route: Route) -> tuple[str, ...]:
    """Patterns that take together exactly the paths of the route: `/a` as a prefix is `/a` and `/a/*`, `/` is all."""
    if route.path_kind is PathKind.EXACT:
        return (route.path,)
    if route.path == "/":
        return () if _host_patterns(route.hostname) else (_ANY,)
    return (route.path, f"{route.path}/*")


def conditions_of(route: Route) -> list[list[Condition]]:
    """The conditions of each rule that the route needs; empty when it does not fit into any number of rules.

    A host, every header, query parameter and client network take one value each. What is left of the five is shared by
    paths and methods, in the way that makes the fewest rules.
    """
    paths, methods = path_patterns(route), sorted(route.methods)
    fixed = [
        *map(_host, _host_patterns(route.hostname)),
        *map(_header, _sorted(route.headers)),
        *map(_query, _sorted(route.query)),
        *_clients(route.client_networks),
    ]
    if len(route.client_networks) > VALUES_PER_CONDITION:
        return []
    left = VALUES_PER_RULE - len(fixed) - max(0, len(route.client_networks) - 1)
    if len(methods) <= VALUES_PER_CONDITION and len(paths) + len(methods) <= left:
        return [[*fixed, *_path(paths), *_method(methods)]]
    ways = [way for size in (2, 1) if (way := _split(paths, methods, size, left)) is not None]
    return [[*fixed, *_path(some), *_method(others)] for some, others in min(ways, key=len, default=[])]


def beyond(wildcard: str) -> list[Condition]:
    """Takes the names that ALB's `*` would add to a wildcard of ours, which stands for one label alone."""
    return [_host(f"*.{wildcard}")]


def _split(
    paths: Sequence[str], methods: Sequence[str], paths_per_rule: int, left: int
) -> list[tuple[Sequence[str], Sequence[str]]] | None:
    """Pairs of paths and methods, one for each rule, with so many paths in one; None when they do not fit."""
    used = min(paths_per_rule, len(paths))
    room = min(VALUES_PER_CONDITION, left - used)
    if room < (1 if methods else 0):
        return None
    return list(product(_chunks(paths, used), _chunks(methods, room)))


def _chunks(values: Sequence[str], size: int) -> list[Sequence[str]]:
    """Of this size each; one empty chunk when there are no values."""
    return [values[start : start + size] for start in range(0, len(values), max(1, size))] or [()]


def _sorted(headers: Sequence[ValueCondition]) -> list[ValueCondition]:
    return sorted(headers, key=lambda each: (each.name.lower(), each.match, each.value))


def _host(pattern: str) -> Condition:
    return {"host_header": [{"values": [pattern]}]}


def _host_patterns(hostname: str) -> tuple[str, ...]:
    """`**.` is what ALB says with `*.`; any host needs no condition."""
    if hostname == hosts.ANY:
        return ()
    return (hostname.removeprefix("*") if hostname.startswith(hosts.SUFFIX) else hostname,)


def _header(condition: ValueCondition) -> Condition:
    return {"http_header": [{"http_header_name": condition.name, "values": [_value(condition)]}]}


def _query(condition: ValueCondition) -> Condition:
    return {"query_string": [{"key": condition.name, "value": _value(condition)}]}


def _value(condition: ValueCondition) -> str:
    """The pattern of a value; capabilities.py lets none through that ALB would read as one itself."""
    if condition.match is ValueMatch.PRESENT:
        return _ANY
    return condition.value + (_ANY if condition.match is ValueMatch.PREFIX else "")


def _clients(networks: Sequence[str]) -> list[Condition]:
    return [{"source_ip": [{"values": sorted(networks)}]}] if networks else []


def _path(patterns: Sequence[str]) -> list[Condition]:
    return [{"path_pattern": [{"values": list(patterns)}]}] if patterns else []


def _method(methods: Sequence[str]) -> list[Condition]:
    return [{"http_request_method": [{"values": list(methods)}]}] if methods else []
