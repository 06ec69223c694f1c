"""Rows of routes as the compiler reads them; no ORM object is made for a route."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from apps.compiler.model import shared as model
from apps.compiler.model.access import NetworkList
from apps.compiler.model.policy import RuleSet
from apps.definitions.freezing.frozen_lists import frozen_lists
from apps.definitions.freezing.frozen_policies import Holder, Policies
from apps.definitions.freezing.lost_pools import LostPools
from apps.definitions.models import Listener, LoadBalancer, Route, RoutePool

FIELDS = (
    "id",
    "load_balancer_id",
    "name",
    "account__name",
    "hostname__name",
    "path",
    "path_kind",
    "prefix_rewrite",
    "scheme",
    "account_id",
)
# JSON columns as text: most are empty, and decoding them one by one costs more than all the rest.
TEXTS = (
    *("methods", "headers", "redirect", "fixed_response", "assertions", "rules"),
    *("query", "cookies", "client_networks"),
)
EMPTY = "[]"

T = TypeVar("T")
# What reading a column of the wrong form raises.
UNREADABLE = (TypeError, KeyError, ValueError, AttributeError)
_PATH_KINDS = {str(kind): kind for kind in model.PathKind}


@lru_cache(maxsize=4096)
def _texts(text: str) -> tuple[str, ...]:
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise TypeError("this is a list of texts")
    return tuple(found)


@lru_cache(maxsize=4096)
def _conditions(text: str) -> tuple[model.ValueCondition, ...]:
    found = json.loads(text)
    if not isinstance(found, list):
        raise TypeError("conditions are a list")
    return tuple(
        model.ValueCondition(entry["name"], model.ValueMatch(entry["match"]), entry["value"]) for entry in found
    )


@lru_cache(maxsize=4096)
def _redirect(text: str) -> model.Redirect | None:
    data = json.loads(text)
    return model.Redirect(**data) if data is not None else None


@lru_cache(maxsize=4096)
def _fixed_response(text: str) -> model.FixedResponse | None:
    data = json.loads(text)
    return model.FixedResponse(**data) if data is not None else None


class RoutesServed(NamedTuple):
    """The routes of a load balancer, the rules that hold for any of them, and the lists that those name."""

    routes: tuple[model.Route, ...] = ()
    rule_sets: tuple[RuleSet, ...] = ()
    network_lists: tuple[NetworkList, ...] = ()


class _Row:
    """One row of `FIELDS` and `TEXTS` as it becomes a route; `column` is the one that is being read."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        self.values = dict(zip((*FIELDS, *TEXTS), row, strict=True))
        self.column = ""

    def read(self, column: str, reader: Callable[[Any], T]) -> T:
        """The column's value. Raises UNREADABLE errors after noting the column."""
        self.column = column
        return reader(self.values[column])


def frozen_routes(
    rows: QuerySet[Route], pairs: QuerySet[RoutePool], unreadable: list[model.Unreadable] | None = None
) -> dict[int, RoutesServed]:
    """Load balancer → its routes among `rows`, oldest first; `pairs` are (at least) the pools of these routes.

    Rows that say nothing that could be meant are left out and noted in `unreadable`.
    """
    shares: dict[int, list[model.WeightedPool]] = defaultdict(list)
    mirrors: dict[int, str] = {}
    lost = LostPools.of(pairs)
    columns_of_pairs = ("route_id", "pool_id", "weight", "mirror")
    for pk, pool, weight, mirror in pairs.order_by("id").values_list(*columns_of_pairs).iterator(5000):
        if mirror:
            mirrors[pk] = f"pool-{pool}"
        else:
            shares[pk].append(model.WeightedPool(f"pool-{pool}", weight))
    found: dict[int, list[model.Route]] = defaultdict(list)
    policies = Policies(rows)
    columns = rows.annotate(**{f"{field}_text": Cast(field, TextField()) for field in TEXTS}).order_by("id")
    for values in columns.values_list(*FIELDS, *(f"{field}_text" for field in TEXTS)).iterator(5000):
        row = _Row(values)
        try:
            route = _route(row, tuple(shares.get(values[0], ())), mirrors.get(values[0]), policies)
        except UNREADABLE:
            label = f"{row.values['account__name']}/{row.values['name']}"
            if unreadable is not None:
                unreadable.append(model.Unreadable(f"route-{values[0]}", label, row.column))
        else:
            found[values[1]].append(lost.without(route) if lost else route)
    return defaultdict(RoutesServed, {front: _served(routes, policies) for front, routes in found.items()})


def _served(routes: list[model.Route], policies: Policies) -> RoutesServed:
    used = sorted({route.rule_set for route in routes if route.rule_set})
    sets = tuple(policies.rule_sets[each] for each in used)
    return RoutesServed(tuple(routes), sets, frozen_lists(each.rules.access for each in sets))


def _route(row: _Row, shares: tuple[model.WeightedPool, ...], mirror: str | None, policies: Policies) -> model.Route:
    values = row.values
    account, assertions = values["account__name"], values["assertions"]

    def assertions_of(text: str) -> tuple[model.Assertion, ...]:
        return frozen_assertions(json.loads(text), account)

    return model.Route(
        f"route-{values['id']}",
        f"{account}/{values['name']}",
        account,
        values["hostname__name"],
        values["path"],
        row.read("path_kind", _PATH_KINDS.__getitem__),
        row.read("methods", _texts),
        row.read("headers", _conditions),
        shares,
        row.read("redirect", _redirect) if values["redirect"] else None,
        row.read("fixed_response", _fixed_response) if values["fixed_response"] else None,
        values["prefix_rewrite"],
        () if assertions == EMPTY else row.read("assertions", assertions_of),
        values["scheme"] or None,
        row.read("rules", lambda rules: _rule_set(values, rules, policies)),
        () if values["query"] == EMPTY else row.read("query", _conditions),
        () if values["cookies"] == EMPTY else row.read("cookies", _conditions),
        () if values["client_networks"] == EMPTY else row.read("client_networks", _texts),
        mirror,
    )


def _rule_set(values: Mapping[str, Any], rules: str | None, policies: Policies) -> str:
    """The id of the rules that hold, empty where none do."""
    if not policies and rules in (None, "null"):
        return ""
    named = policies.links.get(values["id"], ())
    holder = Holder(values["load_balancer_id"], values["account_id"], values["hostname__name"], named, rules or "")
    return policies.rule_set_of(holder)


def frozen_assertions(documents: Iterable[dict[str, Any]], account: str) -> tuple[model.Assertion, ...]:
    """Stored assertions as the compiler reads them: pools and routes by their labels."""
    return tuple(_assertion(document, account) for document in documents)


def _assertion(document: dict[str, Any], account: str) -> model.Assertion:
    expect, redirect = document["expect"], document["expect"].get("redirect")
    pool, route = expect.get("pool", ""), expect.get("route", "")
    return model.Assertion(
        path=document["path"],
        method=document["method"],
        host=document["host"] or "",
        headers=tuple((header["name"], header["value"]) for header in document["headers"]),
        pool=f"{account}/{pool}" if pool and "/" not in pool else pool,
        route=f"{account}/{route}" if route else "",
        redirect="" if redirect is True else redirect,
        status=expect.get("status"),
    )


def frozen_front(row: LoadBalancer, served: RoutesServed) -> model.LoadBalancer:
    """A load balancer with these routes, for asking what happens to a request: its listeners have no certificates."""
    fields = ("pk", "name", "protocol", "port", "default_pool_id")
    listeners = Listener.objects.filter(load_balancer=row).order_by("pk").values_list(*fields)
    return model.LoadBalancer(
        f"lb-{row.pk}",
        row.name,
        row.account.name,
        tuple(
            model.Listener(
                f"lst-{pk}", name, model.Protocol(protocol), port, default_pool_id=f"pool-{pool}" if pool else None
            )
            for pk, name, protocol, port, pool in listeners
        ),
        *served,
    )
