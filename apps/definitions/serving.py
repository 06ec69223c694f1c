"""Questions to the rows: which listeners lead to a pool, which servers count, and which pools only clouds serve."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce, NullIf

from apps.compiler.model.shared import ServerState
from apps.definitions.models import Backend, Listener, LoadBalancer, Pool, ProtocolRoute, RoutePool, SniRoute

# Where the pools of connections are written: no route of a load balancer says them.
CONNECTION_ROUTES = (SniRoute, ProtocolRoute)


def leading_to(pools: Collection[Pool | int]) -> QuerySet[Listener]:
    """Listeners that lead connections, or what matches no route, to any of the pools (rows or primary keys)."""
    found = Q(default_pool__in=pools)
    for each in CONNECTION_ROUTES:
        found |= Q(pk__in=each.objects.filter(pool__in=pools).values("listener"))
    return Listener.objects.filter(found)


def led_to_by(listeners: QuerySet[Listener]) -> Q:
    """The condition of pools that these listeners lead to without any route of their load balancer."""
    found = Q(pk__in=listeners.exclude(default_pool=None).order_by().values("default_pool"))
    for each in CONNECTION_ROUTES:
        found |= Q(pk__in=each.objects.filter(listener__in=listeners.order_by()).order_by().values("pool"))
    return found


def usable(servers: str = "") -> Q:
    """The condition of servers that get requests as far as definitions say; whether they are up only nodes know.

    `servers` leads to them (`"servers__"`).
    """
    said = {"state": ServerState.READY.value, "weight__gt": 0, "leaving": False}
    return Q(**{f"{servers}{field}": value for field, value in said.items()})


def usable_servers() -> Coalesce:
    """Of backends, how many servers a limit per server counts: :func:`apps.compiler.limits.usable`, of rows."""
    primary, backup = (
        Count("servers", filter=usable("servers__") & Q(servers__backup=is_backup)) for is_backup in (False, True)
    )
    return Coalesce(NullIf(primary, 0), backup)


def usable_in(backend_id: int) -> int:
    """The same of one backend, as it is stored now."""
    rows = Backend.objects.filter(pk=backend_id).annotate(usable=usable_servers())
    return int(rows.values_list("usable", flat=True)[0])


def clouds_alone() -> frozenset[int]:
    """Pools (primary keys) whose load balancers all stand in stacks and on no fleet; a pool without any is none."""
    balancers: dict[int, set[int]] = defaultdict(set)
    for pool, balancer in RoutePool.objects.order_by().values_list("pool_id", "route__load_balancer_id").distinct():
        balancers[pool].add(balancer)
    defaults = Listener.objects.exclude(default_pool=None).order_by()
    for pool, balancer in defaults.values_list("default_pool_id", "load_balancer_id"):
        if pool is not None:
            balancers[pool].add(balancer)
    for each in CONNECTION_ROUTES:
        for pool, balancer in each.objects.order_by().values_list("pool_id", "listener__load_balancer_id"):
            balancers[pool].add(balancer)
    clouds = set(LoadBalancer.objects.filter(fleets=None).exclude(stacks=None).values_list("pk", flat=True))
    return frozenset(pool for pool, used in balancers.items() if used <= clouds)


def in_use() -> frozenset[int]:
    """Pools that a route or a listener leads to."""
    used = Q(pk__in=RoutePool.objects.order_by().values("pool")) | led_to_by(Listener.objects.all())
    return frozenset(Pool.objects.filter(used).order_by().values_list("pk", flat=True))
