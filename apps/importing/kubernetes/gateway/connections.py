"""TLSRoutes and TCPRoutes: pools of tcp listeners, by the name that clients ask for."""

from __future__ import annotations

from typing import Any

from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.gateway.attaching import attachments, without_listener
from apps.importing.kubernetes.gateway.backends import shares_of
from apps.importing.kubernetes.gateway.listeners import ANY, Listener
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.kubernetes.objects.pools import Pools

ONE_LABEL = "Here *. is one label; names with several labels before the domain are closed."
ONE_POOL = "Connections of a name go to one pool; the one with the largest share has all of them."


def read_connections(context: Context, pools: Pools, listeners: list[Listener]) -> None:
    """Every route of tcp; listeners that nobody is attached to are left out at the end."""
    for route in context.of_kind("TLSRoute", "TCPRoute"):
        route.mapped(("kind",))
        attached = attachments(context, route, listeners)
        if not attached:
            without_listener(context, route)
            continue
        pool = _pool(context, pools, route)
        for listener, hostnames in attached if pool else ():
            for hostname in hostnames:
                _add(route, listener, hostname, pool)
    _drop_empty(context, listeners)


def _pool(context: Context, pools: Pools, route: Manifest) -> str:
    """The pool with the largest share of all rules' backends."""
    weights: dict[str, int] = {}
    for at, _ in route.each("spec", "rules"):
        found = shares_of(context, pools, route, at, {}, "tcp")
        for pool, weight in found.weights.items():
            weights[pool] = weights.get(pool, 0) + weight
        if sum(weight > 0 for weight in weights.values()) > 1:
            route.impossible((*at, "backendRefs"), ONE_POOL)
        route.mapped((*at, "name"))
    best = max(weights, key=lambda pool: weights[pool], default="")
    return best if weights.get(best) else ""


def _add(route: Manifest, listener: Listener, hostname: str, pool: str) -> None:
    spec = listener.spec
    if hostname == ANY or listener.said == "TCP":
        if "default_pool" in spec and spec["default_pool"] != pool:
            route.dead(("spec", "rules"), "An older route of the file has all connections of this listener.")
        spec.setdefault("default_pool", pool)
        return
    if hostname.startswith("**."):
        route.differs(("spec", "hostnames"), ONE_LABEL)
        hostname = hostname.removeprefix("*")
    routes: list[dict[str, Any]] = spec.setdefault("sni_routes", [])
    if all(each["hostname"] != hostname for each in routes):
        routes.append({"hostname": hostname, "pool": pool, **({"passthrough": True} if listener.passes else {})})


def _drop_empty(context: Context, listeners: list[Listener]) -> None:
    """A listener of tcp needs a pool; passing on needs saying only where TLS ends as well."""
    for listener in listeners:
        spec = listener.spec
        if listener.protocol != "tcp":
            continue
        if "certificates" not in spec:
            for each in spec.get("sni_routes", ()):
                each.pop("passthrough", None)
        if not spec.keys() & {"default_pool", "sni_routes"}:
            balancer = context.load_balancers[listener.load_balancer]
            balancer["listeners"] = [each for each in balancer["listeners"] if each is not spec]
            listener.gateway.dead(listener.at, "No route attaches to it.")
