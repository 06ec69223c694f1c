"""Writes of what carries traffic: pools and their servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from ipaddress import ip_network

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname
from apps.compiler import grammar
from apps.compiler.addresses import PRIVATE_NETWORKS, Network, OwnAddresses, is_literal, own_addresses
from apps.compiler.model.shared import Limit
from apps.core.clock import now
from apps.definitions.models import Backend, Certificate, HealthCheck, Pool, Server
from apps.definitions.server_sources.following import follow_source
from apps.definitions.server_sources.registries import NAMED, NotYours, registry_of
from apps.definitions.shapes.base.writing import copy_objects, copy_plain
from apps.definitions.shapes.servers.source import read_source
from apps.definitions.shapes.traffic.pool import BackendSpec, PoolSpec, ServerSpec
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.grants import note_shared_again, reject_lost_tags
from apps.definitions.writing.rules.quotas import expect_objective, expect_servers, pointers_of_servers
from apps.definitions.writing.rules.usage import users_of
from apps.fleet.models import Fleet, Region
from apps.fleet.selectors import addresses_of_installation

# Objects of a pool that have a column each.
OBJECTS = ("server_tls", "persistence", "agent_check", "outlier_ejection", "connections", "retries", "objective")


def store_pool(changes: ChangeSet, owner: Account, row: Pool, spec: PoolSpec) -> None:
    """The pool, its check, and its backends; servers keep their id as long as they keep their name."""
    regions = [_region_of_backend(changes, owner, backend, index) for index, backend in enumerate(spec.backends)]
    for index, name in enumerate(spec.overflow.order):
        changes.named(Region, name, f"/spec/overflow/order/{index}")
    certificate = _client_certificate(changes, owner, spec)
    if row.pk is not None and row.protocol != spec.protocol and users_of(changes.actor, row):
        changes.add_error(
            "/spec/protocol",
            "in_use",
            "The protocol of a pool in use cannot change; remove its routes and listeners first.",
        )
    changes.field_errors.raise_any()
    if row.pk is not None:
        changes.mark_affected(row)  # a region that it leaves loses it
        if row.tags != dict(spec.tags):
            changes.deferred.add(partial(reject_lost_tags, changes, row, row.tags, changes.field_errors.pointer))
            note_shared_again(changes, row)
    row.account, row.client_certificate = owner, certificate
    row.overflow_mode, row.when_full = spec.overflow.mode, spec.overflow.when_full
    row.overflow_order = list(spec.overflow.order)
    if spec.objective and not row.objective:
        expect_objective(changes, owner)
    expect_servers(changes, owner, pointers_of_servers(spec))
    copy_plain(spec, row)
    copy_objects(spec, row, *OBJECTS)
    row.save()
    changes.lookups.remember(row, "Pool", owner.name, row.name)
    _store_check(row, spec)
    row.backends.exclude(region__in=[region for region in regions if region]).delete()
    for backend, region in zip(spec.backends, regions, strict=True):
        if region:
            _store_backend(changes, row, region, backend)
    changes.mark_affected(row)


def _client_certificate(changes: ChangeSet, owner: Account, spec: PoolSpec) -> Certificate | None:
    """The certificate that servers are shown: of the pool's own account, whoever uses the pool."""
    name = spec.server_tls.client_certificate if spec.server_tls else None
    if name is None:
        return None
    found = Certificate.objects.filter(account=owner, name=name).first()
    if found is None:
        message = f"There is no certificate {name} in account {owner.name}."
        changes.add_error("/spec/server_tls/client_certificate", "unknown", message)
    elif not found.chain_pem:
        message = f"Certificate {name} is automatic and not issued yet; name it once it is."
        changes.add_error("/spec/server_tls/client_certificate", "not_issued", message)
    return found


def _region_of_backend(changes: ChangeSet, owner: Account, backend: BackendSpec, index: int) -> Region | None:
    pointer = f"/spec/backends/{index}"
    source = read_source(backend.servers_from) if backend.servers_from else None
    if source is not None and source.kind in NAMED:
        try:
            registry_of(source, owner.name)
        except NotYours as refusal:
            changes.add_error(f"{pointer}/servers_from", "forbidden", str(refusal))
    region = changes.named(Region, backend.region, f"{pointer}/region")
    if region is not None:
        for position, error in refused_addresses(changes, region, [each.address for each in backend.servers]):
            changes.add_error(f"{pointer}/servers/{position}/address", error.code, error.message)
    return region


def refused_addresses(
    changes: ChangeSet, region: Region, addresses: Sequence[str]
) -> Iterator[tuple[int, grammar.GrammarError]]:
    """Those of the addresses and names, by their position, that no server of the region may have, and why."""
    if not addresses:
        return
    own = _own_addresses(changes, addresses)
    loopback, private = _allowed_in(changes, region)
    for position, address in enumerate(addresses):
        try:
            for networks in private:
                grammar.server_address(address, local_development=loopback, own=own, private=networks)
        except grammar.GrammarError as error:
            yield position, error


def _own_addresses(changes: ChangeSet, addresses: Iterable[str]) -> OwnAddresses:
    """Where the installation is reached, and those of the servers' names whose routes it serves.

    What this transaction stored before counts: locations come before pools in every document (KINDS of objects.py).
    """
    own: set[str] = changes.lookup(("own addresses",), addresses_of_installation)
    names = [address for address in addresses if not is_literal(address)]
    served = Hostname.objects.filter(name__in=names, routes__isnull=False).exclude(verification="")
    return own_addresses(own, set(served.values_list("name", flat=True)) if names else ())


def _allowed_in(changes: ChangeSet, region: Region) -> tuple[bool, set[tuple[Network, ...]]]:
    """Whether every fleet of the region is marked for local development, and which private networks each allows."""

    def look_up() -> tuple[bool, set[tuple[Network, ...]]]:
        fleets = Fleet.objects.filter(region=region).values_list("local_development", "private_networks")
        private = {tuple(map(ip_network, networks)) for _, networks in fleets} or {PRIVATE_NETWORKS}
        return {mark for mark, _ in fleets} == {True}, private

    key = ("allowed", region.pk, len(changes.affected.fleets))
    found: tuple[bool, set[tuple[Network, ...]]] = changes.lookup(key, look_up)
    return found


def _store_check(row: Pool, spec: PoolSpec) -> None:
    check = spec.health_check
    if check is None:
        HealthCheck.objects.filter(pool=row).delete()
        return
    HealthCheck.objects.update_or_create(pool=row, defaults=asdict(check))


def _store_backend(changes: ChangeSet, pool: Pool, region: Region, spec: BackendSpec) -> None:
    row = Backend.objects.filter(pool=pool, region=region).first() or Backend(pool=pool, region=region)
    note_limit(row, spec.limit.plain, spec.limit.measured_by, changes.actor)
    row.account, row.capacity_scaler = pool.account, spec.capacity_scaler
    followed, row.servers_from = row.servers_from, spec.servers_from
    row.save()
    if not spec.servers_from:
        _store_servers(row, spec.servers)
    if followed or spec.servers_from:
        follow_source(row)


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
    kept = {(spec.name, spec.address, spec.port) for spec in wanted}
    # Those that go or move make room first: an address may pass from one name to another.
    for name, server in found.items():
        if name not in names:
            server.delete()
        elif (name, server.address, server.port) not in kept:
            Server.objects.filter(pk=server.pk).update(address=f"moving-{server.pk}")
    for spec in wanted:
        server = found.get(spec.name) or Server(backend=backend, name=spec.name)
        server.account = backend.account
        copy_plain(spec, server)
        server.save()
