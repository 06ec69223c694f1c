"""DEFINE → COMPILE for clouds, the only bridge: database rows of one stack become what the compiler reads.

As in `snapshot.py` the number of queries does not depend on the number of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet

from apps.compiler.model import fleet as model
from apps.compiler.model import stack as stacks
from apps.definitions.freezing.frozen_routes import UNREADABLE, frozen_routes
from apps.definitions.freezing.listener_certificates import Presented, certificates_in, frozen_certificates
from apps.definitions.freezing.zone_records import values_of
from apps.definitions.models import (
    Backend,
    HealthCheck,
    Listener,
    LoadBalancer,
    Pool,
    Record,
    Route,
    RoutePool,
    Server,
    Zone,
)
from apps.definitions.ports import PORTS
from apps.definitions.reading.clouds import network_of
from apps.fleet import distances
from apps.fleet.models import Region, Stack, StaticIP
from apps.fleet.selectors import latency_table


def freeze_stack(stack_id: int) -> tuple[stacks.StackSnapshot, int]:
    """The snapshot of a stack and the desired generation that it answers, consistent with each other."""
    with transaction.atomic():
        rows = Stack.objects.select_for_update(of=("self",)).select_related("cloud_account", "region")
        stack = rows.get(pk=stack_id)
        return snapshot_of_stack(stack), stack.desired_generation


def snapshot_of_stack(stack: Stack) -> stacks.StackSnapshot:
    """Everything that the stack must run; the number of queries is the same whatever the size."""
    unreadable: list[model.Unreadable] = []
    presented = certificates_in(stack)
    pools = Q(route_shares__route__load_balancer__stacks=stack) | Q(listeners__load_balancer__stacks=stack)
    return stacks.StackSnapshot(
        id=f"stk-{stack.pk}",
        label=stack.name,
        cloud=stacks.Cloud(stack.cloud_account.cloud),
        cloud_region=stack.cloud_region,
        region=stack.region.name if stack.region else "",
        project=stack.cloud_account.project,
        endpoint_url=stack.cloud_account.endpoint_url,
        network=_network(stack, unreadable),
        load_balancers=_load_balancers(stack, presented, unreadable),
        pools=frozen_pools(
            Pool.objects.filter(pools).distinct(), stack.region, unreadable, PORTS.stack_weights(stack.pk)
        ),
        certificates=frozen_certificates(presented),
        addresses=tuple(frozen_address(row) for row in _addresses(stack)),
        zones=_zones(stack),
        unreadable=tuple(unreadable),
    )


def _network(stack: Stack, unreadable: list[model.Unreadable]) -> stacks.Network:
    try:
        return network_of(stack)
    except UNREADABLE:
        unreadable.append(model.Unreadable(f"stk-{stack.pk}", stack.name, "network"))
        return stacks.Network()


def _load_balancers(
    stack: Stack, presented: Presented, unreadable: list[model.Unreadable]
) -> tuple[model.LoadBalancer, ...]:
    # Routes of a name that its account has not proved are kept, but nobody serves them.
    rows = Route.objects.filter(load_balancer__stacks=stack).exclude(hostname__proof="")
    routes = frozen_routes(rows, RoutePool.objects.filter(route__load_balancer__stacks=stack), unreadable)
    listeners = frozen_listeners(Listener.objects.filter(load_balancer__stacks=stack), presented, stack.pk)
    fronts = LoadBalancer.objects.filter(stacks=stack).order_by("id").values_list("id", "name", "account__name")
    return tuple(
        model.LoadBalancer(f"lb-{pk}", name, account, tuple(listeners[pk]), tuple(routes[pk]))
        for pk, name, account in fronts
    )


def frozen_listeners(
    rows: QuerySet[Listener], presented: Presented, stack_id: int | None
) -> dict[int, list[model.Listener]]:
    """Load balancer → its listeners; an address is the id of a static IP of this stack, None for any other."""
    found: dict[int, list[model.Listener]] = defaultdict(list)
    address = ("static_ip_id", "static_ip__stack_id")
    fields = ("id", "load_balancer_id", "name", "protocol", "port", *address, "default_pool_id")
    for pk, balancer, name, protocol, port, static_ip, where, pool in rows.order_by("id").values_list(*fields):
        found[balancer].append(
            model.Listener(
                id=f"lst-{pk}",
                label=name,
                protocol=model.Protocol(protocol),
                port=port,
                address=f"ip-{static_ip}" if static_ip and where == stack_id else None,
                certificate_ids=tuple(f"crt-{key}" for key in presented.by_listener.get(pk, ())),
                default_pool_id=f"pool-{pool}" if pool else None,
            )
        )
    return found


def frozen_pools(
    rows: QuerySet[Pool],
    own_region: Region | None,
    unreadable: list[model.Unreadable],
    weights: Mapping[int, int],
) -> tuple[stacks.CloudPool, ...]:
    """Pools with their backends in all regions: the own one first, then as overflow tries them. Six queries."""
    keys = list(rows.order_by("id").values_list("pk", flat=True))
    checks = {
        row.pop("pool_id"): model.HealthCheck(**row)
        for row in HealthCheck.objects.filter(pool__in=keys).values("pool_id", *model.HealthCheck.__slots__)
    }
    spoilt: dict[int, str] = {}
    backends = _backends(keys, weights, spoilt, unreadable)
    nearest = _nearest(own_region)
    found = []
    for pool in Pool.objects.filter(pk__in=keys).order_by("id").annotate(account_name=F("account__name")):
        try:
            found.append(_pool(pool, own_region, nearest, backends[pool.pk], checks.get(pool.pk)))
        except (ValueError, TypeError):
            spoilt[pool.pk] = "protocol, balance or overflow"
        if pool.pk in spoilt:
            label = f"{pool.account_name}/{pool.name}"
            unreadable.append(model.Unreadable(f"pool-{pool.pk}", label, spoilt[pool.pk]))
    return tuple(pool for pool in found if int(pool.id.removeprefix("pool-")) not in spoilt)


def _nearest(own: Region | None) -> list[str]:
    """Names of the other regions, nearest first; all by name where the stack stands for every region."""
    names = dict(Region.objects.order_by("name").values_list("pk", "name"))
    if own is None:
        return sorted(names.values())
    return distances.nearest_first(own.pk, {pk: name for pk, name in names.items() if pk != own.pk}, latency_table())


def _backends(
    pools: Iterable[int], weights: Mapping[int, int], spoilt: dict[int, str], unreadable: list[model.Unreadable]
) -> dict[int, dict[str, stacks.CloudBackend]]:
    """Pool → name of the region → its backend there."""
    servers = _servers(pools, unreadable)
    found: dict[int, dict[str, stacks.CloudBackend]] = defaultdict(dict)
    for row in Backend.objects.filter(pool__in=pools).select_related("region").order_by("id"):
        try:
            limit = model.Limit(model.LimitKind(row.limit_kind), row.limit_value, model.LimitScope(row.limit_scope))
        except ValueError:
            spoilt[row.pool_id] = f"limit in {row.region.name}"
            continue
        found[row.pool_id][row.region.name] = stacks.CloudBackend(
            id=f"bkd-{row.pk}",
            region=row.region.name,
            servers=tuple(servers[row.pk]),
            limit=limit,
            capacity_scaler=0.0 if row.region.drained else row.capacity_scaler,
            weight=weights.get(row.pk, 0),
        )
    return found


def _servers(pools: Iterable[int], unreadable: list[model.Unreadable]) -> dict[int, list[model.Server]]:
    found: dict[int, list[model.Server]] = defaultdict(list)
    rows = Server.objects.filter(backend__pool__in=pools).order_by("id")
    fields = ("backend_id", "id", "name", "address", "port", "weight", "state")
    for backend, pk, name, address, port, weight, state in rows.values_list(*fields):
        if state in model.ServerState.__members__.values():
            found[backend].append(model.Server(f"srv-{pk}", name, address, port, weight, model.ServerState(state)))
        else:
            unreadable.append(model.Unreadable(f"srv-{pk}", name, "state"))
    return found


def _pool(
    pool: Any,
    own: Region | None,
    nearest: list[str],
    backends: dict[str, stacks.CloudBackend],
    check: model.HealthCheck | None,
) -> stacks.CloudPool:
    first = [own.name] if own else []
    chosen = [name for name in pool.overflow_order if name not in first]
    order = dict.fromkeys([*first, *chosen, *nearest])
    return stacks.CloudPool(
        id=f"pool-{pool.pk}",
        label=f"{pool.account_name}/{pool.name}",
        account=pool.account_name,
        protocol=model.Protocol(pool.protocol),
        balance=model.Balance(pool.balance),
        backends=tuple(backends[name] for name in order if name in backends),
        health_check=check,
        when_full=model.WhenFull(pool.when_full),
        **model.options_of(pool),
    )


def _addresses(stack: Stack) -> QuerySet[StaticIP]:
    rows = StaticIP.objects.filter(stack=stack).select_related("account", "owner")
    return rows.prefetch_related("listeners").order_by("id")


def frozen_address(row: StaticIP) -> stacks.CloudAddress:
    """A static IP with the load balancer that it serves; its listeners are prefetched."""
    users = [listener.load_balancer_id for listener in row.listeners.all()]
    return stacks.CloudAddress(
        id=f"ip-{row.pk}",
        label=row.name,
        account=(row.owner or row.account).name,
        kind=stacks.AddressKind(row.kind),
        protected=row.protected,
        load_balancer_id=f"lb-{users[0]}" if users else "",
    )


def _zones(stack: Stack) -> tuple[stacks.CloudZone, ...]:
    """Zones that the stack keeps. What follows something outside of the stack has that one's addresses as values."""
    zones = Zone.objects.filter(stack=stack, driver=Zone.Driver.ROUTE53).select_related("account").order_by("id")
    here = set(LoadBalancer.objects.filter(stacks=stack).values_list("pk", flat=True))
    records: dict[int, list[stacks.CloudRecord]] = defaultdict(list)
    rows = Record.objects.filter(zone__in=zones).select_related("static_ip", "load_balancer").order_by("id")
    for row in rows:
        records[row.zone_id].append(_record(row, stack, here))
    return tuple(
        stacks.CloudZone(
            f"zone-{zone.pk}",
            f"{zone.account.name}/{zone.name}",
            zone.account.name,
            zone.domain,
            tuple(records[zone.pk]),
        )
        for zone in zones
    )


def _record(row: Record, stack: Stack, here: set[int]) -> stacks.CloudRecord:
    address = f"ip-{row.static_ip_id}" if row.static_ip and row.static_ip.stack_id == stack.pk else ""
    balancer = f"lb-{row.load_balancer_id}" if row.load_balancer_id in here else ""
    return stacks.CloudRecord(
        id=f"rec-{row.pk}",
        name=row.label,
        type=stacks.RecordType(row.type),
        ttl=row.ttl,
        # Of two load balancers' records that stand elsewhere each asks for itself: there are few.
        values=() if address or balancer else tuple(values_of(row)),
        address_id=address,
        load_balancer_id=balancer,
    )
