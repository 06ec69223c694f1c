"""The only bridge: database rows of one fleet become the frozen snapshot that the compiler reads.

The number of queries does not depend on the number of rows, and no ORM object is made for a route: 100 000 routes
are a few hundred milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet

from apps.accounts.models import Account
from apps.accounts.quotas import quota
from apps.compiler.model import fleet as fleets
from apps.compiler.model import shared as model
from apps.compiler.model.haproxy_version import oldest_of
from apps.compiler.model.node_settings import NodeSettings
from apps.compiler.model.stack import ON_FLEETS
from apps.compiler.routing import number_of
from apps.core.secrets.sealing import derived_key
from apps.definitions.freezing.frozen_servers import open_to
from apps.definitions.freezing.frozen_traffic import (
    each_backend,
    each_pool,
    fields_of_pool,
    frozen_checks,
    frozen_load_balancers,
    frozen_servers,
)
from apps.definitions.freezing.listener_certificates import certificates_of, frozen_certificates
from apps.definitions.freezing.listener_options import frozen_object
from apps.definitions.freezing.node_builds import builds_by_fleet
from apps.definitions.issuing.orders import challenges_of
from apps.definitions.models import Backend, Listener, Pool, RoutePool, Server
from apps.definitions.ports import PORTS
from apps.definitions.serving import led_to_by, usable_servers
from apps.definitions.shapes.platform.node_settings import NodeSettingsSpec
from apps.fleet import distances
from apps.fleet.models import Fleet, Node, Region, StaticIP
from apps.fleet.selectors import addresses_of_installation, latency_table

OVERFLOW_KEY = "spillway overflow between fleets 1"
LOOP_MARK = "spillway loops 1"
_VIP = fleets.FleetAddressKind.VIP


def freeze(fleet_id: int) -> tuple[fleets.Snapshot, int]:
    """The snapshot of a fleet and the desired generation that it answers, consistent with each other.

    Every change locks the rows of the fleets that it concerns before it commits (`request_push`); holding that row
    while reading means that no half of a change can be seen.
    """
    with transaction.atomic():
        fleet = Fleet.objects.select_for_update(of=("self",)).select_related("region").get(pk=fleet_id)
        return snapshot_of(fleet), fleet.desired_generation


def snapshot_of(fleet: Fleet) -> fleets.Snapshot:
    """Everything that the nodes of the fleet must run; the number of queries is the same whatever the size."""
    others, presented = _other_regions(fleet), certificates_of(fleet)
    unreadable: list[model.Unreadable] = []
    pools = _pools(fleet, others, unreadable)
    builds = builds_by_fleet([fleet.pk])[fleet.pk]
    shown = [pool.server_tls.client_certificate_id for pool in pools if pool.server_tls]
    return fleets.Snapshot(
        fleet=fleet.name,
        region=fleet.region.name,
        load_balancers=frozen_load_balancers(fleet, presented, _bound, unreadable),
        pools=pools,
        certificates=frozen_certificates(presented, [number_of(key) for key in shown if key]),
        haproxy_version=oldest_of(each.version for each in builds),
        local_development=fleet.local_development,
        region_id=f"rgn-{fleet.region_id}",
        regions=tuple(_region(region) for region in others.with_nodes),
        overflow_key=derived_key(OVERFLOW_KEY),
        overflow_ports=fleets.OverflowPorts(fleet.peer_port, fleet.overflow_port, fleet.overflow_tcp_port),
        bypass_tokens=_bypass_tokens(fleet, pools),
        addresses=_addresses(fleet),
        loop_mark=f"spillway-{derived_key(LOOP_MARK)[:32]}",
        own_addresses=tuple(sorted(addresses_of_installation())),
        private_networks=tuple(fleet.private_networks),
        shares=_shares(fleet),
        node_settings=_node_settings(fleet, unreadable),
        unreadable=tuple(unreadable),
        builds=builds,
        challenges=challenges_of(fleet),
    )


def _node_settings(fleet: Fleet, unreadable: list[model.Unreadable]) -> NodeSettings | None:
    """A document that says nothing meaningful is named, and the nodes are as they always were."""
    try:
        return frozen_object(NodeSettingsSpec, NodeSettings, fleet.node_settings)
    except ValueError:
        unreadable.append(model.Unreadable(f"fleet-{fleet.pk}", fleet.name, "node_settings"))
        return None


def _shares(fleet: Fleet) -> tuple[fleets.AccountShare, ...]:
    """Of the accounts whose pools the fleet carries, as far as they have a ceiling."""
    rows = Account.objects.filter(pk__in=_carried_pools(fleet).values("account")).order_by("pk")
    found = ((row, quota(row, "node_share_percent"), quota(row, "node_rps")) for row in rows)
    return tuple(
        fleets.AccountShare(f"acc-{row.pk}", row.name, percent, rps)
        for row, percent, rps in found
        if percent is not None and rps is not None
    )


def _addresses(fleet: Fleet) -> tuple[fleets.FleetAddress, ...]:
    """Static IPs of the fleet's listeners that its nodes hold or announce.

    A vip moves among the nodes of all fleets of the region that serve a listener of it.
    """
    kinds = [each.value for each in fleets.FleetAddressKind]
    moving = StaticIP.objects.filter(kind__in=kinds, address__isnull=False)
    rows = moving.filter(listeners__load_balancer__fleets=fleet).distinct().order_by("id")
    path = "fleet__load_balancers__listeners__static_ip"
    in_region = Node.objects.filter(fleet__region_id=fleet.region_id, **{f"{path}__in": rows}).order_by("id")
    nodes: dict[int, list[str]] = defaultdict(list)
    for address, node in in_region.values_list(path, "pk").distinct():
        nodes[address].append(f"node-{node}")
    return tuple(
        fleets.FleetAddress(
            id=f"ip-{row.pk}",
            label=row.name,
            address=str(row.address),
            kind=fleets.FleetAddressKind(row.kind),
            router_id=row.router_id or 0,
            nodes=tuple(nodes[row.pk]) if row.kind == _VIP else (),
        )
        for row in rows
    )


def _bypass_tokens(fleet: Fleet, pools: tuple[fleets.Pool, ...]) -> tuple[fleets.BypassToken, ...]:
    """Those of the region whose pool this fleet serves; another fleet of the region may serve the rest."""
    served = {pool.id for pool in pools}
    found = [each for each in PORTS.bypass_tokens(fleet.region_id) if each.pool_id in served]
    return tuple(sorted(found, key=lambda each: each.digest))


@dataclass(frozen=True, slots=True)
class _Regions:
    """The regions with nodes by id, and how near the others are to the fleet's own: names, nearest first."""

    with_nodes: list[Region]
    nearest: list[str]

    def order(self, chosen: list[str]) -> list[str]:
        """Names of the other regions as overflow of a pool tries them: those that were chosen, then the nearest."""
        first = [name for name in chosen if name in self.nearest]
        return first + [name for name in self.nearest if name not in first]


def _other_regions(fleet: Fleet) -> _Regions:
    nodes = Node.objects.select_related("fleet").order_by("id")
    rows = Region.objects.order_by("id").prefetch_related(Prefetch("fleets__nodes", nodes))
    with_nodes = [region for region in rows if any(each.nodes.all() for each in region.fleets.all())]
    names = {region.pk: region.name for region in with_nodes if region.pk != fleet.region_id}
    return _Regions(with_nodes, distances.nearest_first(fleet.region_id, names, latency_table()))


def _region(region: Region) -> fleets.Region:
    nodes = sorted((node for fleet in region.fleets.all() for node in fleet.nodes.all()), key=lambda node: node.pk)
    return fleets.Region(f"rgn-{region.pk}", region.name, tuple(_node(node) for node in nodes))


def _node(node: Node) -> fleets.RegionNode:
    ports = (node.fleet.peer_port, node.fleet.overflow_port, node.fleet.overflow_tcp_port)
    peer, overflow, overflow_tcp = (port + node.port_offset for port in ports)
    return fleets.RegionNode(f"node-{node.pk}", node.name, node.address, peer, overflow, overflow_tcp)


def _bound(row: Any) -> str | None:
    """The listener's address; one that a cloud keeps is not the nodes' to bind."""
    return row.static_ip__address if row.static_ip__kind in ON_FLEETS else None


def _carried_pools(fleet: Fleet) -> QuerySet[Pool]:
    """Pools that routes and listeners lead to, and every other that has servers in the region.

    A pool that nobody uses yet is carried so that its servers are checked before they get traffic, and so that its
    first route is a map entry and no reload.
    """
    by_routes = RoutePool.objects.filter(route__load_balancer__fleets=fleet).values("pool_id")
    by_listeners = led_to_by(Listener.objects.filter(load_balancer__fleets=fleet))
    in_region = Backend.objects.filter(region_id=fleet.region_id).values("pool_id")
    return Pool.objects.filter(Q(pk__in=by_routes) | by_listeners | Q(pk__in=in_region))


def _may_go_to(pool: Any, regions: _Regions) -> list[str]:
    return open_to(pool.overflow_mode, pool.overflow_order, regions.order(pool.overflow_order))


def _pools(fleet: Fleet, regions: _Regions, unreadable: list[model.Unreadable]) -> tuple[fleets.Pool, ...]:
    carried = _carried_pools(fleet)
    spoilt: dict[int, str] = {}
    checks = frozen_checks(carried, spoilt)
    rows = Backend.objects.filter(pool__in=carried).annotate(ready=usable_servers())
    backends = each_backend(rows, _share, spoilt)
    here = Server.objects.filter(backend__pool__in=carried, backend__region_id=fleet.region_id)
    servers = frozen_servers(here, "backend__pool_id", unreadable)
    nothing = fleets.RegionShare("", capacity_scaler=0.0 if fleet.region.drained else 1.0)

    def frozen(pool: Any) -> fleets.Pool:
        shares = backends[pool.pk]
        own = shares.get(fleet.region.name, nothing)
        return fleets.Pool(
            servers=tuple(servers.get(pool.pk, ())),
            limit=own.limit,
            capacity_scaler=own.capacity_scaler,
            elsewhere=tuple(shares[name] for name in _may_go_to(pool, regions) if name in shares),
            **fields_of_pool(pool, checks.get(pool.pk)),
        )

    return each_pool(carried, frozen, spoilt, unreadable)


def _share(row: Any, limit: model.Limit, scaler: float) -> fleets.RegionShare:
    """A pool's backend in one region, as everybody must know it."""
    return fleets.RegionShare(f"rgn-{row.region_id}", limit=limit, capacity_scaler=scaler, ready_servers=row.ready)
