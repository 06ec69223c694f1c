"""A question to the rows: which pools only clouds serve, so that no fleet's node can check them."""

from __future__ import annotations

from collections import defaultdict

from apps.definitions.models import Listener, LoadBalancer, RoutePool, SniRoute


def clouds_alone() -> frozenset[int]:
    """Pools (primary keys) whose load balancers all stand in stacks and on no fleet; a pool without any is none."""
    balancers: dict[int, set[int]] = defaultdict(set)
    for pool, balancer in RoutePool.objects.order_by().values_list("pool_id", "route__load_balancer_id").distinct():
        balancers[pool].add(balancer)
    defaults = Listener.objects.exclude(default_pool=None).order_by()
    for pool, balancer in defaults.values_list("default_pool_id", "load_balancer_id"):
        if pool is not None:
            balancers[pool].add(balancer)
    for pool, balancer in SniRoute.objects.order_by().values_list("pool_id", "listener__load_balancer_id"):
        balancers[pool].add(balancer)
    clouds = set(LoadBalancer.objects.filter(fleets=None).exclude(stacks=None).values_list("pk", flat=True))
    return frozenset(pool for pool, used in balancers.items() if used <= clouds)


def in_use() -> frozenset[int]:
    """Pools that a route or a listener leads to."""
    routed = RoutePool.objects.order_by().values_list("pool_id", flat=True).distinct()
    defaults = Listener.objects.exclude(default_pool=None).order_by().values_list("default_pool_id", flat=True)
    passed_on = SniRoute.objects.order_by().values_list("pool_id", flat=True).distinct()
    return frozenset(pk for pk in (*routed, *defaults, *passed_on) if pk is not None)
