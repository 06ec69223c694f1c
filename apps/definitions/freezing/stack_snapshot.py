"""The only bridge for clouds: database rows of one stack become what the compiler reads.

As in `snapshot.py` the number of queries does not depend on the number of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.compiler.model import shared as model
from apps.compiler.model import stack as stacks
from apps.compiler.model.servers import OverflowMode
from apps.definitions.freezing.frozen_routes import UNREADABLE
from apps.definitions.freezing.frozen_servers import open_to
from apps.definitions.freezing.frozen_traffic import (
    AddressOf,
    each_backend,
    each_pool,
    fields_of_pool,
    frozen_checks,
    frozen_load_balancers,
    frozen_servers,
)
from apps.definitions.freezing.listener_certificates import certificates_in, frozen_certificates
from apps.definitions.freezing.zone_records import values_of
from apps.definitions.models import Backend, LoadBalancer, Pool, Record, Server, Zone
from apps.definitions.ports import PORTS
from apps.definitions.shapes.clouds.stack import network_of
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
        load_balancers=frozen_load_balancers(stack, presented, address_in(stack.pk), unreadable),
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
        return network_of(stack.network)
    except UNREADABLE:
        unreadable.append(model.Unreadable(f"stk-{stack.pk}", stack.name, "network"))
        return stacks.Network()


def address_in(stack_id: int | None) -> AddressOf:
    """A listener's address is the id of a static IP of this stack; any other is None."""

    def address_of(row: Any) -> str | None:
        return f"ip-{row.static_ip_id}" if row.static_ip_id and row.static_ip__stack_id == stack_id else None

    return address_of


def frozen_pools(
    rows: QuerySet[Pool],
    own_region: Region | None,
    unreadable: list[model.Unreadable],
    weights: Mapping[int, int],
) -> tuple[stacks.CloudPool, ...]:
    """Pools with their backends in all regions: the own one first, then as overflow tries them. Six queries."""
    keys = list(rows.order_by("id").values_list("pk", flat=True))
    spoilt, nearest = dict[int, str](), _nearest(own_region)
    checks = frozen_checks(keys, spoilt)
    servers = frozen_servers(Server.objects.filter(backend__pool__in=keys), "backend_id", unreadable)

    def backend(row: Any, limit: model.Limit, scaler: float) -> stacks.CloudBackend:
        weight = weights.get(row.pk, 0)
        return stacks.CloudBackend(f"bkd-{row.pk}", row.region.name, tuple(servers[row.pk]), limit, scaler, weight)

    backends = each_backend(Backend.objects.filter(pool__in=keys), backend, spoilt)

    def frozen(pool: Any) -> stacks.CloudPool:
        first = [own_region.name] if own_region else []
        order = dict.fromkeys([*pool.overflow_order, *nearest])
        # A stack that stands for all regions serves each where it is; its capabilities say what is lost.
        order = dict.fromkeys([*first, *open_to(pool.overflow_mode, pool.overflow_order, order)]) if first else order
        there = backends[pool.pk]
        own = tuple(there[name] for name in order if name in there)
        return stacks.CloudPool(
            backends=own, overflow_mode=OverflowMode(pool.overflow_mode), **fields_of_pool(pool, checks.get(pool.pk))
        )

    return each_pool(Pool.objects.filter(pk__in=keys), frozen, spoilt, unreadable)


def _nearest(own: Region | None) -> list[str]:
    """Names of the other regions, nearest first; all by name where the stack stands for every region."""
    names = dict(Region.objects.order_by("name").values_list("pk", "name"))
    if own is None:
        return sorted(names.values())
    return distances.nearest_first(own.pk, {pk: name for pk, name in names.items() if pk != own.pk}, latency_table())


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
