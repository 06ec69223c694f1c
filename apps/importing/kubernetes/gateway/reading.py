"""Gateways and the routes that attach to them, as load balancers and routes."""

from __future__ import annotations

from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.gateway.connections import read_connections
from apps.importing.kubernetes.gateway.http_routes import HttpRoutes
from apps.importing.kubernetes.gateway.listeners import read_listeners
from apps.importing.kubernetes.objects.pools import Pools


def read_gateways(context: Context, pools: Pools) -> None:
    """Every Gateway of the file; load balancers whose last listener fell away are left out."""
    listeners = read_listeners(context)
    HttpRoutes(context, pools, listeners).read()
    read_connections(context, pools, listeners)
    for name in [name for name, spec in context.load_balancers.items() if not spec["listeners"]]:
        del context.load_balancers[name]
