"""Writes of capacity tests: a test is stored when its owner may load its target as things are now."""

from __future__ import annotations

from apps.accounts.models import Account
from apps.compiler.model.shared import Protocol
from apps.core.errors import Invalid
from apps.definitions.load_targets import hostname_may_be_tested, routes_to
from apps.definitions.models import Backend, CapacityTest, Pool, Server
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.operations.capacity_test import (
    CapacityTestSpec,
    GuardSpec,
    LoadSpec,
    ObjectiveSpec,
    PolicySpec,
    TargetSpec,
)
from apps.definitions.writing.change_set import ChangeSet
from apps.fleet.models import Region


def store_capacity_test(changes: ChangeSet, owner: Account, row: CapacityTest, spec: CapacityTestSpec) -> None:
    """The test, when its target is one that the owner may load: see `_reject_strange_target`."""
    target = spec.target
    pool = changes.owned(Pool, owner, target.pool, "/spec/target/pool")
    region = changes.named(Region, target.region, "/spec/target/region")
    if pool and region:
        _reject_strange_target(changes, owner, pool, region, target)
    if changes.field_errors or pool is None or region is None:
        raise Invalid(changes.field_errors.drain())
    row.account, row.pool, row.region = owner, pool, region
    row.hostname, row.path, row.server = target.hostname, target.path, target.server
    row.load, row.objective = write(LoadSpec, spec.load), write(ObjectiveSpec, spec.objective)
    row.guards, row.policy = write(GuardSpec, spec.guards), write(PolicySpec, spec.policy)
    row.save()


def _reject_strange_target(changes: ChangeSet, owner: Account, pool: Pool, region: Region, target: TargetSpec) -> None:
    """1. The pool is the owner's, speaks HTTP and has servers there. 2. The name may be tested. 3. It leads there."""
    if pool.account_id != owner.pk and not owner.is_operator:
        changes.add_error("/spec/target/pool", "shared", "This pool is shared with you; only its owner can test it.")
    if pool.protocol == Protocol.TCP:
        changes.add_error("/spec/target/pool", "protocol", "Capacity tests speak HTTP; this pool speaks tcp.")
    backend = Backend.objects.filter(pool=pool, region=region).first()
    if backend is None:
        changes.add_error("/spec/target/region", "no_backend", f"Pool {target.pool} has no servers in {region.name}.")
    elif target.server and not Server.objects.filter(backend=backend, name=target.server).exists():
        detail = f"Pool {target.pool} has no server {target.server} in {region.name}."
        changes.add_error("/spec/target/server", "unknown", detail)
    if not hostname_may_be_tested(owner, target.hostname, region):
        detail = "Name a hostname that your account has verified and may load-test; operators grant this right."
        changes.add_error("/spec/target/hostname", "not_yours", detail)
    elif not routes_to(owner, pool, region, target.hostname, target.path):
        detail = (
            f"No route of {target.hostname} leads {target.path} to pool {target.pool} in {region.name}; "
            "create one first."
        )
        changes.add_error("/spec/target/hostname", "no_route", detail)
