"""Which stacks and which zones a change of a row concerns, as `fleets_of` says it of fleets.

A stack runs the load balancers that stand in it with all that they lead to, its static IPs, and zones on Route 53; a
zone serves its records, some of which follow static IPs and load balancers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from apps.accounts.models import Hostname
from apps.compiler.matching.hosts import ANY, ending_of, is_wildcard
from apps.compiler.model.shared import Protocol
from apps.definitions.models import (
    Certificate,
    Listener,
    LoadBalancer,
    NetworkList,
    Policy,
    Pool,
    Record,
    Route,
    Server,
    Zone,
)
from apps.definitions.serving import leading_to
from apps.fleet.models import CloudAccount, Fleet, Node, Region, Stack, StaticIP


def stacks_of_load_balancers(fronts: QuerySet[LoadBalancer] | list[int]) -> QuerySet[Stack]:
    """Stacks in which any of the load balancers stand."""
    return Stack.objects.filter(load_balancers__in=fronts).distinct()


def stacks_of_hostname(claim: Hostname) -> QuerySet[Stack]:
    """Stacks whose load balancers have routes of the name, or of names under it when it is a wildcard."""
    names = Q(hostname=claim.pk)
    if is_wildcard(claim.name) and claim.name != ANY:
        names |= Q(hostname__name__endswith=ending_of(claim.name), hostname__account=claim.account_id)
    return stacks_of_load_balancers(list(Route.objects.filter(names).values_list("load_balancer_id", flat=True)))


def stacks_of(row: object) -> list[Stack]:
    """Stacks that a change of this row concerns."""
    found = _stacks_of(row)
    zones = [zone.stack_id for zone in zones_of(row) if zone.driver == Zone.Driver.ROUTE53]
    if zones:
        found = Stack.objects.filter(Q(pk__in=zones) | Q(pk__in=found.values("pk")))
    return list(found.order_by("name").distinct())


def _stacks_of(row: object) -> QuerySet[Stack]:  # noqa: C901, PLR0911 - an answer per kind
    match row:
        case Route():
            return stacks_of_load_balancers([row.load_balancer_id])
        case LoadBalancer():
            return stacks_of_load_balancers([row.pk])
        case Policy():
            return stacks_of_load_balancers(load_balancers_of_policy(row))
        case Pool():
            return stacks_of_load_balancers(_fronts_of_pool(row.pk))
        case Server():
            return stacks_of_load_balancers(_fronts_of_pool(row.backend.pool_id))
        case Certificate():
            served = Q(listeners__protocol=Protocol.HTTPS.value, routes__account=row.account_id)
            fronts = LoadBalancer.objects.filter(served | Q(listeners__certificates=row.pk))
            return stacks_of_load_balancers(fronts)
        case StaticIP():
            return Stack.objects.filter(Q(pk=row.stack_id) | Q(load_balancers__listeners__static_ip=row.pk))
        case Stack():
            return Stack.objects.filter(pk=row.pk)
        case CloudAccount():
            return Stack.objects.filter(cloud_account=row.pk)
        case Region():
            return Stack.objects.all()  # it may be the nearest to any other
        case _:
            return Stack.objects.none()


def _fronts_of_pool(pool: int) -> QuerySet[LoadBalancer]:
    return LoadBalancer.objects.filter(Q(routes__pools__pool=pool) | Q(listeners__in=leading_to([pool])))


def load_balancers_of_policy(row: Policy) -> list[int]:
    """Load balancers (ids) with routes for which the policy holds, or might as soon as one has its hostname."""
    of_account = Q(routes__account=row.account_id) if row.whole_account or row.hostnames else Q(pk=None)
    held = of_account | Q(routes__policy_links__policy=row.pk) | Q(policies=row.pk)
    return list(LoadBalancer.objects.filter(held).values_list("pk", flat=True).distinct())


class UsersOfList(NamedTuple):
    """What names a list of networks; listeners are parts of their load balancers."""

    policies: list[Policy]
    routes: list[Route]
    listeners: list[Listener]


def users_of_list(row: NetworkList) -> UsersOfList:
    """Policies, routes and listeners of its account that name a list of networks."""
    policies, routes = (
        [each for each in _naming(user, "rules", row) if _names((each.rules or {}).get("access"), row.name)]
        for user in (Policy, Route)
    )
    listeners = [each for each in _naming(Listener, "access", row) if _names(each.access, row.name)]
    return UsersOfList(policies, routes, listeners)


def _naming(model: type[Any], column: str, row: NetworkList) -> QuerySet[Any]:
    """Rows whose column has the name anywhere; few enough to look at each."""
    rows = model._default_manager.filter(account=row.account_id).annotate(text=Cast(column, TextField()))
    found: QuerySet[Any] = rows.filter(text__contains=f'"{row.name}"').order_by("name")
    return found


def _names(access: dict[str, Any] | None, name: str) -> bool:
    said = access or {}
    return name in (said.get("allow") or ()) or name in (said.get("deny") or ())


def load_balancers_following(row: Policy | NetworkList) -> list[int]:
    """Load balancers (ids) with routes that follow the policy, or the list by their rules or listeners."""
    if isinstance(row, Policy):
        return load_balancers_of_policy(row)
    users = users_of_list(row)
    found = {each.load_balancer_id for each in users.routes} | {each.load_balancer_id for each in users.listeners}
    return sorted(found.union(*(load_balancers_of_policy(each) for each in users.policies)))


def zones_of(row: object) -> list[Zone]:
    """Zones in which this row stands or is followed by a record, by name."""
    match row:
        case Zone():
            return [row]
        case Record():
            return [row.zone]
        case StaticIP():
            followed = Q(static_ip=row.pk) | Q(load_balancer__listeners__static_ip=row.pk)
            found = Zone.objects.filter(pk__in=Record.objects.filter(followed).values("zone"))
        case LoadBalancer():
            found = Zone.objects.filter(records__load_balancer=row.pk)
        case Node():
            found = zones_following_fleets([row.fleet_id])
        case Fleet():
            found = zones_following_fleets([row.pk])
        case _:
            return []
    return list(found.order_by("domain").distinct())


def zones_following_fleets(fleets: list[int]) -> QuerySet[Zone]:
    """Zones with records that follow load balancers on any of the fleets: nodes' addresses are among what they say."""
    return Zone.objects.filter(records__load_balancer__fleets__in=fleets)
