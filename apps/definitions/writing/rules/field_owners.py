"""DEFINE, inside a write: limits that capacity runs set belong to the runs, not to the document that says the rest.

A document that has another limit there keeps the measured one and says so; whoever means the other one takes the field
over by name. What somebody sets by hand (PUT, PATCH, a form: they saw the version) is no document's.
"""

from __future__ import annotations

from dataclasses import replace

from apps.compiler.model.fleet import Limit, LimitKind, LimitScope, WhenFull
from apps.core.errors import Invalid
from apps.definitions.models import Backend, Pool
from apps.definitions.reading.documents import Object
from apps.definitions.shapes.pool import QUEUE_NEEDS_CONNECTIONS, BackendSpec, PoolSpec
from apps.definitions.writing.change_set import ChangeSet

UNITS = {LimitKind.RATE: "/s", LimitKind.CONNECTIONS: " connections"}


def keep_measured(changes: ChangeSet, row: object, wanted: Object) -> Object:
    """What a document wants of a pool, with the limits of runs as they are; a line of `changes.kept` for each."""
    if not changes.of_document or not isinstance(row, Pool) or not isinstance(wanted.spec, PoolSpec):
        return wanted
    owned = {each.region.name: each for each in row.backends.all() if each.limit_measured_by}
    backends = tuple(_kept(changes, row, each, owned.get(each.region)) for each in wanted.spec.backends)
    if wanted.spec.overflow.when_full is WhenFull.QUEUE and any(each.limit.kind is LimitKind.RATE for each in backends):
        changes.fault("/spec/overflow/when_full", "queue", QUEUE_NEEDS_CONNECTIONS)
        raise Invalid(changes.faults.drain())
    return replace(wanted, spec=replace(wanted.spec, backends=backends))


def _kept(changes: ChangeSet, pool: Pool, wanted: BackendSpec, stored: Backend | None) -> BackendSpec:
    if stored is None:
        return wanted
    limit = stored.limit.plain
    field = f"{pool.account.name}/{pool.name}/{wanted.region}"
    if wanted.limit.plain == limit or field in changes.take_over:
        return wanted
    what = f"limit of pool {pool.account.name}/{pool.name} in {wanted.region}"
    by = f"set by capacity run {stored.limit_measured_by.removeprefix('run-')}"
    changes.kept.append(f"{what}: kept at {_words(limit)}, {by}; give take_over={field} to set it")
    return replace(wanted, limit=stored.limit)


def _words(limit: Limit) -> str:
    per = " per server" if limit.scope is LimitScope.SERVER else ""
    return f"{limit.value}{UNITS.get(limit.kind, '')}{per}" if limit.kind in UNITS else "none"
