"""Writes of static IPs: allotted, given to somebody, and kept by whoever has them.

Two writers never get one address: each waits for the others that allot from the same pool, and the column is unique.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Sequence

from apps.accounts.models import Account
from apps.compiler.address_spelling import spelled
from apps.compiler.addresses import overlap
from apps.compiler.model.stack import OF_CLOUD, ON_FLEETS, AddressKind, Cloud
from apps.core.concurrency.locks import lock_words
from apps.core.errors import Conflict
from apps.definitions.models import Listener
from apps.definitions.ports import PORTS
from apps.definitions.reading.describing import Document, describe
from apps.definitions.shapes.base.writing import copy_plain
from apps.definitions.shapes.clouds.address_pool import AddressPoolSpec
from apps.definitions.shapes.clouds.static_ip import StaticIPSpec
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.rules.quotas import expect_growth
from apps.fleet.models import AddressPool, Node, Region, Stack, StaticIP

ROUTER_IDS = range(1, 256)
# Kinds that nodes hand to each other; one of kind node may well be that of its only node.
MOVING = frozenset({AddressKind.VIP, AddressKind.ANYCAST})
_LET_GO = "try again when they have; delete nodes that are gone."
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


def store_address_pool(changes: ChangeSet, owner: Account, row: AddressPool, spec: AddressPoolSpec) -> None:
    """Blocks and region; blocks of two pools never overlap, and an address that was allotted keeps its block."""
    region = changes.named(Region, spec.region, "/spec/region")
    lock_words(["address pools"])
    _reject_overlap(changes, row, spec)
    if row.pk is not None:
        _reject_loss(changes, row, spec, region)
    changes.field_errors.raise_any()
    row.account, row.region = owner, region
    copy_plain(spec, row)
    row.save()
    changes.lookups.remember(row, "AddressPool", row.name)


def _reject_overlap(changes: ChangeSet, row: AddressPool, spec: AddressPoolSpec) -> None:
    others = list(AddressPool.objects.exclude(pk=row.pk).order_by("name"))
    for index, block in enumerate(spec.blocks):
        other = next((each for each in others if _touches(block, each.blocks)), None)
        if other:
            detail = f"Pool {other.name} already has addresses of this network; each address belongs to one pool."
            changes.add_error(f"/spec/blocks/{index}", "overlap", detail)


def _touches(block: str, others: Iterable[str]) -> bool:
    one = ipaddress.ip_network(block)
    return any(overlap(one, ipaddress.ip_network(other)) for other in others)


def _reject_loss(changes: ChangeSet, row: AddressPool, spec: AddressPoolSpec, region: Region | None) -> None:
    used = list(row.static_ips.exclude(address=None).order_by("name"))
    lost = next((each for each in used if not holds(spec.blocks, str(each.address))), None)
    if lost:
        detail = (
            f"Static IP {lost.name} uses {lost.address} of this pool; keep this network, or delete the static IP first."
        )
        changes.add_error("/spec/blocks", "in_use", detail)
    if used and row.region_id != (region.pk if region else None) and region is not None:
        away = next((each for each in used if each.region_id != region.pk), None)
        if away:
            changes.add_error("/spec/region", "in_use", f"Static IP {away.name} of this pool is not of that region.")


def holds(blocks: Iterable[str], address: str) -> bool:
    """Whether the address is one that can be allotted from the blocks."""
    found = ipaddress.ip_address(address)
    return any(found in network and not _is_reserved(found, network) for network in map(ipaddress.ip_network, blocks))


def _is_reserved(address: ipaddress.IPv4Address | ipaddress.IPv6Address, network: IPNetwork) -> bool:
    """The network itself and its broadcast address (IPv6: that of its routers), but not of a link or a single host."""
    if network.prefixlen >= network.max_prefixlen - 1:
        return False
    last = network.version == 4 and address == network.broadcast_address
    return address == network.network_address or last


def lowest_free(blocks: Iterable[str], taken: Collection[str]) -> str | None:
    """The lowest address of the first block that has a free one; never a network's or its broadcast address. Pure."""
    for block in blocks:
        for address in ipaddress.ip_network(block).hosts():
            if (text := spelled(address)) not in taken:
                return text
    return None


def store_static_ip(changes: ChangeSet, owner: Account, row: StaticIP, spec: StaticIPSpec) -> None:
    """The address, where it stands and to whom it was given; kind and stack of an address never change."""
    region = changes.named(Region, spec.region, "/spec/region")
    pool = changes.named(AddressPool, spec.pool, "/spec/pool")
    stack = changes.named(Stack, spec.stack, "/spec/stack")
    given_to = _given_to(changes, spec)
    if row.pk is not None:
        _reject_another(changes, row, spec, stack, region)
    if stack and spec.kind not in OF_CLOUD[Cloud(stack.cloud_account.cloud)]:
        kinds = " or ".join(sorted(OF_CLOUD[Cloud(stack.cloud_account.cloud)]))
        changes.add_error("/spec/kind", "kind", f"In stack {stack.name} an address is of kind {kinds}.")
    if pool and pool.region_id and pool.region_id != (region.pk if region else None):
        changes.add_error("/spec/pool", "region", f"Pool {pool.name} belongs to another region than this address.")
    changes.field_errors.raise_any()
    if row.pk is not None:
        changes.mark_affected(row)
    address = _address(changes, row, spec, pool) if spec.kind in ON_FLEETS else row.address
    router_id = _router_id(changes, row, spec, region) if spec.kind is AddressKind.VIP else None
    changes.field_errors.raise_any()
    copy_plain(spec, row)
    row.account, row.address, row.router_id = owner, address, router_id
    row.region, row.pool, row.stack, row.owner = region, pool, stack, given_to
    row.save()
    changes.lookups.remember(row, "StaticIP", row.name)
    changes.mark_affected(row)


def with_allotted(_changes: ChangeSet, row: StaticIP, _before: Document | None, _after: Document) -> Document:
    """The document with the address and the router id that were allotted."""
    return describe(row)


def reject_protected(_changes: ChangeSet, row: StaticIP) -> None:
    """Raise Conflict for an address that is not to be let go by mistake."""
    if row.protected:
        raise Conflict(f"Static IP {row.name} is protected: set protected: false first, then delete it.")


def _given_to(changes: ChangeSet, spec: StaticIPSpec) -> Account | None:
    """The account that the address is given to."""
    name = spec.owner
    if name is None:
        return None
    found: Account | None = changes.lookup(("Account", name), lambda: Account.objects.filter(name=name).first())
    if found is None and ("Account", name) not in changes.field_errors.rejected:
        changes.add_error("/spec/owner", "unknown", f"There is no account {name}.")
    if found is not None:
        expect_growth(changes, "StaticIP", found, "/spec/owner")
    return found


def _reject_another(
    changes: ChangeSet, row: StaticIP, spec: StaticIPSpec, stack: Stack | None, region: Region | None
) -> None:
    """Errors where what is asked for is another address than the one that is there."""
    if row.kind != spec.kind:
        detail = f"The kind of a static IP cannot change from {row.kind}; create another one of kind {spec.kind}."
        changes.add_error("/spec/kind", "kind", detail)
    elif spec.stack and row.stack_id != (stack.pk if stack else None):
        changes.add_error("/spec/stack", "stack", "A static IP cannot move to another stack; create another one there.")
    elif row.region_id != (region.pk if region else None):
        user = Listener.objects.filter(static_ip=row).select_related("load_balancer").first()
        if user:
            detail = (
                f"The address is attached to {user.load_balancer.name}, so its region cannot change; detach it first."
            )
            changes.add_error("/spec/region", "in_use", detail)
    if row.protected and spec.address and spec.address != row.address and spec.protected is not False:
        changes.add_error(
            "/spec/address", "protected", f"{row.address} is protected; set protected: false to release it."
        )


def _address(changes: ChangeSet, row: StaticIP, spec: StaticIPSpec, pool: AddressPool | None) -> str | None:
    """The address that was given, the one that is there, or the lowest that is free in the pool."""
    wanted = spec.address or (row.address if row.pk is not None else None)
    if wanted is None and pool is None:
        changes.add_error("/spec/address", "missing", "Fill in the address, or the pool to allocate it from.")
        return None
    if pool:
        lock_words(["address pools"])  # whoever allots as well waits here
    if wanted is None and pool:
        return _allotted(pool)
    if pool and not holds(pool.blocks, str(wanted)):
        changes.add_error(
            "/spec/address", "pool", f"Pool {pool.name} cannot allocate {wanted}; choose an address from its networks."
        )
    if StaticIP.objects.filter(address=wanted).exclude(pk=row.pk).exists():
        changes.add_error(
            "/spec/address", "taken", f"Another static IP already has the address {wanted}; choose another."
        )
    elif wanted != row.address and (nodes := PORTS.held_addresses().get(str(wanted))):
        changes.add_error("/spec/address", "held", f"{_held(str(wanted), nodes)} Choose another, or {_LET_GO}")
    node = Node.objects.filter(address=wanted).first() if spec.kind in MOVING else None
    if node:
        detail = f"{wanted} is the own address of node {node.name}, which would lose it; choose another."
        changes.add_error("/spec/address", "taken", detail)
    return wanted


def _allotted(pool: AddressPool) -> str:
    rows = StaticIP.objects.exclude(address=None).values_list("address", flat=True)
    taken = {*map(str, rows), *Node.objects.values_list("address", flat=True)}
    held = PORTS.held_addresses()
    found = lowest_free(pool.blocks, taken | held.keys())
    if found is None:
        left = lowest_free(pool.blocks, taken)
        said = f" {_held(left, held[left])} Or {_LET_GO}" if left else ""
        raise Conflict(
            f"Pool {pool.name} has no free address left; add a block to it, or delete a static IP of it.{said}"
        )
    return found


def _held(address: str, nodes: Sequence[str]) -> str:
    """Why an address that no static IP has any more is not free."""
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    names = f"Node {nodes[0]} has" if len(nodes) == 1 else f"Nodes {', '.join(nodes[:3])}{more} have"
    return f"{names} not confirmed a configuration without {address}."


def _router_id(changes: ChangeSet, row: StaticIP, spec: StaticIPSpec, region: Region | None) -> int | None:
    """What names a vip to VRRP, one of its kind in its region."""
    lock_words([f"router ids of {region.name if region else ''}"])
    others = StaticIP.objects.filter(kind=AddressKind.VIP, region=region).exclude(pk=row.pk)
    taken = set(others.values_list("router_id", flat=True))
    wanted = spec.router_id or row.router_id
    if wanted is None or (wanted in taken and spec.router_id is None):
        wanted = next((number for number in ROUTER_IDS if number not in taken), None)
    if wanted is None:
        raise Conflict("All 255 router ids of this region are in use; delete a vip, or use anycast addresses.")
    if wanted in taken:
        changes.add_error(
            "/spec/router_id", "taken", f"Another vip of the region already has the router ID {wanted}; choose another."
        )
    return wanted
