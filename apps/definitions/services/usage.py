"""DEFINE, before a delete: who uses the object, in words that the actor may read."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.models import Backend, CapacityTest, Certificate, Listener, LoadBalancer, Pool, Route, Schedule
from apps.definitions.services.schedules import owed_by
from apps.fleet.models import Fleet, Node, Region, StaticIP

SHOWN = 5


def users_of(actor: Actor, row: Any) -> list[str]:
    """Up to five users by kind and name, then how many more; what the actor may not see is only counted."""
    found = _users(row)
    seen = [text for text, account in found if actor.is_operator or account == actor.account.pk]
    named, rest = seen[:SHOWN], len(found) - len(seen[:SHOWN])
    return [*named, f"{rest} more"] if rest else named


def _users(row: Any) -> list[tuple[str, int]]:  # noqa: PLR0911 - an answer per kind
    match row:
        case Pool():
            routes = Route.objects.filter(pools__pool=row).order_by("name")
            used = _named("route", routes) + _listeners(Q(default_pool=row))
            return used + _named("capacity test", row.capacity_tests.order_by("name"))
        case Certificate():
            return _listeners(Q(certificates=row))
        case LoadBalancer():
            return _named("route", row.routes.order_by("name"))
        case StaticIP():
            return _listeners(Q(static_ip=row))
        case Fleet():
            used = _named("load balancer", row.load_balancers.all()) + _named("node", row.nodes.all())
            return used + _schedules("rollout", target__fleet=row.name)
        case CapacityTest():
            return _schedules("capacity_test", target__name=row.name, account=row.account_id)
        case Schedule():
            # A change that it made and has still to take back.
            owed = owed_by(row)
            return [(f"a change that it takes back at {owed:%Y-%m-%d %H:%M:%S} UTC", row.account_id)] if owed else []
        case Region():
            backends = Backend.objects.filter(region=row).values_list("pool__name", "account_id")
            pools = [(f"pool {name}", account) for name, account in backends]
            text = Cast("overflow_order", TextField())
            ordered = Pool.objects.annotate(text=text).filter(text__contains=f'"{row.name}"')
            pools += _named("overflow order of pool", ordered.order_by("name"))
            used = _named("fleet", row.fleets.all()) + _named("static IP", row.static_ips.all())
            return used + pools + _named("capacity test", row.capacity_tests.order_by("name"))
        case Account():
            # Its history stays, so it stays; and nobody else could own its objects.
            return [("its own history in the audit record", row.pk)]
        case Node() | _:
            return []


def _named(word: str, rows: Any) -> list[tuple[str, int]]:
    return [(f"{word} {name}", account) for name, account in rows.values_list("name", "account_id").distinct()]


def _schedules(target_kind: str, **which: Any) -> list[tuple[str, int]]:
    return _named("schedule", Schedule.objects.filter(target_kind=target_kind, **which).order_by("name"))


def _listeners(condition: Q) -> list[tuple[str, int]]:
    rows = Listener.objects.filter(condition).order_by("id")
    fields = rows.values_list("name", "load_balancer__name", "account_id")
    return [(f"listener {name} of {balancer}", account) for name, balancer, account in fields]
