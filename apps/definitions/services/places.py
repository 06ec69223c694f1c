"""DEFINE, writes of the platform: accounts, regions, fleets, nodes and static IPs, by operators only."""

from __future__ import annotations

from apps.accounts.models import Account
from apps.core.errors import Invalid
from apps.definitions.selectors import fleets_of
from apps.definitions.services.work import Work
from apps.definitions.specs import AccountSpec, FleetSpec, NodeSpec, RegionSpec, StaticIPSpec
from apps.fleet.models import Fleet, Node, Region, StaticIP


def store_account(work: Work, owner: Account, row: Account, spec: AccountSpec) -> None:
    """Title and kind; a customer never becomes an operator by an edit, and there is one operator."""
    del owner
    changed = row.pk is not None and row.kind != spec.kind
    second = spec.kind == Account.Kind.OPERATOR and row.kind != spec.kind
    if changed or (second and Account.objects.filter(kind=Account.Kind.OPERATOR).exists()):
        work.fault("/spec/kind", "kind", "There is one operator account, and the kind of an account does not change.")
        raise Invalid(work.take_faults())
    row.title, row.kind = spec.title, spec.kind
    row.save()
    work.remember(row, "Account", row.name)


def store_region(work: Work, owner: Account, row: Region, spec: RegionSpec) -> None:
    """Title and coordinates."""
    row.account = owner
    row.title, row.latitude, row.longitude = spec.title, spec.latitude, spec.longitude
    row.save()
    work.remember(row, "Region", row.name)


def store_fleet(work: Work, owner: Account, row: Fleet, spec: FleetSpec) -> None:
    """Region and permission of loopback; a fleet with nodes or load balancers does not move."""
    region = work.place(Region, spec.region, "/spec/region")
    in_use = row.pk is not None and (row.nodes.exists() or row.load_balancers.exists())
    if region and in_use and row.region_id != region.pk:
        work.fault("/spec/region", "in_use", "A fleet with nodes or load balancers stays in its region.")
    if work.faults or region is None:
        raise Invalid(work.take_faults())
    row.account, row.region, row.local_development = owner, region, spec.local_development
    row.save()
    work.remember(row, "Fleet", row.name)
    work.touch([row])


def store_node(work: Work, owner: Account, row: Node, spec: NodeSpec) -> None:
    """Where the agent is; a node that comes or moves makes its fleets be pushed to."""
    fleet = work.place(Fleet, spec.fleet, "/spec/fleet")
    other = Node.objects.filter(url=spec.url).exclude(pk=row.pk).first()
    if other:
        work.fault("/spec/url", "taken", f"Node {other.name} already has this URL.")
    if work.faults or fleet is None:
        raise Invalid(work.take_faults())
    if row.pk is not None and row.fleet_id != fleet.pk:
        work.touch([row.fleet])
    row.account, row.fleet = owner, fleet
    row.url, row.address, row.port_offset = spec.url, spec.address, spec.port_offset
    row.save()
    work.touch([fleet])


def store_static_ip(work: Work, owner: Account, row: StaticIP, spec: StaticIPSpec) -> None:
    """The address and where it is announced."""
    region = work.place(Region, spec.region, "/spec/region")
    if StaticIP.objects.filter(address=spec.address).exclude(pk=row.pk).exists():
        work.fault("/spec/address", "taken", f"Another static IP has the address {spec.address}.")
    if work.faults:
        raise Invalid(work.take_faults())
    row.account, row.address, row.region = owner, spec.address, region
    row.save()
    work.remember(row, "StaticIP", row.name)
    work.touch(fleets_of(row))
