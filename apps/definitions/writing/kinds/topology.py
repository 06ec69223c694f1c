"""Writes of the platform: accounts, regions, fleets and nodes, by operators only."""

from __future__ import annotations

from functools import partial

from apps.accounts.models import Account
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.affected_targets import zones_of
from apps.definitions.models import Listener
from apps.definitions.shapes.base.writing import copy_objects, copy_plain, write
from apps.definitions.shapes.platform.account import AccountSpec, Quotas
from apps.definitions.shapes.platform.topology import FLEET_PORTS, FleetSpec, NodeSpec, RegionSpec
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.static_ips import MOVING
from apps.fleet.certificates.revoking import revoke
from apps.fleet.models import Fleet, Node, Region, RegionLatency, Stack, StaticIP


def store_account(changes: ChangeSet, _owner: Account, row: Account, spec: AccountSpec) -> None:
    """Title, kind, quotas, whether it is suspended.

    A customer never becomes an operator by an edit, there is one operator, and nobody suspends it.
    """
    changed = row.pk is not None and row.kind != spec.kind
    second = spec.kind == Account.Kind.OPERATOR and row.kind != spec.kind
    if changed or (second and Account.objects.filter(kind=Account.Kind.OPERATOR).exists()):
        detail = "There is exactly one operator account, and the kind of an account cannot change."
        changes.add_error("/spec/kind", "kind", detail)
        raise Invalid(changes.field_errors.drain())
    if spec.suspended and spec.kind == Account.Kind.OPERATOR:
        changes.add_error("/spec/suspended", "operator", "The operator account cannot be suspended; use false.")
        raise Invalid(changes.field_errors.drain())
    row.title, row.kind = spec.title, spec.kind
    if spec.quotas is not None:
        row.quotas = write(Quotas, spec.quotas)
    if spec.suspended is not None:
        row.suspended_at = (row.suspended_at or now()) if spec.suspended else None
    row.save()
    changes.mark_affected(row)  # nodes hold its share
    changes.lookups.remember(row, "Account", row.name)


def store_region(changes: ChangeSet, owner: Account, row: Region, spec: RegionSpec) -> None:
    """Title, coordinates, whether it is drained, and how far the others are."""
    changes.affected.watch_orders()
    row.account = owner
    row.title, row.latitude, row.longitude = spec.title, spec.latitude, spec.longitude
    if spec.drained is not None and spec.drained != row.drained:
        row.set_drained(spec.drained)
        changes.affected.add_all_fleets()
        changes.affected.add_stacks(Stack.objects.all())
    row.save()
    changes.lookups.remember(row, "Region", row.name)
    if spec.latency is not None:
        _store_latencies(changes, row, {entry.to: entry.ms for entry in spec.latency})


def _store_latencies(changes: ChangeSet, row: Region, wanted: dict[str, float]) -> None:
    """What was set; regions that the same document makes further down are waited for. Measurements stay."""
    found: dict[str, Region] = {}
    for index, name in enumerate(wanted):
        pointer = f"/spec/latency/{index}/to"
        if name == row.name:
            changes.add_error(pointer, "self", "A region has no round trip to itself; leave this entry out.")
        elif ("Region", name) not in changes.deferred.expected and (region := changes.named(Region, name, pointer)):
            found[name] = region
    changes.field_errors.raise_any()
    RegionLatency.objects.filter(from_region=row).exclude(to_region__name__in=list(wanted)).update(set_ms=None)
    for name, ms in wanted.items():
        if name in found:
            set_ms(row, found[name], ms)
        else:
            changes.deferred.add(partial(_set_ms_later, row, name, ms))


def _set_ms_later(row: Region, name: str, ms: float) -> None:
    set_ms(row, Region.objects.get(name=name), ms)


def set_ms(row: Region, to_region: Region, ms: float | None) -> None:
    """Store what somebody set; None leaves what is measured."""
    RegionLatency.objects.update_or_create(from_region=row, to_region=to_region, defaults={"set_ms": ms})


def store_fleet(changes: ChangeSet, owner: Account, row: Fleet, spec: FleetSpec) -> None:
    """Region, permission of loopback, ports; a fleet with nodes or load balancers does not move."""
    region = changes.named(Region, spec.region, "/spec/region")
    in_use = row.pk is not None and (row.nodes.exists() or row.load_balancers.exists())
    if region and in_use and row.region_id != region.pk:
        changes.add_error(
            "/spec/region", "in_use", "A fleet with nodes or load balancers cannot move to another region."
        )
    ports = {name: getattr(spec, name) for name in FLEET_PORTS}
    if row.pk is not None:
        _reject_ports_of_listeners(changes, row, ports)
    if changes.field_errors or region is None:
        raise Invalid(changes.field_errors.drain())
    moved = row.pk is not None and any(getattr(row, name) != port for name, port in ports.items())
    copy_plain(spec, row)
    copy_objects(spec, row, "node_settings", "rollout_settings")
    row.account, row.region = owner, region
    row.save()
    changes.lookups.remember(row, "Fleet", row.name)
    changes.affected.add_fleets([row])
    if moved:
        changes.affected.add_all_fleets()  # the others must know where its nodes are


def _reject_ports_of_listeners(changes: ChangeSet, row: Fleet, ports: dict[str, int]) -> None:
    listeners = Listener.objects.filter(load_balancer__fleets=row, static_ip=None, port__in=ports.values())
    taken = {listener.port: listener for listener in listeners.select_related("load_balancer")}
    for name, port in ports.items():
        if port in taken:
            user = f"listener {taken[port].name} of {taken[port].load_balancer.name}"
            changes.add_error(f"/spec/{name}", "port_in_use", f"Port {port} is in use by {user}.")


def store_node(changes: ChangeSet, owner: Account, row: Node, spec: NodeSpec) -> None:
    """Where the agent is; a node that comes or moves makes every fleet be pushed to: all nodes count together."""
    changes.affected.watch_orders()
    fleet = changes.named(Fleet, spec.fleet, "/spec/fleet")
    other = Node.objects.filter(url=spec.url).exclude(pk=row.pk).first()
    if other:
        changes.add_error("/spec/url", "taken", f"Node {other.name} already has this URL.")
    moves = StaticIP.objects.filter(kind__in=MOVING, address=spec.address).first() if spec.address else None
    if moves:
        detail = f"{spec.address} is static IP {moves.name}, which moves among nodes; name the node's own address."
        changes.add_error("/spec/address", "taken", detail)
    if changes.field_errors or fleet is None:
        raise Invalid(changes.field_errors.drain())
    before = _place(row) if row.pk is not None else None
    zones = zones_of(row) if row.pk is not None else []  # of the fleet that it leaves
    copy_plain(spec, row)
    row.account, row.fleet = owner, fleet
    row.save()
    if before != _place(row):  # tags alone reach no node
        changes.affected.add_zones(zones)
        changes.affected.add_all_fleets()
        changes.affected.add_zones(zones_of(row))


def _place(row: Node) -> tuple[object, ...]:
    return row.fleet_id, row.url, row.address, row.port_offset


def revoke_node(changes: ChangeSet, row: Node) -> None:
    """A deleted node's certificates count no more, also for another node that gets its name."""
    revoke(row, changes.actor.name)
