"""Writes of load balancers: where they stand, their listeners, and which static IP fits which location."""

from __future__ import annotations

from functools import partial

from apps.accounts.models import Account
from apps.compiler.model.shared import Protocol
from apps.compiler.model.stack import ON_FLEETS, Cloud
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import Certificate, Listener, LoadBalancer, Pool, ProtocolRoute, SniRoute
from apps.definitions.shapes.base.writing import copy_objects
from apps.definitions.shapes.clouds.stack import network_of
from apps.definitions.shapes.platform.topology import FLEET_PORTS
from apps.definitions.shapes.traffic.load_balancer import ListenerSpec, LoadBalancerSpec
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.policies import expect_lists
from apps.fleet.models import Fleet, Stack, StaticIP

# An ALB stands in two zones at least.
SUBNETS_OF_ALB = 2


def store_load_balancer(changes: ChangeSet, owner: Account, row: LoadBalancer, spec: LoadBalancerSpec) -> None:
    """The front with its listeners; two listeners of one fleet never bind the same address and port."""
    if LoadBalancer.objects.filter(name=row.name).exclude(pk=row.pk).exists():
        changes.add_error("/name", "taken", f"A load balancer named {row.name} already exists; choose another name.")
    named = [changes.named(Fleet, name, f"/spec/fleets/{index}") for index, name in enumerate(spec.fleets)]
    fleets = [fleet for fleet in named if fleet]
    stacks = [stack for index, name in enumerate(spec.stacks) if (stack := _stack(changes, name, index))]
    parts = [_parts(changes, owner, listener, index) for index, listener in enumerate(spec.listeners)]
    addresses = [part[0] for part in parts]
    _reject_taken_ports(changes, row, fleets, spec, addresses)
    for index, address in enumerate(addresses):
        if address:
            expect_fit(changes, address, fleets, stacks, f"/spec/listeners/{index}/static_ip")
    changes.field_errors.raise_any()
    if row.pk is not None:
        changes.mark_affected(row)  # a location that it leaves loses it
    row.account = owner
    row.save()
    changes.lookups.remember(row, "LoadBalancer", row.name)
    row.fleets.set(fleets)
    row.stacks.set(stacks)
    row.listeners.exclude(name__in=[listener.name for listener in spec.listeners]).delete()
    for listener, part in zip(spec.listeners, parts, strict=True):
        _store_listener(row, listener, part)
    changes.mark_affected(row)


def _stack(changes: ChangeSet, name: str, index: int) -> Stack | None:
    """A stack that load balancers can stand in."""
    pointer = f"/spec/stacks/{index}"
    found = changes.named(Stack, name, pointer)
    if found and (missing := missing_network(found)):
        changes.add_error(pointer, "network", f"Stack {name} {missing} first; load balancers need this.")
    return found


def missing_network(stack: Stack) -> str:
    """What the stack's network lacks for load balancers, as the rest of a sentence; empty where it has all."""
    network = network_of(stack.network)
    if stack.cloud_account.cloud == Cloud.GOOGLE:
        return "" if network.vpc else "must name its network (vpc)"
    if not network.vpc or len(network.subnets) < SUBNETS_OF_ALB:
        return "must name its network: vpc and two subnets in different zones"
    return ""


Ways = tuple[list[SniRoute], list[ProtocolRoute]]
Parts = tuple[StaticIP | None, list[Certificate], Pool | None, Certificate | None, Ways]


def _parts(changes: ChangeSet, owner: Account, spec: ListenerSpec, index: int) -> Parts:
    """What a listener names: its address, certificates and pool."""
    pointer = f"/spec/listeners/{index}"
    address = changes.named(StaticIP, spec.static_ip, f"{pointer}/static_ip")
    certificates = [
        found
        for position, reference in enumerate(spec.certificates)
        if (found := changes.owned(Certificate, owner, reference, f"{pointer}/certificates/{position}"))
    ]
    pool = changes.owned(Pool, owner, spec.default_pool, f"{pointer}/default_pool")
    if pool and (pool.protocol == Protocol.TCP) != (spec.protocol is Protocol.TCP):
        changes.add_error(
            f"{pointer}/default_pool", "protocol", f"A {spec.protocol} listener cannot use a {pool.protocol} pool."
        )
    default = changes.owned(Certificate, owner, spec.default_certificate, f"{pointer}/default_certificate")
    expect_lists(changes, owner, spec.access, f"{pointer}/access")
    return address, certificates, pool, default, _ways(changes, owner, spec, pointer)


def _ways(changes: ChangeSet, owner: Account, spec: ListenerSpec, pointer: str) -> Ways:
    """The pools that connections go to, by hostname and by what clients send first; rows that have no listener yet."""
    names, protocols = [], []
    for position, name in enumerate(spec.sni_routes):
        if pool := _tcp_pool(changes, owner, name.pool, f"{pointer}/sni_routes/{position}/pool"):
            names.append(SniRoute(hostname=name.hostname, pool=pool, passthrough=name.passthrough))
    for position, way in enumerate(spec.protocol_routes):
        if pool := _tcp_pool(changes, owner, way.pool, f"{pointer}/protocol_routes/{position}/pool"):
            protocols.append(ProtocolRoute(protocol=way.protocol, alpn=way.alpn, pool=pool))
    return names, protocols


def _tcp_pool(changes: ChangeSet, owner: Account, reference: str, pointer: str) -> Pool | None:
    """The pool that connections go to."""
    pool = changes.owned(Pool, owner, reference, pointer)
    if pool and pool.protocol != Protocol.TCP:
        changes.add_error(pointer, "protocol", f"A tcp listener leads to tcp pools, not {pool.protocol}.")
        return None
    return pool


def _reject_taken_ports(
    changes: ChangeSet, row: LoadBalancer, fleets: list[Fleet], spec: LoadBalancerSpec, addresses: list[StaticIP | None]
) -> None:
    # Whoever changes a fleet's ports waits here for others that do.
    ids = sorted(fleet.pk for fleet in fleets)
    list(Fleet.objects.select_for_update().filter(pk__in=ids).order_by("pk"))
    others = Listener.objects.filter(load_balancer__fleets__in=ids).exclude(load_balancer=row.pk)
    own = {getattr(fleet, name): fleet.name for fleet in fleets for name in FLEET_PORTS}
    for index, (listener, address) in enumerate(zip(spec.listeners, addresses, strict=True)):
        if address is None and listener.port in own:
            detail = f"Nodes of fleet {own[listener.port]} use port {listener.port} internally; choose another port."
            changes.add_error(f"/spec/listeners/{index}/port", "port_in_use", detail)
        same = others.filter(port=listener.port, static_ip__isnull=True).select_related("load_balancer")
        if address is None and (taken := same.first()):
            detail = f"Port {listener.port} is in use by listener {taken.name} of {taken.load_balancer.name}."
            changes.add_error(f"/spec/listeners/{index}/port", "port_in_use", detail)


def expect_fit(changes: ChangeSet, address: StaticIP, fleets: list[Fleet], stacks: list[Stack], pointer: str) -> None:
    """Note an error where the static IP cannot be in every location of a load balancer, or in the end serves two."""
    changes.deferred.add(partial(_reject_two_users, address, changes.field_errors.pointer + pointer))
    if address.kind in ON_FLEETS:
        _expect_fit_on_fleets(changes, address, fleets, stacks, pointer)
    else:
        _expect_fit_in_stacks(changes, address, fleets, stacks, pointer)


def _reject_two_users(address: StaticIP, pointer: str) -> None:
    """Invalid where several load balancers bind the address; a document may move it from one to another."""
    StaticIP.objects.select_for_update().filter(pk=address.pk).first()  # whoever attaches it as well waits here
    names = Listener.objects.filter(static_ip=address).order_by("load_balancer__name")
    users = list(names.values_list("load_balancer__name", flat=True).distinct()[:2])
    if len(users) > 1:
        detail = (
            f"{address.name} would serve {' and '.join(users)}; a static IP serves only one at a time: move it instead."
        )
        raise Invalid([FieldError(pointer, "static_ip_in_use", detail)])


def _expect_fit_on_fleets(
    changes: ChangeSet, address: StaticIP, fleets: list[Fleet], stacks: list[Stack], pointer: str
) -> None:
    if stacks:
        names = ", ".join(stack.name for stack in stacks)
        detail = (
            f"{address.name} ({address.kind}) works on fleets only, but the load balancer is also in stack {names}."
        )
        changes.add_error(pointer, "kind", f"{detail} Leave it out, or create a load balancer for each.")
    if address.region_id and any(fleet.region_id != address.region_id for fleet in fleets):
        detail = f"{address.name} belongs to one region, but the load balancer has fleets elsewhere."
        changes.add_error(pointer, "region", detail)


def _expect_fit_in_stacks(
    changes: ChangeSet, address: StaticIP, fleets: list[Fleet], stacks: list[Stack], pointer: str
) -> None:
    if fleets:
        detail = (
            f"{address.name} ({address.kind}) belongs to a cloud, but the load "
            f"balancer also runs on fleet {fleets[0].name}."
        )
        changes.add_error(pointer, "kind", f"{detail} Leave it out, or create a load balancer for each.")
    elsewhere = next((stack for stack in stacks if stack.pk != address.stack_id), None)
    if elsewhere:
        own = address.stack.name if address.stack else "another stack"
        changes.add_error(
            pointer, "stack", f"{address.name} is in {own}, but the load balancer is in {elsewhere.name}."
        )


def _store_listener(balancer: LoadBalancer, spec: ListenerSpec, parts: Parts) -> None:
    row = Listener.objects.filter(load_balancer=balancer, name=spec.name).first()
    row = row or Listener(load_balancer=balancer, name=spec.name)
    row.account, row.protocol, row.port = balancer.account, spec.protocol, spec.port
    row.static_ip, certificates, row.default_pool, row.default_certificate, ways = parts
    row.monitor_path = spec.monitor_path
    copy_objects(spec, row, "access", "tls", "client_certificates", "client_address", "connections", "client_limit")
    copy_objects(spec, row, "compression", "cache", "tracing")
    row.save()
    row.certificates.set(certificates)
    names, protocols = ways
    for name in names:
        name.listener = row
    for protocol in protocols:
        protocol.listener = row
    row.sni_routes.all().delete()
    row.protocol_routes.all().delete()
    SniRoute.objects.bulk_create(names)
    ProtocolRoute.objects.bulk_create(protocols)
