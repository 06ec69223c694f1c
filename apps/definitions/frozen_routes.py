"""DEFINE → COMPILE: rows of routes as the compiler reads them; no ORM object is made for a route."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import lru_cache

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from apps.compiler import model
from apps.definitions.asserting import frozen_assertions
from apps.definitions.models import Route, RoutePool

FIELDS = ("id", "load_balancer_id", "name", "account__name", "hostname__name", "path", "path_kind", "prefix_rewrite")
# JSON columns as text: most are empty, and decoding them one by one costs more than all the rest.
TEXTS = ("methods", "headers", "redirect", "fixed_response", "assertions")

_PATH_KINDS = {str(kind): kind for kind in model.PathKind}


@lru_cache(maxsize=4096)
def _methods(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(maxsize=4096)
def _headers(text: str) -> tuple[model.HeaderCondition, ...]:
    return tuple(
        model.HeaderCondition(entry["name"], model.HeaderMatch(entry["match"]), entry["value"])
        for entry in json.loads(text)
    )


@lru_cache(maxsize=4096)
def _redirect(text: str) -> model.Redirect | None:
    data = json.loads(text)
    return model.Redirect(**data) if data else None


@lru_cache(maxsize=4096)
def _fixed_response(text: str) -> model.FixedResponse | None:
    data = json.loads(text)
    return model.FixedResponse(**data) if data else None


def frozen_routes(rows: QuerySet[Route], pairs: QuerySet[RoutePool]) -> dict[int, list[model.Route]]:
    """Load balancer → its routes among `rows`, oldest first; `pairs` are (at least) the shares of these routes."""
    shares: dict[int, list[model.WeightedPool]] = defaultdict(list)
    for route, pool, weight in pairs.order_by("id").values_list("route_id", "pool_id", "weight").iterator(5000):
        shares[route].append(model.WeightedPool(f"pool-{pool}", weight))
    found: dict[int, list[model.Route]] = defaultdict(list)
    columns = rows.annotate(**{f"{field}_text": Cast(field, TextField()) for field in TEXTS}).order_by("id")
    for row in columns.values_list(*FIELDS, *(f"{field}_text" for field in TEXTS)).iterator(5000):
        pk, balancer, name, account, host, path, kind, rewrite, methods, headers, redirect, fixed, assertions = row
        found[balancer].append(
            model.Route(
                f"route-{pk}",
                f"{account}/{name}",
                account,
                host,
                path,
                _PATH_KINDS[kind],
                _methods(methods),
                _headers(headers),
                tuple(shares.get(pk, ())),
                _redirect(redirect) if redirect else None,
                _fixed_response(fixed) if fixed else None,
                rewrite,
                () if assertions == "[]" else frozen_assertions(json.loads(assertions), account),
            )
        )
    return found
