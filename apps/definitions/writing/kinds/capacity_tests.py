"""Writes of capacity tests: a test is stored when its owner may load its target as things are now."""

from __future__ import annotations

from dataclasses import asdict

from apps.accounts.models import Account
from apps.compiler.model.fleet import Protocol
from apps.core.errors import Invalid
from apps.definitions.models import Backend, CapacityTest, Pool, Server
from apps.definitions.reading.capacity_tests import PARTS, hostname_may_be_tested, routes_to
from apps.definitions.reading.specs import CapacityTestSpec
from apps.definitions.writing.change_set import ChangeSet
from apps.fleet.models import Region


def store_capacity_test(changes: ChangeSet, owner: Account, row: CapacityTest, spec: CapacityTestSpec) -> None:
    """The test, when its target is one that the owner may load: see `_reject_strange_target`."""
    pool = changes.owned(Pool, owner, spec.pool, "/spec/target/pool")
    region = changes.named(Region, spec.region, "/spec/target/region")
    if pool and region:
        _reject_strange_target(changes, owner, pool, region, spec)
    if changes.faults or pool is None or region is None:
        raise Invalid(changes.faults.drain())
    row.account, row.pool, row.region = owner, pool, region
    row.hostname, row.path, row.server = spec.hostname, spec.path, spec.server
    for name in PARTS:
        setattr(row, name, asdict(getattr(spec, name)))
    row.save()


def _reject_strange_target(
    changes: ChangeSet, owner: Account, pool: Pool, region: Region, spec: CapacityTestSpec
) -> None:
    """1. The pool is the owner's, speaks HTTP and has servers there. 2. The name may be tested. 3. It leads there."""
    if pool.account_id != owner.pk and not owner.is_operator:
        changes.fault("/spec/target/pool", "shared", "This pool is shared with you; only its owner can test it.")
    if pool.protocol == Protocol.TCP:
        changes.fault("/spec/target/pool", "protocol", "Capacity tests speak HTTP; this pool speaks tcp.")
    backend = Backend.objects.filter(pool=pool, region=region).first()
    if backend is None:
        changes.fault("/spec/target/region", "no_backend", f"Pool {spec.pool} has no servers in {region.name}.")
    elif spec.server and not Server.objects.filter(backend=backend, name=spec.server).exists():
        detail = f"Pool {spec.pool} has no server {spec.server} in {region.name}."
        changes.fault("/spec/target/server", "unknown", detail)
    if not hostname_may_be_tested(owner, spec.hostname, region):
        detail = "Name a hostname that your account has verified and may load-test; operators grant this right."
        changes.fault("/spec/target/hostname", "not_yours", detail)
    elif not routes_to(owner, pool, region, spec.hostname, spec.path):
        detail = (
            f"No route of {spec.hostname} leads {spec.path} to pool {spec.pool} in {region.name}; create one first."
        )
        changes.fault("/spec/target/hostname", "no_route", detail)
