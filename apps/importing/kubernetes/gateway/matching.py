"""Matches of HTTPRoutes and GRPCRoutes as paths and conditions of routes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.matching import names, patterns
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.values.parsing import Path

KINDS = {"Exact": "exact", "PathPrefix": "prefix", "RegularExpression": "regex"}
LEFT_OUT = "The match is left out, so its requests go where others match."


def match_of(route: Manifest, at: Path, said: Mapping[str, Any]) -> dict[str, Any] | None:
    """Path and conditions as a route has them; None for a match that no route can have, which is said."""
    try:
        found = _grpc_path(route, at) if route.kind == "GRPCRoute" else _path(route, at)
        found |= _method(route, said)
        for name, field, read in (("headers", "headers", grammar.header_name), ("queryParams", "query", _parameter)):
            conditions = [_condition(each, read) for _, each in route.each(*at, name)]
            first = {each["name"].lower() if name == "headers" else each["name"]: each for each in conditions[::-1]}
            found |= {field: [first[key] for key in sorted(first)]} if first else {}
    except GrammarError as error:
        route.impossible(at, f"{error.message} {LEFT_OUT}")
        return None
    for name in ("path", "method", "headers", "queryParams"):
        for part in ("type", "value", "name", "service", "method"):
            route.mapped((*at, name, part))
        for path, _ in route.each(*at, name):
            for part in ("type", "value", "name"):
                route.mapped((*path, part))
    route.mapped((*at, "method")) if isinstance(said.get("method"), str) else None
    return found


def _parameter(value: object) -> str:
    return names.parameter_name(value)


def _path(route: Manifest, at: Path) -> dict[str, Any]:
    kind = str(route.at(*at, "path", "type") or "PathPrefix")
    text = str(route.at(*at, "path", "value") or "/")
    if kind not in KINDS:
        raise GrammarError("kind", "A path is Exact, PathPrefix or RegularExpression.")
    if kind == "RegularExpression":
        return {"path": patterns.pattern(text), "path_kind": "regex"}
    text = text.rstrip("/") or "/" if kind == "PathPrefix" else text
    return {"path": grammar.path(text), "path_kind": KINDS[kind]}


def _grpc_path(route: Manifest, at: Path) -> dict[str, Any]:
    service, method = route.at(*at, "method", "service"), route.at(*at, "method", "method")
    if route.at(*at, "method", "type") == "RegularExpression":
        return {"path": patterns.pattern(f"/{service or '[^/]+'}/{method or '[^/]+'}"), "path_kind": "regex"}
    if service and method:
        return {"path": grammar.path(f"/{service}/{method}"), "path_kind": "exact"}
    if service:
        return {"path": grammar.path(f"/{service}"), "path_kind": "prefix"}
    if method:
        return {"path": patterns.pattern(f"/[^/]+/{re.escape(str(method))}"), "path_kind": "regex"}
    return {"path": "/", "path_kind": "prefix"}


def _method(route: Manifest, said: Mapping[str, Any]) -> dict[str, Any]:
    method = said.get("method")
    if route.kind == "GRPCRoute" or method is None:
        return {}
    return {"methods": [grammar.method(method)]}


def _condition(said: Mapping[str, Any], read: Any) -> dict[str, Any]:
    name, value = read(said.get("name")), said.get("value")
    if said.get("type", "Exact") == "RegularExpression":
        return {"name": name, "match": "regex", "value": patterns.pattern(value)}
    if said.get("type", "Exact") != "Exact":
        raise GrammarError("kind", "A value is Exact or RegularExpression.")
    return {"name": name, "match": "equals", "value": grammar.header_value(value)}
