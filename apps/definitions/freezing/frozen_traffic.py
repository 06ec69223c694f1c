"""What fleets and stacks freeze alike: load balancers, listeners, pools, backends and servers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from django.db.models import Exists, F, OuterRef, QuerySet

from apps.compiler.model import shared as model
from apps.compiler.model.servers import CheckKind
from apps.definitions.freezing.frozen_lists import NetworkLists, with_lists
from apps.definitions.freezing.frozen_routes import UNREADABLE, RoutesServed, frozen_routes
from apps.definitions.freezing.frozen_servers import options_of_row
from apps.definitions.freezing.listener_certificates import Presented
from apps.definitions.freezing.listener_options import (
    COLUMNS,
    OBJECTS,
    frozen_options,
    protocol_routes_of,
    sni_routes_of,
)
from apps.definitions.models import Backend, HealthCheck, Listener, LoadBalancer, Pool, Route, RoutePool, Server
from apps.fleet.models import Fleet, Stack

# Kinds of objects, as the audit log names them, of which what is frozen here is made.
TRAFFIC_KINDS = (
    *("Account", "Backend", "Certificate", "Grant", "Hostname", "KeySet", "LoadBalancer", "NetworkList", "Policy"),
    *("Pool", "Region", "Route", "Server", "StaticIP"),
)
T = TypeVar("T")
AddressOf = Callable[[Any], str | None]
"""What a listener binds, of a row with `static_ip_id` and the static IP's `kind`, `address` and `stack_id`."""
_STATIC_IP = ("static_ip_id", "static_ip__kind", "static_ip__address", "static_ip__stack_id")


def frozen_load_balancers(
    target: Fleet | Stack, presented: Presented, address_of: AddressOf, unreadable: list[model.Unreadable]
) -> tuple[model.LoadBalancer, ...]:
    """Those of the target with their listeners and routes."""
    side = "fleets" if isinstance(target, Fleet) else "stacks"
    here = {f"load_balancer__{side}": target}
    listeners = frozen_listeners(Listener.objects.filter(**here), presented, address_of, unreadable)
    # Routes of a name that its account has not verified are kept, but nobody serves them.
    rows = Route.objects.filter(**here).exclude(hostname__verification="")
    routes = frozen_routes(rows, RoutePool.objects.filter(**{f"route__load_balancer__{side}": target}), unreadable)
    fronts = LoadBalancer.objects.filter(**{side: target}).select_related("account").order_by("id")
    return tuple(frozen_load_balancer(each, listeners[each.pk], routes[each.pk]) for each in fronts)


def frozen_load_balancer(
    row: LoadBalancer, listeners: Iterable[model.Listener], served: RoutesServed
) -> model.LoadBalancer:
    """A load balancer with its parts, and the lists of networks that any of them names."""
    parts = served._replace(network_lists=with_lists(served.network_lists, [each.access for each in listeners]))
    return model.LoadBalancer(f"lb-{row.pk}", row.name, row.account.name, tuple(listeners), *parts)


def frozen_listeners(
    rows: QuerySet[Listener], presented: Presented, address_of: AddressOf, unreadable: list[model.Unreadable]
) -> dict[int, list[model.Listener]]:
    """Load balancer → its listeners."""
    found: dict[int, list[model.Listener]] = defaultdict(list)
    sni_routes, protocol_routes, lists = sni_routes_of(rows), protocol_routes_of(rows), NetworkLists()
    own = ("id", "account_id", "load_balancer_id", "name", "protocol", "port", "default_pool_id")
    columns = (*own, *COLUMNS, *_STATIC_IP, "names_certificates")
    named = Exists(Listener.certificates.through.objects.filter(listener=OuterRef("pk")))
    for row in rows.order_by("id").annotate(names_certificates=named).values_list(*columns, named=True):
        try:
            options = frozen_options(row, lists)
        except (ValueError, KeyError):
            unreadable.append(model.Unreadable(f"lst-{row.id}", row.name, ", ".join(OBJECTS)))
            continue
        found[row.load_balancer_id].append(
            model.Listener(
                id=f"lst-{row.id}",
                label=row.name,
                protocol=model.Protocol(row.protocol),
                port=row.port,
                address=address_of(row),
                certificate_ids=tuple(f"crt-{key}" for key in presented.by_listener.get(row.id, ())),
                default_pool_id=f"pool-{row.default_pool_id}" if row.default_pool_id else None,
                sni_routes=tuple(sni_routes[row.id]),
                protocol_routes=tuple(protocol_routes[row.id]),
                ends_tls=row.protocol == model.Protocol.TCP and row.names_certificates,
                **options,
            )
        )
    return found


def frozen_checks(pools: QuerySet[Pool] | Collection[int], spoilt: dict[int, str]) -> dict[int, model.HealthCheck]:
    """Pool → its health check; a pool whose check says nothing that could be meant is spoilt."""
    found = {}
    for row in HealthCheck.objects.filter(pool__in=pools).values("pool_id", *model.HealthCheck.__slots__):
        pool = row.pop("pool_id")
        try:
            headers = tuple((str(name), str(value)) for name, value in row.pop("headers"))
            statuses = tuple(map(str, row.pop("expect_statuses")))
            kind = CheckKind(row.pop("kind"))
            found[pool] = model.HealthCheck(kind=kind, headers=headers, expect_statuses=statuses, **row)
        except UNREADABLE:
            spoilt[pool] = "health_check"
    return found


def each_pool(
    rows: QuerySet[Pool], make: Callable[[Any], T], spoilt: dict[int, str], unreadable: list[model.Unreadable]
) -> tuple[T, ...]:
    """What `make` makes of each pool; one of `spoilt`, or without a meaning, is unreadable as a whole."""
    found = []
    for pool in rows.order_by("id").annotate(account_name=F("account__name")):
        try:
            one = make(pool)
        except UNREADABLE:
            spoilt.setdefault(pool.pk, "protocol, balance, overflow or the way to servers")
        if pool.pk in spoilt:
            label = f"{pool.account_name}/{pool.name}"
            unreadable.append(model.Unreadable(f"pool-{pool.pk}", label, spoilt[pool.pk]))
        else:
            found.append(one)
    return tuple(found)


def fields_of_pool(pool: Any, check: model.HealthCheck | None) -> dict[str, Any]:
    """What a pool is wherever it stands. Raises ValueError where a column says nothing that could be meant."""
    return options_of_row(pool) | {
        "id": f"pool-{pool.pk}",
        "label": f"{pool.account_name}/{pool.name}",
        "account": pool.account_name,
        "protocol": model.Protocol(pool.protocol),
        "balance": model.Balance(pool.balance),
        "health_check": check,
        "when_full": model.WhenFull(pool.when_full),
    }


def each_backend(
    rows: QuerySet[Backend], make: Callable[[Any, model.Limit, float], T], spoilt: dict[int, str]
) -> dict[int, dict[str, T]]:
    """Pool → name of the region → what `make` makes of the backend, its limit and its capacity scaler there."""
    found: dict[int, dict[str, T]] = defaultdict(dict)
    for row in rows.select_related("region").order_by("id"):
        try:
            limit = model.Limit(model.LimitKind(row.limit_kind), row.limit_value, model.LimitScope(row.limit_scope))
        except ValueError:
            spoilt[row.pool_id] = f"limit in {row.region.name}"
            continue
        found[row.pool_id][row.region.name] = make(row, limit, 0.0 if row.region.drained else row.capacity_scaler)
    return found


def frozen_servers(
    rows: QuerySet[Server], owner: str, unreadable: list[model.Unreadable]
) -> dict[int, list[model.Server]]:
    """Servers by the column `owner`."""
    found: dict[int, list[model.Server]] = defaultdict(list)
    fields = (owner, "id", "name", "address", "port", "weight", "state", "backup", "leaving")
    for key, pk, name, address, port, weight, state, backup, leaving in rows.order_by("id").values_list(*fields):
        if state in model.ServerState.__members__.values():
            ends = leaving and state == model.ServerState.READY
            told = model.ServerState.DRAIN if ends else model.ServerState(state)
            one = model.Server(f"srv-{pk}", name, address, port, weight, told, backup)
            found[key].append(one)
        else:
            unreadable.append(model.Unreadable(f"srv-{pk}", name, "state"))
    return found
