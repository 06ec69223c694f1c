"""Routes as long lists show them, straight from columns; whole rows of the ORM cost thrice as much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import QuerySet

from apps.definitions.models import Route, RoutePolicy, RoutePool


class Named(NamedTuple):
    """An object that a route names: its id and its name."""

    pk: int
    name: str


class Owned(NamedTuple):
    """A pool or a policy that a route names, and whose it is."""

    pk: int
    name: str
    account_id: int
    account: Named


class ListedShare(NamedTuple):
    """A weighted pool of a route, as `RoutePool`."""

    pool: Owned
    weight: int


class ListedHostname(NamedTuple):
    """The hostname of a route; an empty verification says that its account has not verified it."""

    pk: int
    name: str
    verification: str


@dataclass(frozen=True, slots=True)
class ListedRoute:
    """A route with the names of what belongs to it; its attributes are those of `Route`."""

    pk: int
    name: str
    account: Named
    version: int
    manager: str
    load_balancer: Named
    hostname_id: int
    hostname: ListedHostname
    path: str
    path_kind: str
    methods: list[str]
    headers: list[dict[str, Any]]
    query: list[dict[str, Any]]
    cookies: list[dict[str, Any]]
    client_networks: list[str]
    scheme: str
    action: str
    redirect: dict[str, Any] | None
    fixed_response: dict[str, Any] | None
    prefix_rewrite: str | None
    assertions: list[dict[str, Any]]
    rules: dict[str, Any] | None
    shares: list[ListedShare]
    mirror: Owned | None
    policies: list[Owned]

    @property
    def account_id(self) -> int:
        """The id of the owner."""
        return self.account.pk


_COLUMNS = (
    *("pk", "name", "account_id", "account__name", "version", "manager", "load_balancer_id", "load_balancer__name"),
    *("hostname_id", "hostname__name", "hostname__verification", "path", "path_kind", "methods", "headers", "scheme"),
    *("action", "redirect", "fixed_response", "prefix_rewrite", "assertions", "rules"),
    *("query", "cookies", "client_networks"),
)
_POOLS = ("route_id", "pool_id", "pool__name", "pool__account_id", "pool__account__name", "weight", "mirror")


def listed(rows: QuerySet[Route]) -> list[ListedRoute]:
    """The routes of a query that has its order and its end; three queries, however many rows."""
    found = list(rows.prefetch_related(None).values_list(*_COLUMNS))
    ids = [columns[0] for columns in found]
    (shares, mirrors), policies = _pools_of(ids), _policies_of(ids)
    return [_route(columns, shares[columns[0]], mirrors.get(columns[0]), policies[columns[0]]) for columns in found]


def _policies_of(ids: Iterable[int]) -> dict[int, list[Owned]]:
    found: dict[int, list[Owned]] = defaultdict(list)
    columns = ("route_id", "policy_id", "policy__name", "policy__account_id", "policy__account__name")
    rows = RoutePolicy.objects.filter(route__in=list(ids)).order_by("id").values_list(*columns)
    for route, pk, name, owner, account in rows:
        found[route].append(Owned(pk, name, owner, Named(owner, account)))
    return found


def _pools_of(ids: Iterable[int]) -> tuple[dict[int, list[ListedShare]], dict[int, Owned]]:
    """The shares of each route, and the pools that get copies."""
    shares: dict[int, list[ListedShare]] = defaultdict(list)
    mirrors: dict[int, Owned] = {}
    rows = RoutePool.objects.filter(route__in=list(ids)).order_by("id").values_list(*_POOLS)
    for route, pk, name, owner, account, weight, mirror in rows:
        pool = Owned(pk, name, owner, Named(owner, account))
        if mirror:
            mirrors[route] = pool
        else:
            shares[route].append(ListedShare(pool, weight))
    return shares, mirrors


def _route(
    columns: tuple[Any, ...], shares: list[ListedShare], mirror: Owned | None, policies: list[Owned]
) -> ListedRoute:
    pk, name, owner, account, version, manager, balancer, front, hostname_id, host, verification, *rest = columns
    path, path_kind, methods, headers, scheme, action, redirect, fixed_response, *rest = rest
    prefix_rewrite, assertions, rules, query, cookies, client_networks = rest
    return ListedRoute(
        pk=pk,
        name=name,
        account=Named(owner, account),
        version=version,
        manager=manager,
        load_balancer=Named(balancer, front),
        hostname_id=hostname_id,
        hostname=ListedHostname(hostname_id, host, verification),
        path=path,
        path_kind=path_kind,
        methods=methods,
        scheme=scheme,
        headers=headers,
        query=query,
        cookies=cookies,
        client_networks=client_networks,
        action=action,
        redirect=redirect,
        fixed_response=fixed_response,
        prefix_rewrite=prefix_rewrite,
        assertions=assertions,
        rules=rules,
        shares=shares,
        mirror=mirror,
        policies=policies,
    )
