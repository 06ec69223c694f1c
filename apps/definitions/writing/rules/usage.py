"""Before a delete: who uses the object, in words that the actor may read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.affected_targets import users_of_list
from apps.definitions.models import (
    Backend,
    CapacityTest,
    Certificate,
    Listener,
    LoadBalancer,
    NetworkList,
    Policy,
    Pool,
    Route,
    Schedule,
    Zone,
)
from apps.definitions.writing.kinds.schedules import owed_by
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Region, Stack, StaticIP

SHOWN = 5


def users_of(actor: Actor, row: Any) -> list[str]:
    """Up to five users by kind and name, then how many more; what the actor may not see is only counted."""
    found = _USERS[type(row)](row) if type(row) in _USERS else []
    seen = [text for text, account in found if actor.is_operator or account == actor.account.pk]
    named, rest = seen[:SHOWN], len(found) - len(seen[:SHOWN])
    return [*named, f"{rest} more"] if rest else named


Users = list[tuple[str, int]]


def _of_pool(row: Pool) -> Users:
    routes = Route.objects.filter(pools__pool=row).order_by("name")
    used = _named("route", routes) + _listeners(Q(default_pool=row) | Q(sni_routes__pool=row))
    return used + _named("capacity test", row.capacity_tests.order_by("name"))


def _of_load_balancer(row: LoadBalancer) -> Users:
    return _named("route", row.routes.order_by("name")) + _named("record", row.records.order_by("name"))


def _of_static_ip(row: StaticIP) -> Users:
    return _listeners(Q(static_ip=row)) + _named("record", row.records.order_by("name"))


def _of_fleet(row: Fleet) -> Users:
    used = _named("load balancer", row.load_balancers.all()) + _named("node", row.nodes.all())
    return used + _schedules("rollout", target__fleet=row.name)


def _of_stack(row: Stack) -> Users:
    used = _named("load balancer", row.load_balancers.all()) + _named("static IP", row.static_ips.all())
    return used + _named("zone", row.zones.all())


def _of_schedule(row: Schedule) -> Users:
    # A change that it made and has still to take back.
    owed = owed_by(row)
    return [(f"a change that it restores at {owed:%Y-%m-%d %H:%M:%S} UTC", row.account_id)] if owed else []


def _of_region(row: Region) -> Users:
    backends = Backend.objects.filter(region=row).values_list("pool__name", "account_id")
    pools = [(f"pool {name}", account) for name, account in backends]
    text = Cast("overflow_order", TextField())
    ordered = Pool.objects.annotate(text=text).filter(text__contains=f'"{row.name}"')
    pools += _named("overflow order of pool", ordered.order_by("name"))
    for kind, model in (("policy", Policy), ("route", Route)):
        rows = model.objects.annotate(text=Cast("rules", TextField())).filter(text__contains=f'"{row.name}"')
        pools += [(f"{kind} {each.name}", each.account_id) for each in rows.order_by("name") if _orders(each, row.name)]
    used = _named("fleet", row.fleets.all()) + _named("static IP", row.static_ips.all())
    used += _named("stack", _stacks_in(row)) + _named("address pool", row.address_pools.all())
    return used + pools + _named("capacity test", row.capacity_tests.order_by("name"))


def _orders(row: Policy | Route, region: str) -> bool:
    return region in (((row.rules or {}).get("overflow") or {}).get("order") or ())


def _of_network_list(row: NetworkList) -> Users:
    policies, routes = users_of_list(row)
    used = [(f"policy {each.name}", each.account_id) for each in policies]
    return used + [(f"route {each.name}", each.account_id) for each in routes]


# Kinds that are not here are used by nobody.
_USERS: dict[type[Any], Callable[[Any], Users]] = {
    # Its history stays, so it stays; and nobody else could own its objects.
    Account: lambda row: [("its own history in the audit log", row.pk)],
    Region: _of_region,
    Fleet: _of_fleet,
    CloudAccount: lambda row: _named("stack", row.stacks.all()),
    Stack: _of_stack,
    AddressPool: lambda row: _named("static IP", row.static_ips.all()),
    StaticIP: _of_static_ip,
    Certificate: lambda row: _listeners(Q(certificates=row)) + _named("pool", row.pools.order_by("name")),
    Pool: _of_pool,
    LoadBalancer: _of_load_balancer,
    NetworkList: _of_network_list,
    Policy: lambda row: _named("route", Route.objects.filter(policy_links__policy=row).order_by("name")),
    Zone: lambda row: _named("record", row.records.order_by("name")),
    CapacityTest: lambda row: _schedules("capacity_test", target__name=row.name, account=row.account_id),
    Schedule: _of_schedule,
}


def _stacks_in(row: Region) -> QuerySet[Stack]:
    """Stacks of the region, and those that register its servers in a zone of their cloud."""
    text = Cast("network", TextField())
    return (
        Stack.objects.annotate(text=text).filter(Q(region=row) | Q(text__contains=f'"{row.name}": "')).order_by("name")
    )


def _named(word: str, rows: Any) -> Users:
    return [(f"{word} {name}", account) for name, account in rows.values_list("name", "account_id").distinct()]


def _schedules(target_kind: str, **which: Any) -> Users:
    return _named("schedule", Schedule.objects.filter(target_kind=target_kind, **which).order_by("name"))


def _listeners(condition: Q) -> Users:
    rows = Listener.objects.filter(condition).distinct().order_by("id")
    fields = rows.values_list("name", "load_balancer__name", "account_id")
    return [(f"listener {name} of {balancer}", account) for name, balancer, account in fields]
