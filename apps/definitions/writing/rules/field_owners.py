"""Inside a write: limits that capacity runs set belong to the runs, not to the document that says the rest.

A document (what is applied, and whatever a pipeline writes under its name) that has another limit there keeps the
measured one and says so; whoever means the other one takes the field over by name. What somebody sets by hand, without
a manager, is no document's.
"""

from __future__ import annotations

from dataclasses import replace

from apps.compiler.model.shared import Limit, LimitKind, LimitScope, WhenFull
from apps.core.errors import Conflict, Invalid
from apps.definitions.models import Backend, Pool
from apps.definitions.reading.documents import Object
from apps.definitions.shapes.traffic.pool import QUEUE_NEEDS_CONNECTIONS, BackendSpec, PoolSpec
from apps.definitions.writing.change_set import ChangeSet

UNITS = {LimitKind.RATE: "/s", LimitKind.CONNECTIONS: " connections"}


def keep_measured(changes: ChangeSet, row: Pool | None, wanted: Object) -> Object:
    """What a document wants of a pool, with the limits of runs as they are; a line of `changes.kept` for each."""
    if row is None or not isinstance(wanted.spec, PoolSpec) or not (changes.of_document or changes.manager):
        return wanted
    owned = {each.region.name: each for each in row.backends.all() if each.limit_measured_by}
    backends = tuple(_kept(changes, row, each, owned.get(each.region)) for each in wanted.spec.backends)
    if wanted.spec.overflow.when_full is WhenFull.QUEUE and any(each.limit.kind is LimitKind.RATE for each in backends):
        changes.add_error("/spec/overflow/when_full", "queue", QUEUE_NEEDS_CONNECTIONS)
        raise Invalid(changes.field_errors.drain())
    return replace(wanted, spec=replace(wanted.spec, backends=backends))


def _kept(changes: ChangeSet, pool: Pool, wanted: BackendSpec, stored: Backend | None) -> BackendSpec:
    line = stored and _line(changes, pool, stored, wanted.limit.plain)
    if not stored or not line:
        return wanted
    changes.kept[_field(pool, stored)] = line
    return replace(wanted, limit=stored.limit)


def expect_own_limit(changes: ChangeSet, pool: Pool, stored: Backend, wanted: Limit) -> None:
    """Raise Conflict where a pipeline sets nothing but a limit that is the runs': there is nothing else to store."""
    if changes.manager and stored.limit_measured_by and (line := _line(changes, pool, stored, wanted)):
        raise Conflict(f"Nothing was changed: {line}.")


def _line(changes: ChangeSet, pool: Pool, stored: Backend, wanted: Limit) -> str:
    """What is kept and how to set it all the same; empty where nothing is to be kept."""
    limit, field = stored.limit.plain, _field(pool, stored)
    if wanted == limit or field in changes.take_over:
        return ""
    what = f"limit of pool {pool.account.name}/{pool.name} in {stored.region.name}"
    by = f"set by capacity run {stored.limit_measured_by.removeprefix('run-')}"
    return f"{what}: kept at {_words(limit)}, {by}; give take_over={field} to set it"


def _field(pool: Pool, stored: Backend) -> str:
    return f"{pool.account.name}/{pool.name}/{stored.region.name}"


def _words(limit: Limit) -> str:
    per = " per server" if limit.scope is LimitScope.SERVER else ""
    return f"{limit.value}{UNITS.get(limit.kind, '')}{per}" if limit.kind in UNITS else "none"
