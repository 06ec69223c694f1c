"""DEFINE, writes of what carries traffic: certificates, pools and servers, load balancers and listeners."""

from __future__ import annotations

from functools import partial

from django.db.models import Q

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.compiler import grammar
from apps.compiler.model import Limit, Protocol
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.core.sealing import seal, unseal
from apps.definitions.certificates import read_certificate
from apps.definitions.documents import FLEET_PORTS
from apps.definitions.models import Backend, Certificate, HealthCheck, Listener, LoadBalancer, Pool, Server
from apps.definitions.selectors import fleets_of
from apps.definitions.services.grants import refuse_lost_tags
from apps.definitions.services.usage import users_of
from apps.definitions.services.work import Work
from apps.definitions.specs import (
    BackendSpec,
    CertificateSpec,
    ListenerSpec,
    LoadBalancerSpec,
    PoolSpec,
    ServerSpec,
)
from apps.fleet.models import Fleet, Region, StaticIP


def store_certificate(work: Work, owner: Account, row: Certificate, spec: CertificateSpec) -> None:
    """The chain, and its key sealed; without a key in the document the stored one must fit the new chain."""
    key = spec.key
    if key is None and row.pk is not None:
        key = unseal(row.encrypted_key).decode()
    facts = read_certificate(spec.chain, key, now(), work.fault)
    if facts is None or key is None:
        raise Invalid(work.take_faults())
    row.account, row.chain_pem, row.encrypted_key = owner, spec.chain, seal(key.encode())
    row.hostnames, row.fingerprint = list(facts.hostnames), facts.fingerprint
    row.not_before, row.not_after = facts.not_before, facts.not_after
    row.save()
    work.remember(row, "Certificate", owner.name, row.name)
    work.touch(fleets_of(row))


def store_pool(work: Work, owner: Account, row: Pool, spec: PoolSpec) -> None:
    """The pool, its check, and its backends; servers keep their id as long as they keep their name."""
    regions = [_region_of_backend(work, backend, index) for index, backend in enumerate(spec.backends)]
    for index, name in enumerate(spec.overflow_order):
        work.place(Region, name, f"/spec/overflow/order/{index}")
    if row.pk is not None and row.protocol != spec.protocol and users_of(work.actor, row):
        work.fault("/spec/protocol", "in_use", "A pool that routes or listeners use keeps its protocol.")
    if work.faults:
        raise Invalid(work.take_faults())
    if row.pk is not None:
        work.touch(fleets_of(row))  # a region that it leaves loses it
        if row.tags != dict(spec.tags):
            work.later.append(partial(refuse_lost_tags, row, row.tags))
    row.account, row.protocol, row.balance = owner, spec.protocol, spec.balance
    row.connect_timeout_ms, row.server_timeout_ms = spec.connect_timeout_ms, spec.server_timeout_ms
    row.queue_timeout_ms, row.server_keepalive_ms = spec.queue_timeout_ms, spec.server_keepalive_ms
    row.when_full, row.overflow_order = spec.when_full, list(spec.overflow_order)
    row.tags = dict(spec.tags)
    row.save()
    work.remember(row, "Pool", owner.name, row.name)
    _store_check(row, spec)
    row.backends.exclude(region__in=[region for region in regions if region]).delete()
    for backend, region in zip(spec.backends, regions, strict=True):
        if region:
            _store_backend(work, row, region, backend)
    work.touch(fleets_of(row))


def _region_of_backend(work: Work, backend: BackendSpec, index: int) -> Region | None:
    place = f"/spec/backends/{index}"
    region = work.place(Region, backend.region, f"{place}/region")
    if region is None:
        return None
    for position, server in enumerate(backend.servers):
        if not _may_be_loopback(work, region):
            try:
                grammar.server_address(server.address)
            except grammar.GrammarError as error:
                work.fault(f"{place}/servers/{position}/address", error.code, error.message)
    return region


def _may_be_loopback(work: Work, region: Region) -> bool:
    """Whether every fleet of the region is marked for local development."""

    def look_up() -> bool:
        marks = set(Fleet.objects.filter(region=region).values_list("local_development", flat=True))
        return marks == {True}

    return bool(work.once(("local", region.pk, len(work.touched)), look_up))


def _store_check(row: Pool, spec: PoolSpec) -> None:
    check = spec.health_check
    if check is None:
        HealthCheck.objects.filter(pool=row).delete()
        return
    fields = {name: getattr(check, name) for name in check.__slots__}
    HealthCheck.objects.update_or_create(pool=row, defaults=fields)


def _store_backend(work: Work, pool: Pool, region: Region, spec: BackendSpec) -> None:
    row = Backend.objects.filter(pool=pool, region=region).first() or Backend(pool=pool, region=region)
    note_limit(row, spec.limit, spec.measured_by, work.actor)
    row.account, row.capacity_scaler = pool.account, spec.capacity_scaler
    row.save()
    _store_servers(row, spec.servers)


def note_limit(row: Backend, limit: Limit, measured_by: str, actor: Actor) -> None:
    """Put a limit on a row with who set it and when; both stay when the limit is what it was."""
    wanted = (str(limit.kind), limit.value, str(limit.scope))
    if wanted != (row.limit_kind, row.limit_value, row.limit_scope):
        row.limit_set_by, row.limit_set_at, row.limit_measured_by = actor.name, now(), measured_by
    row.limit_kind, row.limit_value, row.limit_scope = wanted
    row.limit_measured_by = measured_by or row.limit_measured_by


def _store_servers(backend: Backend, wanted: tuple[ServerSpec, ...]) -> None:
    found = {server.name: server for server in backend.servers.all()}
    names = {spec.name for spec in wanted}
    places = {(spec.name, spec.address, spec.port) for spec in wanted}
    # Those that go or move make room first: an address may pass from one name to another.
    for name, server in found.items():
        if name not in names:
            server.delete()
        elif (name, server.address, server.port) not in places:
            Server.objects.filter(pk=server.pk).update(address=f"moving-{server.pk}")
    for spec in wanted:
        server = found.get(spec.name) or Server(backend=backend, name=spec.name)
        server.account, server.address, server.port = backend.account, spec.address, spec.port
        server.weight, server.state = spec.weight, spec.state
        server.save()


def store_load_balancer(work: Work, owner: Account, row: LoadBalancer, spec: LoadBalancerSpec) -> None:
    """The front with its listeners; two listeners of one fleet never bind the same address and port."""
    if LoadBalancer.objects.filter(name=row.name).exclude(pk=row.pk).exists():
        work.fault("/name", "taken", f"There is a load balancer {row.name} already.")
    fleets = [
        found for index, name in enumerate(spec.fleets) if (found := work.place(Fleet, name, f"/spec/fleets/{index}"))
    ]
    parts = [_parts(work, owner, listener, index) for index, listener in enumerate(spec.listeners)]
    _refuse_taken_ports(work, row, fleets, spec, [part[0] for part in parts])
    if work.faults:
        raise Invalid(work.take_faults())
    row.account = owner
    row.save()
    work.remember(row, "LoadBalancer", row.name)
    work.forget("fleets", row.pk)
    work.touch(row.fleets.all())
    row.fleets.set(fleets)
    work.touch(fleets)
    row.listeners.exclude(name__in=[listener.name for listener in spec.listeners]).delete()
    for listener, part in zip(spec.listeners, parts, strict=True):
        _store_listener(row, listener, part)


Parts = tuple[StaticIP | None, list[Certificate], Pool | None]


def _parts(work: Work, owner: Account, spec: ListenerSpec, index: int) -> Parts:
    """What a listener names: its address, certificates and pool."""
    place = f"/spec/listeners/{index}"
    address = work.place(StaticIP, spec.static_ip, f"{place}/static_ip")
    certificates = [
        found
        for position, reference in enumerate(spec.certificates)
        if (found := work.owned(Certificate, owner, reference, f"{place}/certificates/{position}"))
    ]
    pool = work.owned(Pool, owner, spec.default_pool, f"{place}/default_pool")
    if pool and (pool.protocol == Protocol.TCP) != (spec.protocol is Protocol.TCP):
        work.fault(
            f"{place}/default_pool", "protocol", f"A {spec.protocol} listener cannot use a {pool.protocol} pool."
        )
    return address, certificates, pool


def _refuse_taken_ports(
    work: Work, row: LoadBalancer, fleets: list[Fleet], spec: LoadBalancerSpec, addresses: list[StaticIP | None]
) -> None:
    # Whoever changes a fleet's ports waits here for others that do.
    ids = sorted(fleet.pk for fleet in fleets)
    list(Fleet.objects.select_for_update().filter(pk__in=ids).order_by("pk"))
    others = Listener.objects.filter(load_balancer__fleets__in=ids).exclude(load_balancer=row.pk)
    own = {getattr(fleet, name): fleet.name for fleet in fleets for name in FLEET_PORTS}
    for index, (listener, address) in enumerate(zip(spec.listeners, addresses, strict=True)):
        if address is None and listener.port in own:
            detail = f"Nodes of fleet {own[listener.port]} use port {listener.port} among themselves."
            work.fault(f"/spec/listeners/{index}/port", "port_in_use", detail)
        if address and address.region_id and any(fleet.region_id != address.region_id for fleet in fleets):
            detail = f"{address.name} belongs to one region, but the load balancer has fleets elsewhere."
            work.fault(f"/spec/listeners/{index}/static_ip", "region", detail)
        same = (
            others.filter(Q(port=listener.port), static_ip=address)
            if address
            else others.filter(port=listener.port, static_ip__isnull=True)
        )
        taken = same.select_related("load_balancer").first()
        if taken:
            detail = f"Port {listener.port} is in use by listener {taken.name} of {taken.load_balancer.name}."
            work.fault(f"/spec/listeners/{index}/port", "port_in_use", detail)


def _store_listener(balancer: LoadBalancer, spec: ListenerSpec, parts: Parts) -> None:
    row = Listener.objects.filter(load_balancer=balancer, name=spec.name).first()
    row = row or Listener(load_balancer=balancer, name=spec.name)
    row.account, row.protocol, row.port = balancer.account, spec.protocol, spec.port
    row.static_ip, certificates, row.default_pool = parts
    row.save()
    row.certificates.set(certificates)
